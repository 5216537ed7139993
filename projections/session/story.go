package session

import (
	"fmt"
	"strings"

	"webcodex/eventlog/event"
)

// Step is one commit as the replay tells it, and one line of its JSON (shapes.md 5).
type Step struct {
	Version   uint64             `json:"version"`
	Seq       uint64             `json:"seq"`
	At        string             `json:"at"`
	CommandID event.CommandID    `json:"command_id"`
	Inv       event.InvocationID `json:"inv"`
	Actor     event.Actor        `json:"actor"`
	Events    []StepEvent        `json:"events"`
	Hash      string             `json:"hash"`
	Prev      string             `json:"prev"`
}

// StepEvent is one event: its stored type and a sentence of what it changed. Text of callers
// in it is untrusted; a terminal gets it through the cleaner of internal/redact.
type StepEvent struct {
	Type    string `json:"type"`
	Summary string `json:"summary"`
}

// NewStep tells one commit. It needs no state: a step follows from its commit alone.
func NewStep(s Stored) Step {
	c := s.Commit
	st := Step{Version: c.Version, Seq: s.Seq, At: event.FormatTime(c.At), CommandID: c.ID, Inv: c.Invocation,
		Actor: c.Actor, Events: make([]StepEvent, 0, len(c.Events)), Hash: s.Hash, Prev: c.Prev}
	for _, e := range c.Events {
		name, _ := event.NameOf(e)
		se, ok := e.(event.SessionEvent)
		if !ok {
			continue
		}
		se, _ = sanitise(se)
		st.Events = append(st.Events, StepEvent{name, tell(se)})
	}
	return st
}

func tell(e event.SessionEvent) string {
	switch e := e.(type) {
	case event.SessionCreated:
		where := "without a Project"
		if !e.Project.Zero() {
			where = "on " + e.Project.String()
		}
		return fmt.Sprintf("Session %q began in mode %s %s", brief(e.Title), e.Mode, where)
	case event.InstructionAccepted:
		return tellInstruction(e)
	case event.ContextUpdated:
		return fmt.Sprintf("defaults are now cwd %q, shell %q (were %q, %q)", brief(e.Context.DefaultCwd), brief(e.Context.DefaultShell),
			brief(e.Previous.DefaultCwd), brief(e.Previous.DefaultShell))
	case event.InstructionsObserved:
		return tellInstructionFiles(e)
	case event.SessionClosed:
		return "the Session was closed"
	case event.ToolCallStarted:
		return tellStart(e)
	case event.ToolCallFinished:
		return tellFinish(e)
	case event.ExecutionFinished:
		return tellJob(e)
	case event.ExecutionReconciled:
		return fmt.Sprintf("later proof about %s: %s%s", e.Execution, stateText(e.Effect), exit(e.ExitCode))
	case event.SessionRefBound:
		return fmt.Sprintf("the starter's ref is ~s%d", e.Number)
	case event.MessagePosted:
		return tellPosted(e)
	case event.MessageResolved:
		return fmt.Sprintf("message %s was resolved: %q", e.Message, brief(e.Resolution))
	case event.MessageCompleted:
		return fmt.Sprintf("todo %s was completed by the answer %s: %q", e.Todo, e.Answer, brief(e.Text))
	case event.MessagesAcknowledged:
		return fmt.Sprintf("first acknowledgement of %d messages was seen", len(e.Messages))
	case event.SessionCarried:
		return fmt.Sprintf("state carried forward, part %d of %d", e.Part.Part, e.Part.Parts)
	}
	return ""
}

func brief(s string) string {
	t, cutOff := cut(s, MaxStoryChars)
	if cutOff {
		t += "…"
	}
	return t
}

func tellInstruction(e event.InstructionAccepted) string {
	s := fmt.Sprintf("instruction (%s): %q", e.Continuation, brief(e.Text))
	if e.PreviousMode != "" && e.PreviousMode != e.Mode {
		s += fmt.Sprintf("; mode %s → %s", e.PreviousMode, e.Mode)
	}
	return s
}

func tellPosted(e event.MessagePosted) string {
	s := fmt.Sprintf("%s %s was posted", e.Kind, e.Message)
	if e.ReplyTo != "" {
		s += " in reply to " + string(e.ReplyTo)
	}
	if e.Supersedes != "" {
		s += ", it supersedes " + string(e.Supersedes)
	}
	return fmt.Sprintf("%s: %q", s, brief(e.Text))
}

func tellInstructionFiles(e event.InstructionsObserved) string {
	if len(e.Sources) == 0 {
		return "the Project's instruction files are gone"
	}
	var b strings.Builder
	b.WriteString("instruction files seen:")
	for i, f := range e.Sources {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s (%d bytes, %.12s)", brief(f.Path), f.Bytes, f.SHA256)
	}
	return b.String()
}

func tellStart(e event.ToolCallStarted) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s started%s", brief(e.Tool), as(e.Role))
	in := e.Input
	for _, part := range []struct{ name, value string }{{"executable", in.Executable}, {"language", in.Language},
		{"shell", in.Shell}, {"cwd", in.Cwd}, {"purpose", in.Purpose}, {"target", in.Target}} {
		if part.value != "" {
			fmt.Fprintf(&b, ", %s %s", part.name, brief(part.value))
		}
	}
	if n := max(in.PathCount, len(in.Paths)); n > 0 {
		b.WriteString(", " + paths("on", in.Paths, n))
	}
	if in.DryRun {
		b.WriteString(", dry run")
	}
	if e.Execution != nil {
		fmt.Fprintf(&b, " as %s", e.Execution.ID)
	}
	return b.String()
}

func tellFinish(e event.ToolCallFinished) string {
	var b strings.Builder
	if e.Promoted {
		fmt.Fprintf(&b, "%s goes on as Job %s after %d ms%s", brief(e.Tool), e.Execution, e.DurationMS, as(e.Role))
	} else {
		fmt.Fprintf(&b, "%s %s%s%s", brief(e.Tool), e.Status, took(" in", e.DurationMS, e.Recovered), as(e.Role))
	}
	b.WriteString(exit(e.ExitCode))
	kind := e.ErrorKind
	if kind == "" {
		kind = e.FailureKind
	}
	if kind != "" {
		b.WriteString(", " + brief(kind))
	}
	if s := e.Effect.State; s != "" && s != event.Completed && string(s) != kind && !e.Promoted {
		b.WriteString(", " + string(s))
	}
	if len(e.Changed) > 0 {
		b.WriteString(", " + paths("changed", e.Changed, len(e.Changed)))
	}
	b.WriteString(tests(e.Validation))
	if e.Replays != "" {
		fmt.Fprintf(&b, ", answered with %s", e.Replays)
	}
	if e.Recovered {
		b.WriteString(" (recorded after a restart)")
	}
	return b.String()
}

func tellJob(e event.ExecutionFinished) string {
	return fmt.Sprintf("Job %s of %s ended%s: %s%s%s", e.Execution, brief(e.Tool),
		took(" after", e.DurationMS, e.Effect.State == event.OutcomeUnknown), stateText(e.Effect),
		exit(e.ExitCode), tests(e.Validation))
}

func as(r event.Role) string {
	if r == event.RoleRecorder {
		return " (recorder)"
	}
	return ""
}

func stateText(e event.Effect) string {
	if e.State == "" {
		return "state not recorded"
	}
	return string(e.State)
}

func exit(code *int) string {
	if code == nil {
		return ""
	}
	return fmt.Sprintf(", exit code %d", *code)
}

func tests(v *event.Validation) string {
	if v == nil {
		return ""
	}
	result := "no result"
	if v.Passed != nil && *v.Passed {
		result = "passed"
	} else if v.Passed != nil {
		result = "failed"
	}
	return fmt.Sprintf(", validation %s: %d of %d tests passed", result, v.TestsPassed, v.TestsRun)
}

// storyPaths is how many paths one sentence names.
const storyPaths = 4

func paths(verb string, list []string, total int) string {
	shown := make([]string, 0, storyPaths)
	for _, p := range first(list, storyPaths) {
		shown = append(shown, brief(p))
	}
	s := fmt.Sprintf("%s %d paths", verb, total)
	if len(shown) > 0 {
		s = verb + " " + strings.Join(shown, ", ")
		if total > len(shown) {
			s += fmt.Sprintf(" and %d more", total-len(shown))
		}
	}
	return s
}

// took tells a duration. After a crash 0 stands for one that nobody knows.
func took(word string, ms int64, afterCrash bool) string {
	if ms == 0 && afterCrash {
		return ""
	}
	return fmt.Sprintf("%s %d ms", word, ms)
}
