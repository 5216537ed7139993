package session

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

var (
	owner = event.Actor{Authority: strings.Repeat("a", 64), Principal: strings.Repeat("b", 64), Credential: "owner"}
	id    = event.SessionID("wc_sess_" + strings.Repeat("0", 32))
	at    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// given folds events, one commit each, into the core that a decision sees.
func given(t *testing.T, commits ...[]event.Event) session.Core {
	t.Helper()
	var c session.Core
	for i, events := range commits {
		c = c.Apply(event.Commit{Aggregate: event.SessionAggregate(id), Version: uint64(i + 1), At: at, Actor: owner, Events: events})
	}
	return c
}

func started(t *testing.T, s Start) []event.Event {
	t.Helper()
	s.Actor = owner
	events, err := DecideStart(s)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// Covers: STA-10, STA-11, SES-21
func TestDecideStart(t *testing.T) {
	readOnly := event.Guards{DenyWrite: true, DenyShell: true}
	for name, tc := range map[string]struct {
		when Start
		then []event.Event
		kind fault.Kind
	}{
		"task": {
			when: Start{Actor: owner, Nonce: "n", Instruction: "fix it\nplease", Transport: "mcp"},
			then: []event.Event{
				event.SessionCreated{Nonce: "n", Authority: owner.Authority, Principal: owner.Principal, Title: "fix it", Mode: event.ModeNormal},
				event.InstructionAccepted{Text: "fix it\nplease", Continuation: Created, RequestedMode: event.ModeNormal, Mode: event.ModeNormal, Transport: "mcp"},
			},
		},
		"read only": {
			when: Start{Actor: owner, Instruction: "look", Mode: event.ModeReadOnly},
			then: []event.Event{
				event.SessionCreated{Authority: owner.Authority, Principal: owner.Principal, Title: "look", Mode: event.ModeReadOnly, Guards: readOnly},
				event.InstructionAccepted{Text: "look", Continuation: Created, RequestedMode: event.ModeReadOnly, Mode: event.ModeReadOnly, Guards: readOnly},
			},
		},
		"secret in the instruction": {
			when: Start{Actor: owner, Instruction: "use ghp_0123456789abcdefghijABCDEFGHIJ012345 to push", Title: "t"},
			then: []event.Event{
				event.SessionCreated{Authority: owner.Authority, Principal: owner.Principal, Title: "t", Mode: event.ModeNormal},
				event.InstructionAccepted{Text: "use [redacted] to push", Continuation: Created, RequestedMode: event.ModeNormal, Mode: event.ModeNormal},
			},
		},
		"no identity": {when: Start{Instruction: "x"}, kind: fault.AuthorityUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecideStart(tc.when)
			if k := fault.KindOf(err); k != tc.kind {
				t.Fatalf("kind %q, want %q", k, tc.kind)
			}
			if d := cmp.Diff(tc.then, got); d != "" {
				t.Error(d)
			}
		})
	}
	if c := given(t, started(t, Start{Instruction: "x"})); c.Lifecycle != session.Active {
		t.Errorf("a fresh Session is %q", c.Lifecycle)
	}
}

// Covers: STA-04, STA-10, SES-23
func TestDecideResume(t *testing.T) {
	normal := started(t, Start{Instruction: "first"})
	readOnly := started(t, Start{Instruction: "first", Mode: event.ModeReadOnly})
	deny := event.Guards{DenyWrite: true, DenyShell: true}
	defaults := &event.ExecutionContext{DefaultCwd: "pkg"}
	for name, tc := range map[string]struct {
		given [][]event.Event
		when  Resume
		then  []event.Event
		kind  fault.Kind
	}{
		"keeps the mode": {
			given: [][]event.Event{normal}, when: Resume{Instruction: "next"},
			then: []event.Event{event.InstructionAccepted{Text: "next", Continuation: Resumed, PreviousMode: event.ModeNormal, Mode: event.ModeNormal}},
		},
		"narrows": {
			given: [][]event.Event{normal}, when: Resume{Instruction: "look only", Mode: event.ModeReadOnly},
			then: []event.Event{event.InstructionAccepted{Text: "look only", Continuation: Resumed, RequestedMode: event.ModeReadOnly,
				PreviousMode: event.ModeNormal, Mode: event.ModeReadOnly, Guards: deny, PreviousGuards: &event.Guards{}, CapabilityChanged: true}},
		},
		"widens with the scope": {
			given: [][]event.Event{readOnly}, when: Resume{Instruction: "go", Mode: event.ModeNormal, MayWrite: true},
			then: []event.Event{event.InstructionAccepted{Text: "go", Continuation: Resumed, RequestedMode: event.ModeNormal,
				PreviousMode: event.ModeReadOnly, Mode: event.ModeNormal, PreviousGuards: &deny, CapabilityChanged: true}},
		},
		"does not widen without it": {
			given: [][]event.Event{readOnly}, when: Resume{Instruction: "go", Mode: event.ModeNormal}, kind: fault.UpgradeDenied,
		},
		"context in the same unit": {
			given: [][]event.Event{normal}, when: Resume{Instruction: "next", Context: defaults, MayWrite: true},
			then: []event.Event{
				event.InstructionAccepted{Text: "next", Continuation: Resumed, PreviousMode: event.ModeNormal, Mode: event.ModeNormal},
				event.ContextUpdated{Context: *defaults},
			},
		},
		"no other context without the scope": {
			given: [][]event.Event{normal}, when: Resume{Instruction: "next", Context: defaults}, kind: fault.InsufficientScope,
		},
		"the same context without the scope": {
			given: [][]event.Event{normal}, when: Resume{Instruction: "next", Context: &event.ExecutionContext{}},
			then: []event.Event{event.InstructionAccepted{Text: "next", Continuation: Resumed, PreviousMode: event.ModeNormal, Mode: event.ModeNormal}},
		},
		"closed stays closed": {
			given: [][]event.Event{normal, {event.SessionClosed{}}}, when: Resume{Instruction: "again"}, kind: fault.SessionClosed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecideResume(given(t, tc.given...), tc.when)
			if k := fault.KindOf(err); k != tc.kind {
				t.Fatalf("kind %q, want %q", k, tc.kind)
			}
			if err != nil && got != nil {
				t.Errorf("a refusal decided %v", got)
			}
			if d := cmp.Diff(tc.then, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Covers: SES-22
func TestDecideClose(t *testing.T) {
	active := started(t, Start{Instruction: "x"})
	if got, err := DecideClose(given(t, active)); err != nil || len(got) != 1 {
		t.Errorf("closing an Active Session: %v, %v", got, err)
	}
	if got, err := DecideClose(given(t, active, []event.Event{event.SessionClosed{}})); err != nil || len(got) != 0 {
		t.Errorf("closing a Closed Session: %v, %v", got, err)
	}
}

// Covers: STA-11
func TestCheckInstruction(t *testing.T) {
	for text, want := range map[string]fault.Kind{
		"": fault.InvalidInstruction, " \n\t": fault.InvalidInstruction, "x": "",
		strings.Repeat("字", MaxInstruction): "", strings.Repeat("字", MaxInstruction+1): fault.InvalidInstruction,
	} {
		if got := fault.KindOf(CheckInstruction(text)); got != want {
			t.Errorf("%d bytes: %q, want %q", len(text), got, want)
		}
	}
}

// One event tells the new and the previous defaults; equal ones and a Closed Session give none.
//
// Covers: SES-24
func TestDecideContext(t *testing.T) {
	pkg, sh := event.ExecutionContext{DefaultCwd: "pkg"}, event.ExecutionContext{DefaultShell: "sh"}
	active := started(t, Start{Instruction: "x", Context: sh})
	for name, tc := range map[string]struct {
		given [][]event.Event
		when  event.ExecutionContext
		then  []event.Event
		kind  fault.Kind
	}{
		"replaces":      {[][]event.Event{active}, pkg, []event.Event{event.ContextUpdated{Context: pkg, Previous: sh}}, ""},
		"clears":        {[][]event.Event{active}, event.ExecutionContext{}, []event.Event{event.ContextUpdated{Previous: sh}}, ""},
		"equal":         {[][]event.Event{active}, sh, nil, ""},
		"back again":    {[][]event.Event{active, {event.ContextUpdated{Context: pkg, Previous: sh}}}, sh, []event.Event{event.ContextUpdated{Context: sh, Previous: pkg}}, ""},
		"closed":        {[][]event.Event{active, {event.SessionClosed{}}}, pkg, nil, fault.SessionClosed},
		"closed, equal": {[][]event.Event{active, {event.SessionClosed{}}}, sh, nil, fault.SessionClosed},
	} {
		got, err := DecideContext(given(t, tc.given...), tc.when)
		if k := fault.KindOf(err); k != tc.kind {
			t.Errorf("%s: kind %q", name, k)
		}
		if d := cmp.Diff(tc.then, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Instruction files that differ from those known are one more event of the same unit.
//
// Covers: STA-10, STA-16
func TestDecideInstructionFiles(t *testing.T) {
	one, two := []event.InstructionFile{{Path: "AGENTS.md", SHA256: "1"}}, []event.InstructionFile{{Path: "AGENTS.md", SHA256: "2"}}
	first := started(t, Start{Instruction: "x", Files: one})
	if got := first[len(first)-1]; !cmp.Equal(got, event.Event(event.InstructionsObserved{Sources: one})) || len(first) != 3 {
		t.Errorf("%+v", first)
	}
	if got := started(t, Start{Instruction: "x"}); len(got) != 2 {
		t.Errorf("no files: %+v", got)
	}
	for name, tc := range map[string]struct {
		files []event.InstructionFile
		more  []event.Event
	}{
		"same":    {one, nil},
		"changed": {two, []event.Event{event.InstructionsObserved{Sources: two}}},
		"gone":    {nil, []event.Event{event.InstructionsObserved{}}},
	} {
		got, err := DecideResume(given(t, first), Resume{Instruction: "next", Files: tc.files})
		if err != nil || len(got) == 0 {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(tc.more, got[1:], cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestContextIn(t *testing.T) {
	for name, tc := range map[string]struct {
		in      *ContextIn
		project bool
		kind    fault.Kind
	}{
		"absent":             {nil, false, ""},
		"empty, no project":  {&ContextIn{}, false, ""},
		"needs a project":    {&ContextIn{DefaultCwd: "a"}, false, fault.ContextNeedsProject},
		"absolute":           {&ContextIn{DefaultCwd: "/etc"}, true, fault.InvalidContext},
		"out of the project": {&ContextIn{DefaultCwd: "../x"}, true, fault.InvalidContext},
		"other shell":        {&ContextIn{DefaultShell: "fish"}, true, fault.InvalidContext},
		"resource":           {&ContextIn{Resource: "box", DefaultCwd: "/srv/app"}, true, ""},
		"no name":            {&ContextIn{Resource: "a..b"}, true, fault.InvalidContext},
		"name too long":      {&ContextIn{Resource: strings.Repeat("n", 81)}, true, fault.InvalidContext},
		"no directory there": {&ContextIn{Resource: "box", DefaultCwd: "a\x01"}, true, fault.InvalidContext},
		"fine":               {&ContextIn{DefaultCwd: "a/b", DefaultShell: "bash"}, true, ""},
	} {
		if _, err := tc.in.Event(tc.project); fault.KindOf(err) != tc.kind {
			t.Errorf("%s: %q, want %q", name, fault.KindOf(err), tc.kind)
		}
	}
}
