package session

import (
	"slices"

	"webcodex/eventlog/event"
)

// Discussion is the board in short: counts over all that is retained, and the newest of each
// group.
type Discussion struct {
	SessionID   event.SessionID `json:"session_id"`
	Counts      BoardCounts     `json:"counts"`
	Guidance    Talk            `json:"open_guidance"`
	Questions   Talk            `json:"open_questions"`
	Risks       Talk            `json:"open_risks"`
	Todos       Talk            `json:"open_todos"`
	HighTodos   Talk            `json:"high_priority_open_todos"`
	Answers     Talk            `json:"recent_answers"`
	Completions Talk            `json:"recent_completions"`
	Progress    Talk            `json:"recent_progress"`
	Decisions   Talk            `json:"recent_decisions"`
}

// BoardCounts cover the retained board, not the Session's lifetime.
type BoardCounts struct {
	Total    int                             `json:"total"`
	Open     int                             `json:"open"`
	Resolved int                             `json:"resolved"`
	ByKind   map[event.MessageKind]KindCount `json:"by_kind"`
}

// KindCount is of the messages of one kind.
type KindCount struct {
	Total int `json:"total"`
	Open  int `json:"open"`
}

// Talk is a group of messages: the newest, newest first.
type Talk struct {
	Total     int    `json:"total"`
	Returned  int    `json:"returned"`
	Truncated bool   `json:"truncated"`
	Items     []Said `json:"items"`
}

// Said is a message in short.
type Said struct {
	MessageID    event.MessageID   `json:"message_id"`
	Kind         event.MessageKind `json:"kind"`
	Status       MessageStatus     `json:"status"`
	Priority     event.Priority    `json:"priority"`
	CreatedAt    string            `json:"created_at"`
	Message      string            `json:"message"`
	Truncated    bool              `json:"truncated"`
	ReplyTo      *event.MessageID  `json:"reply_to"`
	SupersededBy *event.MessageID  `json:"superseded_by"`
	RequiresAck  bool              `json:"requires_ack"`
}

// NewDiscussion sums up a board. limit is clamped to 1..MaxDiscussionItems; nil: that.
func NewDiscussion(id event.SessionID, b Board, limit *int) Discussion {
	n := clamp(limit, MaxDiscussionItems, MaxDiscussionItems)
	d := Discussion{SessionID: id, Counts: b.Count()}
	open := func(k event.MessageKind) func(*Message) bool {
		return func(m *Message) bool { return m.Kind == k && m.Status == MessageOpen }
	}
	kind := func(k event.MessageKind) func(*Message) bool {
		return func(m *Message) bool { return m.Kind == k }
	}
	for _, g := range []struct {
		talk *Talk
		want func(*Message) bool
	}{
		{&d.Guidance, open(event.MessageGuidance)}, {&d.Questions, open(event.MessageQuestion)}, {&d.Risks, open(event.MessageRisk)},
		{&d.Todos, open(event.MessageTodo)},
		{&d.HighTodos, func(m *Message) bool { return open(event.MessageTodo)(m) && m.Priority == event.PriorityHigh }},
		{&d.Answers, kind(event.MessageAnswer)},
		{&d.Completions, func(m *Message) bool { return m.Kind == event.MessageTodo && m.Completion != "" }},
		{&d.Progress, kind(event.MessageProgress)}, {&d.Decisions, kind(event.MessageDecision)},
	} {
		*g.talk = b.talk(n, g.want)
	}
	return d
}

// Count is over the retained messages.
func (b Board) Count() BoardCounts {
	c := BoardCounts{ByKind: map[event.MessageKind]KindCount{}}
	for _, k := range event.MessageKinds() {
		c.ByKind[k] = KindCount{}
	}
	for _, m := range b.Messages() {
		k := c.ByKind[m.Kind]
		k.Total++
		if m.Status == MessageOpen {
			k.Open++
			c.Open++
		}
		c.ByKind[m.Kind] = k
	}
	c.Total = b.Len()
	c.Resolved = c.Total - c.Open
	return c
}

func (b Board) talk(limit int, want func(*Message) bool) Talk {
	t := Talk{Items: []Said{}}
	for _, m := range slices.Backward(b.Messages()) {
		if !want(m) {
			continue
		}
		if t.Total++; len(t.Items) < limit {
			t.Items = append(t.Items, m.said())
		}
	}
	t.Returned = len(t.Items)
	t.Truncated = t.Returned < t.Total
	return t
}

func (m *Message) said() Said {
	text, short := cut(m.Text, MaxDiscussionChars)
	if short {
		text, _ = cut(text, MaxDiscussionChars-1)
		text += "…"
	}
	return Said{MessageID: m.ID, Kind: m.Kind, Status: m.Status, Priority: m.Priority, CreatedAt: event.FormatTime(m.Created),
		Message: text, Truncated: short, ReplyTo: absent(m.ReplyTo), SupersededBy: absent(m.SupersededBy), RequiresAck: m.RequiresAck}
}
