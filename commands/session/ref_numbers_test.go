package session_test

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// Numbers go up and up: over restarts, removals and pages, with one reserved and never bound.
//
// Covers: SES-11, RES-12
func TestNumbersAreNeverGivenTwice(t *testing.T) {
	e := calltest.New(t, nil)
	owner := calltest.Owner().Actor.Principal
	first := start(e, args{"project": alpha})
	e.Commit(event.RefsAggregate(owner, event.RefSession, 2), event.RefReserved{Principal: owner, Kind: event.RefSession, Number: 2})
	for n := uint64(3); n <= event.RefsPage-1; n += 100 { // up to the end of the page
		e.Commit(event.RefsAggregate(owner, event.RefSession, n), event.RefReserved{Principal: owner, Kind: event.RefSession, Number: n})
	}
	e.Commit(event.RefsAggregate(owner, event.RefSession, 1), event.RefReserved{Principal: owner, Kind: event.RefSession, Number: event.RefsPage - 1})
	seen := map[string]event.SessionID{first.SessionRef: first.SessionID}
	for range 4 {
		s := start(e, args{"project": alpha})
		if seen[s.SessionRef] != "" {
			t.Fatalf("%s was given before", s.SessionRef)
		}
		seen[s.SessionRef] = s.SessionID
		e.Reopen()
	}
	if d := cmp.Diff([]string{"~s1", "~s1000", "~s1001", "~s1002", "~s1003"}, slices.Sorted(maps.Keys(seen))); d != "" {
		t.Error(d)
	}
	removeAll(e, 0, first.SessionID)
	seen[start(e, args{"project": alpha}).SessionRef] = "new"
	if len(seen) != 6 {
		t.Error("a removal gave a number free")
	}
	e.Refused(calltest.Owner(), &session.ReadHandoff, args{"session_id": "~s1"}, fault.UnknownSessionRef)
	e.Refused(calltest.Owner(), &session.ReadHandoff, args{"session_id": "~s2"}, fault.UnknownSessionRef)
	for ref, id := range seen {
		if id == "new" || id == first.SessionID {
			continue
		}
		if h := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": ref}); h.SessionID != id {
			t.Errorf("%s leads to %s, want %s", ref, h.SessionID, id)
		}
	}
}

// Many starts and lists at once, by two principals: every number is given once, and every ref
// leads where it was given for.
//
// Covers: SES-11, SES-18
func TestRefsUnderConcurrency(t *testing.T) {
	e := calltest.New(t, nil)
	var mu sync.Mutex
	seen := map[string]event.SessionID{}
	note := func(p call.Principal, ref string, id event.SessionID) {
		mu.Lock()
		defer mu.Unlock()
		k := p.Actor.Principal[:1] + ref
		if had := seen[k]; had != "" && had != id || ref == "" {
			t.Errorf("%s is %s and %s", k, had, id)
		}
		seen[k] = id
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			p := []call.Principal{calltest.Owner(), colleague()}[i%2]
			for range 3 {
				s := as[session.WorkOut](e, p, &session.WorkOnProject, args{"project": alpha, "instruction": "x"})
				note(p, s.SessionRef, s.SessionID)
				for _, r := range list(e, p, args{"project": alpha, "limit": 20}).Sessions {
					note(p, r.SessionRef, r.SessionID)
				}
			}
		})
	}
	wg.Wait()
	for k, id := range seen {
		p := map[byte]call.Principal{'a': calltest.Owner(), 'b': colleague()}[k[0]]
		if h := as[view.Handoff](e, p, &session.ReadHandoff, args{"session_id": k[1:]}); h.SessionID != id {
			t.Errorf("%s leads to %s, want %s", k, h.SessionID, id)
		}
	}
}

// Refs come in and go out, and what is stored names Sessions and Projects by their ids alone.
//
// Covers: SES-14
func TestNoRefIsStored(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha})
	for _, a := range []args{{"session_id": s.SessionRef, "instruction": "go on"}, {"session_id": s.SessionRef, "project": s.ProjectRef, "instruction": "go on"}} {
		if out := start(e, a); out.SessionID != s.SessionID || out.Project != alpha || out.Next[0].Arguments["session_id"] != string(s.SessionID) {
			t.Errorf("%+v", out)
		}
	}
	for _, spec := range []*call.Spec{runs, reads} {
		if _, err := e.Call(spec, args{"session_id": s.SessionRef, "project": s.ProjectRef}); err != nil {
			t.Fatal(err)
		}
	}
	list(e, calltest.Owner(), args{"project": s.ProjectRef})
	list(e, colleague(), args{"project": alpha})
	calltest.Must[session.UpdateContextOut](e, &session.UpdateContext, args{"session_id": s.SessionRef, "project": s.ProjectRef, "execution_context": args{"default_shell": "sh"}})
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": s.SessionRef})
	ref, commits := regexp.MustCompile(`~[sp][0-9]`), 0
	err := e.Log.Replay(context.Background(), eventlog.Range{}, func(x eventlog.Entry) error {
		commits++
		body, err := x.Commit.Encode()
		if at := ref.FindIndex(body); at != nil {
			t.Errorf("stored: %s", body)
		}
		return err
	})
	if err != nil || commits < 10 {
		t.Fatalf("%d commits, %v", commits, err)
	}
	if err := e.Log.Close(); err != nil { // state.db is whole by then
		t.Fatal(err)
	}
	err = filepath.WalkDir(e.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(`"~s1"`)) || bytes.Contains(b, []byte(`"~p1"`)) {
			t.Errorf("%s holds a ref", d.Name())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
