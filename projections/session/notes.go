package session

import (
	"fmt"
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
)

// Notes are the newest messages of one kind on the board, newest first: what somebody wrote, and
// never an instruction, an authority or a proof (HND-21). Total is over all that is retained; it
// is null where the board cannot be read: an empty list would claim that there are none (HND-20).
type Notes struct {
	Total     *int   `json:"total"`
	Returned  int    `json:"returned"`
	Truncated bool   `json:"truncated"`
	Items     []Note `json:"items"`
}

// Note is a message in short.
type Note struct {
	MessageID    event.MessageID  `json:"message_id"`
	Status       MessageStatus    `json:"status"`
	CreatedAt    string           `json:"created_at"`
	SupersededBy *event.MessageID `json:"superseded_by"`
	Text         string           `json:"text"`
	// Truncated: the message is longer. Redacted: something was taken out of it (HND-19).
	Truncated bool `json:"truncated"`
	Redacted  bool `json:"redacted"`
}

func discussed(v View, s Snapshot) bool { return !s.NoDiscussion && v.Board.unread == 0 }

func newNotes(v View, s Snapshot, kind event.MessageKind) Notes {
	n := Notes{Items: []Note{}}
	if !discussed(v, s) {
		return n
	}
	talk := v.Board.talk(MaxBriefNotes, func(m *Message) bool { return m.Kind == kind })
	for _, m := range talk.Items {
		text := redact.Text(m.Message, MaxExcerptChars)
		n.Items = append(n.Items, Note{MessageID: m.MessageID, Status: m.Status, CreatedAt: m.CreatedAt, SupersededBy: m.SupersededBy,
			Text: text, Truncated: m.Truncated, Redacted: text != m.Message || containsMark(text)})
	}
	n.Total = &talk.Total
	n.count()
	return n
}

func (n *Notes) count() {
	n.Returned = len(n.Items)
	n.Truncated = n.Total != nil && n.Returned < *n.Total
}

// drop takes the oldest away.
func (n *Notes) drop() {
	n.Items = n.Items[:len(n.Items)-1]
	n.count()
}

func newAttention(v View, s Snapshot) Attention {
	a := Attention{Jobs: jobsOf(v, s)}
	if !discussed(v, s) {
		return a
	}
	by := map[event.MessageKind]int{}
	for _, m := range openMessages(v.Board) { // what another message stands for now waits for nobody
		by[m.Kind]++
	}
	open := func(k event.MessageKind) *int {
		n := by[k]
		return &n
	}
	a.OpenGuidance, a.OpenQuestions = open(event.MessageGuidance), open(event.MessageQuestion)
	a.OpenTodos, a.OpenRisks = open(event.MessageTodo), open(event.MessageRisk)
	return a
}

// risks are the open ones, which block (HND-27).
func (a Attention) risks() int { return count(a.OpenRisks) }

// open counts the messages that wait for somebody.
func (a Attention) open() int {
	return count(a.OpenGuidance) + count(a.OpenQuestions) + count(a.OpenTodos) + count(a.OpenRisks)
}

func count(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// Said names what is open on the board, empty where nothing is.
func (a Attention) Said() string {
	var out []string
	for _, k := range []struct {
		n         *int
		one, many string
	}{{a.OpenRisks, "risk", "risks"}, {a.OpenGuidance, "guidance", "guidance"}, {a.OpenQuestions, "question", "questions"}, {a.OpenTodos, "todo", "todos"}} {
		switch n := count(k.n); n {
		case 0:
		case 1:
			out = append(out, "1 "+k.one)
		default:
			out = append(out, fmt.Sprintf("%d %s", n, k.many))
		}
	}
	return strings.Join(out, ", ")
}

// why tells of a todo how to take it too: a host's list of tools need not hold those that do.
func (a Attention) why() string {
	why := "open on the board: " + a.Said()
	if count(a.OpenTodos) > 0 {
		why += "; get_session_assignment before the work on a todo, complete_session_message after it"
	}
	return why
}

// ExternalReport is what an adapter outside reported about the Session: a claim and no proof.
type ExternalReport struct {
	AdapterID  string `json:"adapter_id"`
	EventID    string `json:"event_id"`
	Tool       string `json:"tool"`
	Status     string `json:"status"` // as reported
	ReceivedAt string `json:"received_at"`
}

// ExternalReports are the reports about a Session at one moment, bounded: all are counted, the
// newest MaxBriefReports are there, newest first.
type ExternalReports struct {
	Total, Unknown int
	Newest         []ExternalReport
}

// Same reports whether two snapshots show the same: reports only ever come (HND-36).
func (r *ExternalReports) Same(o *ExternalReports) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Total == o.Total && r.Unknown == o.Unknown && slices.Equal(r.Newest, o.Newest)
}

// newExternal shows the reports; without a Project or where they could not be read nothing is
// claimed about them (HND-24).
func newExternal(c Core, s Snapshot) ExternalObservations {
	out := ExternalObservations{Status: statusUnavailable, ReasonCode: codeExternal, Provenance: "external_report"}
	if s.External == nil || c.Project.Zero() {
		return out
	}
	total, unknown := s.External.Total, s.External.Unknown
	out.Status, out.ReasonCode, out.Total, out.Unknown = statusAvailable, "", &total, &unknown
	out.Items = append([]ExternalReport{}, s.External.Newest[:min(MaxBriefReports, len(s.External.Newest))]...)
	out.count()
	return out
}

func (o *ExternalObservations) count() {
	n := len(o.Items)
	short := n < *o.Total
	o.Returned, o.Truncated = &n, &short
}

// drop takes the oldest away; all are counted still (HND-25).
func (o *ExternalObservations) drop() {
	o.Items = o.Items[:len(o.Items)-1]
	o.count()
}
