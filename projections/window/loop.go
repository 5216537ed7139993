package window

import (
	"time"

	"webcodex/eventlog/event"
)

// Continuities of a loop.
const (
	LoopObserved    = "observed"
	LoopUnavailable = "unavailable" // the host named no window, and nothing else takes its place (WIN-25)
)

// Call is one answered MCP call, as the timing of loops sees it.
type Call struct {
	Principal  string
	Window     event.WindowID
	Project    event.ProjectRef // zero: it was about none
	Tool       string
	Started    time.Time
	Answered   time.Time
	Meaningful bool
}

// Timing is one meaningful call. Gap is from its answer to the start of the window's next
// meaningful call, null until there was one: it tells of no turn and of nobody's thinking
// (WIN-24). An answer was handed on, and may have been received or not.
type Timing struct {
	Tool       string `json:"tool_name"`
	Project    string `json:"project,omitempty"`
	StartedAt  string `json:"started_at"`
	DurationMS int64  `json:"duration_ms"`
	GapMS      *int64 `json:"next_call_gap_ms"`
}

// Loop is what was seen of one window's meaningful calls, oldest first.
type Loop struct {
	Continuity string   `json:"continuity"`
	Calls      []Timing `json:"calls"`
}

// NewLoop pairs adjacent meaningful calls of one window of one principal, whatever Projects
// they are about (WIN-22, WIN-23). A call about a Project that is not visible is not shown, nor
// is the gap that its start would end. calls are in the order of their start.
func NewLoop(calls []Call, principal string, w event.WindowID, visible func(event.ProjectRef) bool) Loop {
	l := Loop{Continuity: LoopObserved, Calls: []Timing{}}
	if w == "" {
		l.Continuity = LoopUnavailable
		return l
	}
	var before *Call // the meaningful call before, shown or not
	for i, c := range calls {
		if c.Principal != principal || c.Window != w || !c.Meaningful {
			continue
		}
		shown := c.Project.Zero() || visible(c.Project)
		if shown && before != nil && (before.Project.Zero() || visible(before.Project)) {
			gap := max(0, c.Started.Sub(before.Answered).Milliseconds())
			l.Calls[len(l.Calls)-1].GapMS = &gap
		}
		before = &calls[i]
		if !shown {
			continue
		}
		t := Timing{Tool: c.Tool, StartedAt: event.FormatTime(c.Started), DurationMS: max(0, c.Answered.Sub(c.Started).Milliseconds())}
		if !c.Project.Zero() {
			t.Project = c.Project.String()
		}
		l.Calls = append(l.Calls, t)
	}
	return l
}
