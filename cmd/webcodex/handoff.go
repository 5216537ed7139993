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

	observed "webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

func handoffCommand() command {
	return command{
		name: "handoff", args: "SESSION", min: 1, max: 1, short: "show what the next window needs to go on",
		long: `Prints the handoff brief of a Session. With --at prints it as it was at a version or a time, folded afresh
from the log: nobody knows what the working tree was then, or what tools outside had reported. Without a running
server the working tree is not looked at. --json prints what read_session_handoff gives.`,
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
				read := readHandoff
				if given(fs, "at") {
					read = func(ctx context.Context, dir string, id event.SessionID) (json.RawMessage, error) {
						return readHandoffAsOf(ctx, dir, id, *at)
					}
				}
				raw, err := read(ctx, dir, id)
				if err != nil {
					return err
				}
				if *asJSON {
					return printRaw(s.out, raw)
				}
				var out session.Handoff
				if err := json.Unmarshal(raw, &out); err != nil {
					return err
				}
				return printBrief(s.out, out.Brief)
			}
		},
	}
}

func sessionArg(s string) (event.SessionID, error) {
	id := event.SessionID(s)
	if !id.Valid() {
		return "", usagef("a Session is named by its full id, wc_sess_…; `webcodex sessions` lists them")
	}
	return id, nil
}

// readHandoff asks the running server's tool; without one the log alone answers.
func readHandoff(ctx context.Context, dir string, id event.SessionID) (json.RawMessage, error) {
	return readDetailed(ctx, dir, id, false)
}

// readDetailed is readHandoff, where asked for with the closeout evidence.
func readDetailed(ctx context.Context, dir string, id event.SessionID, diagnostic bool) (json.RawMessage, error) {
	w, err := openWindow(ctx, dir)
	if err == nil {
		defer w.close()
		args, err := json.Marshal(map[string]any{"session_id": id, "diagnostic": diagnostic, "limit": 1})
		if err != nil {
			return nil, err
		}
		res, err := w.call(ctx, "read_session_handoff", args)
		if err != nil {
			return nil, err
		}
		if res.IsError {
			return nil, res.fault()
		}
		return res.Output, nil
	}
	if !errors.Is(err, errNoServer) {
		return nil, err
	}
	a, err := openArchive(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer a.close()
	view, err := a.store.Load(id)
	if err != nil {
		return nil, err
	}
	snap := unseen
	if !view.Core.Project.Zero() {
		snap.External = observed.ExternalOf(a.reports.About(id))
	}
	one := 1
	return json.Marshal(session.NewHandoff(view, snap, diagnostic, &one))
}

// unseen asks for everything, of which only the log can tell.
var unseen = session.Snapshot{IncludeWorkspace: true, IncludeValidation: true, IncludeCheckpoints: true}

// viewHandoff names the handoff among what the control socket shows of the past.
const viewHandoff = "handoff"

// handoffAsOf is the handoff as it was. What is no part of the Session's own history is not known.
func handoffAsOf(ctx context.Context, log *eventlog.Log, id event.SessionID, p session.Point) (session.Handoff, error) {
	v, err := viewAsOf(ctx, log, id, p)
	if err != nil {
		return session.Handoff{}, err
	}
	return session.NewHandoff(v, unseen, false, nil), nil
}

func readHandoffAsOf(ctx context.Context, dir string, id event.SessionID, at string) (json.RawMessage, error) {
	p, err := session.ParsePoint(at)
	if err != nil {
		return nil, err
	}
	c, err := connectControl(ctx, dir)
	if err == nil {
		defer c.close()
		var raw json.RawMessage
		return raw, c.get(ctx, pathReplay, url.Values{"session": {string(id)}, "at": {at}, "view": {viewHandoff}}, &raw)
	}
	if !errors.Is(err, errNoServer) {
		return nil, err
	}
	a, err := openLog(ctx, dir, eventlog.Options{})
	if err != nil {
		return nil, err
	}
	defer a.close()
	h, err := handoffAsOf(ctx, a.log, id, p)
	if err != nil {
		return nil, err
	}
	return json.Marshal(h)
}

// plain shows an atom of the protocol as words.
func plain(atom string) string { return strings.ReplaceAll(atom, "_", " ") }

// page prints lines of a name and a text, sanitised.
type page struct {
	w   io.Writer
	err error
}

func (p *page) linef(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, clean(fmt.Sprintf(format, args...)))
	}
}

func (p *page) field(name, text string) {
	if text != "" {
		p.linef("  %-12s  %s", name, text)
	}
}

func (p *page) excerpt(name string, e *session.Excerpt) {
	if e == nil {
		return
	}
	text := strings.Join(strings.Fields(e.Text), " ")
	if e.Truncated {
		text += " …"
	}
	p.field(name, text)
}

func (p *page) list(name string, items []string, total int) {
	if total == 0 {
		return
	}
	text := strings.Join(items, ", ")
	if n := total - len(items); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	p.field(name, text)
}
