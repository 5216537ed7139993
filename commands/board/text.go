package board

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/internal/token"
)

// Domains of what is stored in place of a caller's keys, and of what came under them.
const (
	deliveryDomain   = "webcodex.session-message-delivery.v1"
	payloadDomain    = "webcodex.session-message-payload.v1"
	completionDomain = "webcodex.session-message-completion.v1"
	answerDomain     = "webcodex.session-message-answer.v1"
)

// said is a text of the board as it is stored: within its bounds, without secrets. What came
// under a key is hashed in this form too, so that no hash of a secret lies in the log.
func said(field, text string) (string, error) {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return "", invalid(field, "empty", "%s must say something", field)
	case n > MaxText:
		return "", invalid(field, "too_long", "%s has at most %d characters", field, MaxText).
			WithNext("shorten it; put long material into files")
	}
	return redact.Text(text, MaxText), nil
}

func taggedWith(tags []string) ([]string, error) {
	if len(tags) > MaxTags {
		return nil, invalid("tags", "too_many", "a message has at most %d tags", MaxTags)
	}
	var out []string
	for i, tag := range tags {
		field := "tags[" + strconv.Itoa(i) + "]"
		switch {
		case strings.TrimSpace(tag) == "":
			return nil, invalid(field, "empty", "a tag must say something")
		case utf8.RuneCountInString(tag) > MaxTagChars:
			return nil, invalid(field, "too_long", "a tag has at most %d characters", MaxTagChars)
		}
		out = append(out, redact.Text(tag, MaxTagChars))
	}
	return out, nil
}

// priorityOf is normal where none is given.
func priorityOf(p string) (event.Priority, error) {
	switch p := event.Priority(p); p {
	case "":
		return event.PriorityNormal, nil
	case event.PriorityLow, event.PriorityNormal, event.PriorityHigh:
		return p, nil
	}
	return "", fault.New(fault.InvalidArguments, "priority must be one of low, normal, high").WithField("priority")
}

func kindOf(k string) (event.MessageKind, error) {
	if kind := event.MessageKind(k); slices.Contains(event.MessageKinds(), kind) {
		return kind, nil
	}
	return "", fault.New(fault.InvalidArguments, "kind is none of the message kinds").WithField("kind")
}

// keyed checks a caller's key and gives what is stored in its place.
func keyed(field, domain string, id event.SessionID, key string) (string, error) {
	if n := utf8.RuneCountInString(key); n == 0 || n > MaxKey {
		return "", fault.New(fault.InvalidArguments, "%s has 1 to %d characters", field, MaxKey).WithField(field)
	}
	return token.Digest(domain, string(id), key), nil
}

// formOfFence is FenceForm; a text of another form is no fence of anything.
var formOfFence = regexp.MustCompile(FenceForm)

// fenced checks the form of a fence. Whether it is the assignment's is decided on the board.
func fenced(fence string) error {
	f := fault.New(fault.InvalidFence, "this is no assignment fence")
	switch {
	case fence == "":
		f = fault.New(fault.InvalidArguments, "a completion needs the fence of the assignment it answers")
	case len(fence) > FenceChars:
		f.WithReason("oversized")
	case !formOfFence.MatchString(fence):
		f.WithReason("malformed")
	default:
		return nil
	}
	return f.WithField("expected_assignment_fence").WithNext("call get_session_assignment and pass its assignment_fence")
}

// payload hashes what was posted under a delivery key; who posted it is no part.
func (p Post) payload() string {
	return token.Digest(payloadDomain, append([]string{string(p.Kind), p.Text, string(p.Priority), string(p.ReplyTo),
		string(p.Supersedes), strconv.FormatBool(p.RequiresAck)}, p.Tags...)...)
}

// payload hashes what was answered under a completion key, and to which todo.
func (c Complete) payload() string {
	return token.Digest(answerDomain, append([]string{string(c.Todo), c.Text, string(c.Priority)}, c.Tags...)...)
}

func invalid(field, reason, format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidMessage, format, args...).WithField(field).WithReason(reason)
}
