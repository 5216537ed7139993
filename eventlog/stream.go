package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
)

// The one stream. The 0 is the partition: in every subject from the first day, so that the
// log can be split without renaming anything.
const (
	streamName    = "LOG"
	subjectPrefix = "wc.log.0."
)

func subjectOf(a event.Aggregate) string { return subjectPrefix + string(a.Domain) + "." + a.ID }

// onSubject reports whether a subject is the aggregate's.
func onSubject(subject string, a event.Aggregate) bool {
	rest, ok := strings.CutPrefix(subject, subjectPrefix)
	d := len(a.Domain)
	return ok && len(rest) == d+1+len(a.ID) && rest[:d] == string(a.Domain) && rest[d] == '.' && rest[d+1:] == a.ID
}

// aggregateOf reads a subject back.
func aggregateOf(subject string) (event.Aggregate, bool) {
	rest, ok := strings.CutPrefix(subject, subjectPrefix)
	if !ok {
		return event.Aggregate{}, false
	}
	domain, id, ok := strings.Cut(rest, ".")
	a := event.Aggregate{Domain: event.Domain(domain), ID: id}
	return a, ok && a.Valid()
}

// streamConfig has no limit that deletes: at the bound the answer is an error (law 11).
func streamConfig(maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        streamName,
		Subjects:    []string{"wc.log.>"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    maxBytes,
		MaxMsgSize:  maxMessage,
		Duplicates:  dedupeWindow,
		Replicas:    1,
		AllowDirect: true,
		DenyDelete:  true,
	}
}

// ensureStream opens or creates the stream; created tells which. A stream whose meta file
// was lost is re-created with the identical configuration and finds its blocks again. Where the
// budget was lowered below what the log holds, the stream's own limit stays above that: what
// makes room, carrying what is alive and announcing the cut, has to be written first.
func ensureStream(ctx context.Context, js jetstream.JetStream, maxBytes int64) (jetstream.Stream, bool, error) {
	s, err := js.Stream(ctx, streamName)
	created := false
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		created = true
		s, err = js.CreateStream(ctx, streamConfig(maxBytes))
	}
	if err == nil {
		info := s.CachedInfo()
		if limit := streamLimit(maxBytes, int64(info.State.Bytes)); info.Config.MaxBytes != limit {
			s, err = js.UpdateStream(ctx, streamConfig(limit))
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("stream: %w", err)
	}
	return s, created, nil
}

// streamLimit is where the stream refuses everything, given the budget and what is used, in
// bytes.
func streamLimit(budget, used int64) int64 {
	if used <= budget {
		return budget
	}
	return used + budget/roomShare
}

// syncMeta makes the stream's existence durable: its meta files and every directory above,
// up to the data directory ("stream not found" after a power cut otherwise).
func (d *dir) syncMeta() error {
	dir := d.streamDir()
	for _, f := range []string{"meta.inf", "meta.sum"} {
		if err := syncPath(filepath.Join(dir, f)); err != nil {
			return err
		}
	}
	for p := d.blocks(); ; p = filepath.Dir(p) {
		if err := syncPath(p); err != nil {
			return err
		}
		if p == d.path {
			return nil
		}
	}
}
