package session

import (
	"slices"

	"webcodex/eventlog/event"
)

// posted: what is no kind or priority of ours becomes the mildest one that is.
func (s *sanitiser) posted(e *event.MessagePosted) {
	ident(s, &e.Message)
	ident(s, &e.ReplyTo)
	ident(s, &e.Supersedes)
	ident(s, &e.Author)
	if !slices.Contains(event.MessageKinds(), e.Kind) {
		put(s, &e.Kind, event.MessageNote)
	}
	s.said(&e.Text, &e.Tags, &e.Priority)
	opaque(s, &e.Key, &e.Payload)
}

func (s *sanitiser) resolved(e *event.MessageResolved) {
	ident(s, &e.Message)
	s.text(&e.Resolution, MaxMessageChars)
}

func (s *sanitiser) completed(e *event.MessageCompleted) {
	ident(s, &e.Todo)
	ident(s, &e.Answer)
	ident(s, &e.Completion)
	ident(s, &e.Author)
	s.said(&e.Text, &e.Tags, &e.Priority)
	opaque(s, &e.Key, &e.Payload)
}

func (s *sanitiser) acknowledged(e *event.MessagesAcknowledged) {
	if len(e.Messages) > MaxMessages {
		e.Messages, s.changed = e.Messages[:MaxMessages], true
	}
	for i := range e.Messages {
		if id := e.Messages[i]; !id.Valid() {
			e.Messages, s.changed = slices.Clone(e.Messages), true
			ident(s, &e.Messages[i])
		}
	}
}

// said are the text, the tags and the priority of a message (MSG-02).
func (s *sanitiser) said(text *string, tags *[]string, p *event.Priority) {
	s.text(text, MaxMessageChars)
	if len(*tags) > MaxTags {
		*tags, s.changed = (*tags)[:MaxTags], true
	}
	for i := range *tags {
		tag := (*tags)[i]
		if s.text(&tag, MaxTagChars); tag != (*tags)[i] {
			*tags = slices.Clone(*tags)
			(*tags)[i] = tag
		}
	}
	switch *p {
	case event.PriorityLow, event.PriorityNormal, event.PriorityHigh:
	default:
		put(s, p, event.PriorityNormal)
	}
}
