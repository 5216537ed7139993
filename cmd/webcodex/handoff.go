package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

func handoffCommand() command {
	return command{
		name: "handoff", args: "SESSION", min: 1, max: 1, short: "show what the next window needs to go on",
		long: "Prints the handoff brief of a Session. Without a running server the working tree is not looked at.",
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				id, err := sessionArg(args[0])
				if err != nil {
					return err
				}
				raw, err := readHandoff(ctx, dir, id)
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
	w, err := openWindow(ctx, dir)
	if err == nil {
		defer w.close()
		args, err := json.Marshal(map[string]any{"session_id": id})
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
	snap := session.Snapshot{IncludeWorkspace: true, IncludeValidation: true, IncludeCheckpoints: true}
	return json.Marshal(session.NewHandoff(view, snap, false, nil))
}

// printBrief shows a brief to a person.
func printBrief(w io.Writer, b session.Brief) error {
	p := &page{w: w}
	p.linef("%s", b.Session.Title)
	p.field("session", fmt.Sprintf("%s  (%s, %s)", b.Session.SessionID, b.Session.Lifecycle, b.Session.Mode))
	if b.Session.Project != nil {
		p.field("project", *b.Session.Project)
	}
	p.field("updated", localTime(b.Session.UpdatedAt))
	p.excerpt("asked", b.Task.Root)
	if b.Task.Latest != nil && (b.Task.Root == nil || *b.Task.Latest != *b.Task.Root) {
		p.excerpt("then", b.Task.Latest)
	}
	p.field("progress", plain(string(b.Progress.State)))
	p.list("changed", b.Progress.Changed.Items, b.Progress.Changed.Total)
	p.list("read", b.Progress.Recent.Items, b.Progress.Recent.Total)
	p.field("working tree", workspaceLine(b.Workspace))
	p.field("validation", validationLine(b.Validation))
	for _, f := range b.Validation.Failures.Items {
		p.field("", fmt.Sprintf("still failing: %s (%d tests), since %s", f.Name, f.TestsFailed, localTime(f.At)))
	}
	if n := b.Attention.Jobs.Active; n > 0 {
		p.field("jobs", fmt.Sprintf("%d without an end (%s)", n, plain(b.Attention.Jobs.Recovery)))
	}
	for i, a := range b.NextActions.Items {
		name := ""
		if i == 0 {
			name = "next"
		}
		p.field(name, a.Tool+": "+a.Why)
	}
	if args, err := json.Marshal(b.Continuation.Arguments); err == nil && b.Continuation.Tool != "" {
		p.field("go on with", b.Continuation.Tool+" "+string(args))
	}
	if !b.Basis.Complete {
		p.field("not known", plain(strings.Join(b.Basis.ReasonCodes, ", ")))
	}
	return p.err
}

func workspaceLine(ws session.BriefWorkspace) string {
	if ws.Clean == nil {
		return plain(strings.TrimSpace(ws.Status + " " + ws.ReasonCode))
	}
	state := "clean"
	if !*ws.Clean {
		state = "changed"
		if ws.ChangedFiles != nil {
			state = fmt.Sprintf("%d changed", *ws.ChangedFiles)
		}
	}
	if ws.Conflicts != nil && *ws.Conflicts > 0 {
		state += fmt.Sprintf(", %d in conflict", *ws.Conflicts)
	}
	if ws.Branch != nil {
		state += ", on " + *ws.Branch
	}
	if ws.Head != nil {
		state += " at " + (*ws.Head)[:min(12, len(*ws.Head))]
	}
	return state
}

func validationLine(v session.BriefValidation) string {
	line := plain(v.Status)
	if r := v.Latest; r != nil {
		line += fmt.Sprintf("; latest %s: %s, %d run, %d failed", r.Tool, plain(r.Outcome), r.TestsRun, r.TestsFailed)
	}
	return line
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
