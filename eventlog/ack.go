package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
)

// Error codes of JetStream that mean something of their own here.
const (
	codeWrongLastSeq         = 10071
	codeWrongLastSeqConstant = 10164
	codeStoreFailed          = 10077 // MaxBytes reached: a clean refusal, nothing was stored
)

var errSilent = errors.New("no acknowledgement")

// ack is the stream's answer to a publication: a sequence, or a code.
type ack struct {
	seq  uint64
	code int
	text string
}

// ackPrefix begins the usual answer, which is read without the JSON decoder: it is on the
// path of every commit.
var ackPrefix = []byte(`{"stream":"` + streamName + `",`)

func parseAck(m *nats.Msg) (ack, error) {
	if rest, ok := bytes.CutPrefix(m.Data, ackPrefix); ok {
		rest = bytes.TrimLeft(rest, " ")
		if digits, ok := bytes.CutPrefix(rest, []byte(`"seq":`)); ok {
			if text, ok := bytes.CutSuffix(digits, []byte("}")); ok {
				if seq, err := strconv.ParseUint(string(text), 10, 64); err == nil {
					return ack{seq: seq}, nil
				}
			}
		}
	}
	if m.Header.Get("Status") == "503" {
		return ack{}, nats.ErrNoResponders
	}
	var a struct {
		Seq   uint64 `json:"seq"`
		Error *struct {
			ErrCode     int    `json:"err_code"`
			Code        int    `json:"code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return ack{}, err
	}
	if a.Error != nil {
		return ack{code: max(a.Error.ErrCode, 1), text: a.Error.Description}, nil
	}
	if a.Seq == 0 {
		return ack{}, errSilent
	}
	return ack{seq: a.Seq}, nil
}

// look reads the aggregate's commits after the expected sequence and settles the entry if
// its own command id is among them: another writer may have come between,
// so the last message alone would prove nothing. False with the log not failed means that
// the commit is not there; other then tells that somebody else's is.
func (c *committer) look(e *entry) (mine, other bool) {
	for from := e.expect.Seq + 1; ; {
		raw, err := c.nextOf(e.subject, from)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return false, other
		case err != nil:
			c.l.fail(err, "log_unreadable", "a commit was not acknowledged and the log cannot be read")
			return false, other
		}
		found, err := event.Decode(raw.Data)
		if err == nil && found.ID == e.commit.ID && event.Hash(raw.Data) == e.hash {
			e.seq, e.settled, e.err = raw.Sequence, true, nil
			return true, other
		}
		from, other = raw.Sequence+1, true
	}
}

// nextOf is the first message of a subject at or after a sequence.
func (c *committer) nextOf(subject string, from uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := c.l.readContext()
	defer cancel()
	s, err := c.l.js.Stream(ctx, streamName)
	if err != nil {
		return nil, err
	}
	return s.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
}
