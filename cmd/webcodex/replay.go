package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// replayLine is one commit of a replay.
type replayLine = session.Step

func replayCommand() command {
	return command{
		name: "replay", args: "SESSION", min: 1, max: 1, short: "tell a Session's history from the log",
		long: `Folds the log afresh and prints each commit: version, time, events, what changed. With --at
prints the Session as it was at a version or a time. Works with and without a running server.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			at := fs.String("at", "", "`VERSION` or RFC 3339 time")
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				id, err := sessionArg(args[0])
				if err != nil {
					return err
				}
				if given(fs, "at") {
					return replayAt(ctx, s, dir, id, *at, *asJSON)
				}
				show := newStory(s.out)
				each := show.step
				if *asJSON {
					each = func(l replayLine) error { return printJSON(s.out, l) }
				}
				return replayEach(ctx, dir, id, each)
			}
		},
	}
}

// replayEach gives every commit of the Session in order, from the running server or, without
// one, from the log itself.
func replayEach(ctx context.Context, dir string, id event.SessionID, fn func(replayLine) error) error {
	c, err := connectControl(ctx, dir)
	if err == nil {
		defer c.close()
		body, err := c.open(ctx, "GET", pathReplay, url.Values{"session": {string(id)}}, nil)
		if err != nil {
			return err
		}
		defer body.Close()
		return decodeLines(body, fn)
	}
	if !errors.Is(err, errNoServer) {
		return err
	}
	a, err := openLog(ctx, dir, eventlog.Options{})
	if err != nil {
		return err
	}
	defer a.close()
	return steps(ctx, a.log, id, session.Point{}, fn)
}

// replayTail ends a streamed replay: without it the stream was cut off.
type replayTail struct {
	End   bool   `json:"end"`
	Error string `json:"error,omitempty"`
}

func decodeLines(r io.Reader, fn func(replayLine) error) error {
	dec := json.NewDecoder(r)
	for {
		var l struct {
			replayLine
			replayTail
		}
		switch err := dec.Decode(&l); {
		case err != nil:
			return failf(exitFailed, "the server ended before the replay was complete")
		case l.Error != "":
			return failf(exitFailed, "%s", l.Error)
		case l.End:
			return nil
		}
		if err := fn(l.replayLine); err != nil {
			return err
		}
	}
}

// replayLines collects a replay.
func replayLines(ctx context.Context, dir string, id event.SessionID) ([]replayLine, error) {
	var out []replayLine
	err := replayEach(ctx, dir, id, func(l replayLine) error { out = append(out, l); return nil })
	return out, err
}

func showReplay(w io.Writer, lines []replayLine) error {
	s := newStory(w)
	for _, l := range lines {
		if err := s.step(l); err != nil {
			return err
		}
	}
	return nil
}

// story prints commits for a person: one line an event, the day where it changes.
type story struct {
	w   io.Writer
	day string
}

func newStory(w io.Writer) *story { return &story{w: w} }

func (s *story) step(l replayLine) error {
	day, at, _ := strings.Cut(localTime(l.At), " ")
	if day != s.day {
		s.day = day
		if _, err := fmt.Fprintln(s.w, clean(day)); err != nil {
			return err
		}
	}
	lead := fmt.Sprintf("%5d  %s", l.Version, clean(at))
	for _, e := range l.Events {
		kind := strings.TrimPrefix(e.Type, "session.")
		if _, err := fmt.Fprintf(s.w, "%s  %-20s  %s\n", lead, clean(kind), clean(e.Summary)); err != nil {
			return err
		}
		lead = strings.Repeat(" ", 5+2+len(at))
	}
	return nil
}

func replayAt(ctx context.Context, s streams, dir string, id event.SessionID, at string, asJSON bool) error {
	p, err := session.ParsePoint(at)
	if err != nil {
		return err
	}
	sum, err := readAsOf(ctx, dir, id, at, p)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.out, sum)
	}
	return showSummary(s.out, sum)
}

func readAsOf(ctx context.Context, dir string, id event.SessionID, at string, p session.Point) (session.Summary, error) {
	var sum session.Summary
	c, err := connectControl(ctx, dir)
	if err == nil {
		defer c.close()
		return sum, c.get(ctx, pathReplay, url.Values{"session": {string(id)}, "at": {at}}, &sum)
	}
	if !errors.Is(err, errNoServer) {
		return sum, err
	}
	a, err := openLog(ctx, dir, eventlog.Options{})
	if err != nil {
		return sum, err
	}
	defer a.close()
	return asOf(ctx, a.log, id, p)
}

// showSummary prints a Session as it was.
func showSummary(w io.Writer, sum session.Summary) error {
	p := &page{w: w}
	p.linef("%s", sum.Title)
	p.field("session", fmt.Sprintf("%s  (%s, %s)", sum.SessionID, sum.Lifecycle, sum.Mode))
	if sum.Project != nil {
		p.field("project", *sum.Project)
	}
	p.field("created", localTime(sum.CreatedAt))
	p.field("as of", localTime(sum.UpdatedAt))
	p.field("calls", fmt.Sprintf("%d, %d failed; %d read, %d wrote, %d ran", sum.Counts.ToolCalls, sum.Counts.Failed,
		sum.Counts.ReadLike, sum.Counts.WriteLike, sum.Counts.ShellLike))
	p.field("events", fmt.Sprintf("%d, the newest:", sum.EventsObserved))
	const newest = 10
	for _, e := range sum.Events[max(0, len(sum.Events)-newest):] {
		p.field("", strings.TrimSpace(fmt.Sprintf("%5d  %s  %s %s %s %s", e.Sequence, localTime(e.At), plain(string(e.Kind)), e.Tool, e.Status,
			strings.Join(e.Changed, ", "))))
	}
	return p.err
}
