package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"webcodex/commands/board"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

func boardCommand() command {
	return command{
		name: "board", args: "SESSION", min: 1, max: 1, short: "show the messages of a Session, and what comes",
		long: `Prints the messages on a Session's board, oldest first, as the running server has them. With
--follow it goes on with what is posted, answered and resolved, until it is interrupted. --json
prints one line for each message, and again for each that has changed.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			follow := fs.Bool("follow", false, "go on with what changes")
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				id, err := sessionArg(args[0])
				if err != nil {
					return err
				}
				b := &boardWindow{id: id, out: s.out, asJSON: *asJSON, shown: map[event.MessageID][sha256.Size]byte{}}
				if err = b.open(ctx, dir); err != nil {
					return err
				}
				defer b.w.close()
				if err = b.run(ctx, *follow); *follow && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
					return nil // interrupted, as it is meant to be
				}
				if codeOf(err) == exitNoServer { // looking changes nothing, so nothing is in doubt
					return failf(exitNoServer, "the server has gone: start it again with `webcodex up`, and look again")
				}
				return err
			}
		},
	}
}

// boardWindow is a window on one board.
type boardWindow struct {
	w      *window
	id     event.SessionID
	out    io.Writer
	asJSON bool
	// shown is what was printed of each message last, as a hash. It is cut to the messages that
	// are retained when it grows beyond maxShown.
	shown map[event.MessageID][sha256.Size]byte
}

// maxShown is several boards.
const maxShown = 1000

func (b *boardWindow) open(ctx context.Context, dir string) (err error) {
	b.w, err = openWindow(ctx, dir)
	if errors.Is(err, errNoServer) {
		return failf(exitNoServer, "no server runs on this data directory: start one with `webcodex up`")
	}
	return err
}

// call makes a call of any tool, in the list of hosts or not.
func (b *boardWindow) call(ctx context.Context, tool string, args map[string]any, out any) (json.RawMessage, error) {
	args["session_id"] = b.id
	raw, err := json.Marshal(map[string]any{"tool": tool, "arguments": args})
	if err != nil {
		return nil, err
	}
	res, err := b.w.call(ctx, "call_runtime_tool", raw)
	if err != nil {
		return nil, err
	}
	if res.IsError {
		return nil, res.fault()
	}
	return res.Output, json.Unmarshal(res.Output, out)
}

// run prints what is there and then, where asked for, what changes. The token is older than the
// list, so nothing falls between them.
func (b *boardWindow) run(ctx context.Context, follow bool) error {
	var at board.ObserveOut
	if follow {
		if _, err := b.call(ctx, "observe_session_messages", map[string]any{}, &at); err != nil {
			return err
		}
	}
	if err := b.all(ctx); err != nil || !follow {
		return err
	}
	for {
		token := at.Token
		at = board.ObserveOut{}
		if _, err := b.call(ctx, "observe_session_messages", map[string]any{"after_observation_token": token, "wait_secs": board.MaxWaitSecs}, &at); err != nil {
			return err
		}
		if at.HistoryLost || len(b.shown) > maxShown {
			if err := b.all(ctx); err != nil {
				return err
			}
		}
		if err := b.print(at.Messages); err != nil {
			return err
		}
	}
}

// all prints every retained message that was not printed as it is, oldest first.
func (b *boardWindow) all(ctx context.Context) error {
	var all []session.MessageView
	for offset := 0; ; {
		var page board.ListOut
		if _, err := b.call(ctx, "list_session_messages", map[string]any{"limit": board.MaxListLimit, "offset": offset}, &page); err != nil {
			return err
		}
		all = append(all, page.Messages...)
		if page.NextOffset == nil {
			break
		}
		offset = *page.NextOffset
	}
	slices.Reverse(all)
	maps.DeleteFunc(b.shown, func(id event.MessageID, _ [sha256.Size]byte) bool {
		return !slices.ContainsFunc(all, func(m session.MessageView) bool { return m.MessageID == id })
	})
	if len(all) == 0 && !b.asJSON {
		_, err := fmt.Fprintf(b.out, "There is no message yet: webcodex post %s note \"…\"\n", b.id)
		return err
	}
	return b.print(all)
}

func (b *boardWindow) print(messages []session.MessageView) error {
	for _, m := range messages {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		state := sha256.Sum256(text)
		if b.shown[m.MessageID] == state {
			continue
		}
		b.shown[m.MessageID] = state
		if b.asJSON {
			err = printJSON(b.out, m)
		} else {
			err = printMessage(b.out, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printMessage shows a message to a person. Its texts were written by others: nothing in them
// acts on the terminal.
func printMessage(w io.Writer, m session.MessageView) error {
	head := []string{localTime(m.CreatedAt), string(m.Kind), string(m.Status)}
	if m.Priority != event.PriorityNormal {
		head = append(head, string(m.Priority))
	}
	if m.RequiresAck && m.FirstAckAt == nil {
		head = append(head, "to be acknowledged")
	}
	head = append(head, string(m.MessageID))
	for _, l := range []struct {
		name string
		id   *event.MessageID
	}{{"answers", m.ReplyTo}, {"replaces", m.Supersedes}, {"replaced by", m.SupersededBy}, {"answered by", m.ResolvedBy}} {
		if l.id != nil {
			head = append(head, l.name+" "+string(*l.id))
		}
	}
	if len(m.Tags) > 0 {
		head = append(head, "["+strings.Join(m.Tags, ", ")+"]")
	}
	lines := []string{clean(strings.Join(head, "  "))}
	for l := range strings.Lines(cleanLines(m.Message)) {
		lines = append(lines, "    "+strings.TrimRight(l, "\n"))
	}
	if m.Resolution != nil {
		for l := range strings.Lines(cleanLines(*m.Resolution)) {
			lines = append(lines, "    => "+strings.TrimRight(l, "\n"))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
