package session

import (
	"cmp"
	"fmt"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
)

// TaskContext holds pointers that help to find the way back into the task, at most
// MaxContextBytes of JSON (HND-42). They prove neither that something ran nor that it is done
// (HND-43).
type TaskContext struct {
	Boundary  Boundary           `json:"boundary"`
	Relevant  List[RelevantFile] `json:"relevant_files"`
	Locations Locations          `json:"failure_locations"`
	Repeated  *RepeatedFailure   `json:"repeated_failure"`
	// Decisions and Progress point to those messages that none has superseded, newest first.
	Decisions Pointers `json:"decisions"`
	Progress  Pointers `json:"progress"`
	// Steps are advisory, most urgent first.
	Steps List[TaskStep] `json:"next_steps"`
	// Continuation is the brief's, and the one entry there is.
	Continuation Continuation `json:"continuation"`
}

// RelevantFile is a path with the kind of evidence that names it, changed or read, and the newest
// event that does.
type RelevantFile struct {
	Path    string        `json:"path"`
	Source  string        `json:"source"`
	EventID event.EventID `json:"event_id"`
}

// Locations say where unresolved failures are, as their runs told it. It is unavailable where
// something fails and no run told a place.
type Locations struct {
	Section
	List[Location]
}

// Location is a place that a failure named. File is below the directory that the run was in, or
// the bare name that the tool printed.
type Location struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Name string `json:"name"`
}

// RepeatedFailure tells that one identity failed again and again within this task.
type RepeatedFailure struct {
	Name        string        `json:"name"`
	Count       int           `json:"count"`
	LastEventID event.EventID `json:"last_event_id"`
}

// Pointers are ids of messages. Total is null where the board cannot be read.
type Pointers struct {
	Total     *int              `json:"total"`
	Returned  int               `json:"returned"`
	Truncated bool              `json:"truncated"`
	Items     []event.MessageID `json:"items"`
}

// TaskStep is something that is left to do, as evidence or a message tells it: a report, and no
// instruction (HND-21). Source is the event or the message.
type TaskStep struct {
	Step   string `json:"step"`
	Text   string `json:"text"`
	Source string `json:"source"`
}

// Steps, a closed set.
const (
	StepFix     = "fix_failure"
	StepRethink = "try_another_way"
	StepRisk    = "settle_risk"
	StepGuide   = "read_guidance"
	StepAnswer  = "answer_question"
	StepTodo    = "do_todo"
)

func newTaskContext(v View, ev evidence, s Snapshot) TaskContext {
	c := TaskContext{Boundary: boundary(v, ev), Relevant: relevantFiles(v, ev), Locations: failureLocations(ev, s),
		Decisions: pointers(v, s, event.MessageDecision), Progress: pointers(v, s, event.MessageProgress),
		Steps: steps(v, ev, s), Continuation: continuation(v.Core)}
	if r := ev.repeated; r != nil && s.IncludeValidation {
		c.Repeated = &RepeatedFailure{Name: r.name(), Count: r.count, LastEventID: r.id}
	}
	within(&c, MaxContextBytes, c.shed)
	return c
}

// shed takes the least useful part away: files from the end, then the pointers to what the brief
// shows beside, the places, the steps, and the diagnostic. The entry stays.
func (c *TaskContext) shed(over int) bool {
	for _, part := range []func(int) bool{c.Relevant.shed, c.Progress.shed, c.Decisions.shed, c.Locations.shed, c.Steps.shed} {
		if part(over) {
			return true
		}
	}
	had := c.Repeated != nil
	c.Repeated = nil
	return had
}

func relevantFiles(v View, ev evidence) List[RelevantFile] {
	out := make([]RelevantFile, 0, MaxBriefRelevant)
	total := 0
	add := func(path, source string, by *Item) {
		if total++; len(out) < MaxBriefRelevant {
			out = append(out, RelevantFile{path, source, by.ID(v.Core.ID)})
		}
	}
	for _, p := range ev.changed {
		add(p, "changed", ev.changedBy[p])
	}
	for _, p := range ev.recent {
		if ev.changedBy[p] == nil {
			add(p, "read", ev.readBy[p])
		}
	}
	l := List[RelevantFile]{Total: total, Items: out}
	l.count()
	return l
}

func failureLocations(ev evidence, s Snapshot) Locations {
	if !s.IncludeValidation {
		return Locations{Section{Status: statusNotRequested}, List[Location]{Items: []Location{}}}
	}
	var all []Location
	failures := ev.cases
	for _, f := range failures {
		if f.File != "" {
			all = append(all, Location{f.File, f.Line, f.Name})
		}
	}
	l := Locations{Section{Status: statusAvailable}, newList(all, MaxBriefFailures)}
	if len(all) == 0 && len(failures) > 0 {
		l.Section = Section{statusUnavailable, codeLocations}
	}
	return l
}

func pointers(v View, s Snapshot, kind event.MessageKind) Pointers {
	p := Pointers{Items: []event.MessageID{}}
	if !discussed(v, s) {
		return p
	}
	total := 0
	for _, m := range slices.Backward(v.Board.Messages()) {
		if m.Kind != kind || m.SupersededBy != "" {
			continue
		}
		if total++; len(p.Items) < MaxBriefNotes {
			p.Items = append(p.Items, m.ID)
		}
	}
	p.Total = &total
	p.count()
	return p
}

func (p *Pointers) count() {
	p.Returned = len(p.Items)
	p.Truncated = p.Total != nil && p.Returned < *p.Total
}

// shed takes the oldest away, as List.shed does.
func (p *Pointers) shed(over int) bool {
	n := len(p.Items)
	if n == 0 {
		return false
	}
	gone := 1 + over/(size(p.Items[0])+1)
	p.Items = p.Items[:max(0, n-gone)]
	p.count()
	return true
}

// steps are what fails, then what is open on the board: of each kind the most urgent first, and
// of those what waits for longest.
func steps(v View, ev evidence, s Snapshot) List[TaskStep] {
	l := List[TaskStep]{Items: []TaskStep{}}
	add := func(step, source string, text func() string) {
		if l.Total++; len(l.Items) < MaxBriefSteps {
			l.Items = append(l.Items, TaskStep{step, text(), source})
		}
	}
	if s.IncludeValidation {
		if r := ev.repeated; r != nil {
			add(StepRethink, string(r.id), func() string { return fmt.Sprintf("%s failed %d times in this task", r.name(), r.count) })
		}
		for _, f := range ev.cases {
			add(StepFix, string(f.EventID), f.place)
		}
	}
	if discussed(v, s) {
		for _, m := range openMessages(v.Board) {
			add(waiting[m.Kind].step, string(m.ID), m.short)
		}
	}
	l.count()
	return l
}

// waiting are the kinds of messages that wait for somebody while they are open, in the order in
// which they are told, and the step that each asks for.
var waiting = map[event.MessageKind]struct {
	order int
	step  string
}{event.MessageRisk: {0, StepRisk}, event.MessageGuidance: {1, StepGuide}, event.MessageQuestion: {2, StepAnswer}, event.MessageTodo: {3, StepTodo}}

// openMessages are those that wait for somebody and that none has superseded.
func openMessages(b Board) []*Message {
	var out []*Message
	for _, m := range b.Messages() {
		if _, waits := waiting[m.Kind]; waits && m.Status == MessageOpen && m.SupersededBy == "" {
			out = append(out, m)
		}
	}
	urgency := map[event.Priority]int{event.PriorityHigh: -1, event.PriorityLow: 1}
	slices.SortStableFunc(out, func(a, b *Message) int {
		return cmp.Or(cmp.Compare(waiting[a.Kind].order, waiting[b.Kind].order), cmp.Compare(urgency[a.Priority], urgency[b.Priority]))
	})
	return out
}

// short is the beginning of a message.
func (m *Message) short() string {
	t, cutOff := cut(m.Text, MaxStepChars)
	t = redact.Text(t, MaxStepChars)
	if cutOff {
		t += "…"
	}
	return t
}

// place names a failure and where it is.
func (f Failure) place() string {
	switch {
	case f.File == "":
		return f.Name
	case f.Line == 0:
		return fmt.Sprintf("%s in %s", f.Name, f.File)
	default:
		return fmt.Sprintf("%s at %s:%d", f.Name, f.File, f.Line)
	}
}
