package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

func sessionsCommand() command {
	return command{
		name: "sessions", short: "list the Workflow Sessions",
		long: "Newest first, of all Projects or of one. Works with and without a running server.",
		setup: func(fs *flag.FlagSet) action {
			var q sessionQuery
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			fs.StringVar(&q.Project, "project", "", "only those of this `PROJECT`, agent:<client>:<project>")
			fs.StringVar(&q.Lifecycle, "lifecycle", "", "only `active` or closed ones")
			fs.IntVar(&q.Limit, "limit", session.MaxListLimit, "rows of a page, at most 20")
			fs.IntVar(&q.Offset, "offset", 0, "rows to skip")
			return func(ctx context.Context, s streams, _ []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				p, err := listSessions(ctx, dir, q)
				if err != nil {
					return err
				}
				if *asJSON {
					return printJSON(s.out, p)
				}
				return showSessions(s, p)
			}
		},
	}
}

// sessionQuery is what `sessions` asks for.
type sessionQuery struct {
	Project, Lifecycle string
	Limit, Offset      int
}

func (q sessionQuery) values() url.Values {
	return url.Values{"project": {q.Project}, "lifecycle": {q.Lifecycle},
		"limit": {strconv.Itoa(q.Limit)}, "offset": {strconv.Itoa(q.Offset)}}
}

func sessionQueryOf(v url.Values) sessionQuery {
	limit, _ := strconv.Atoi(v.Get("limit"))
	offset, _ := strconv.Atoi(v.Get("offset"))
	return sessionQuery{Project: v.Get("project"), Lifecycle: v.Get("lifecycle"), Limit: limit, Offset: offset}
}

// page answers the query for the person who owns the data directory.
func (q sessionQuery) page(store *session.Store) (session.Page, error) {
	f := session.Filter{AnyAuthority: true}
	if q.Project != "" {
		ref, ok := event.ParseProject(q.Project)
		if !ok {
			return session.Page{}, usagef("--project wants agent:<client>:<project>, as `webcodex status` shows it")
		}
		f.Project = ref
	}
	var err error
	if f.Lifecycle, err = session.ParseLifecycle(q.Lifecycle); err != nil {
		return session.Page{}, err
	}
	return store.Page(f, q.Offset, &q.Limit)
}

func listSessions(ctx context.Context, dir string, q sessionQuery) (session.Page, error) {
	c, err := connectControl(ctx, dir)
	if err == nil {
		defer c.close()
		var p session.Page
		return p, c.get(ctx, pathSessions, q.values(), &p)
	}
	if !errors.Is(err, errNoServer) {
		return session.Page{}, err
	}
	a, err := openArchive(ctx, dir)
	if err != nil {
		return session.Page{}, err
	}
	defer a.close()
	return q.page(a.store)
}

func showSessions(s streams, p session.Page) error {
	if p.Total == 0 {
		_, err := fmt.Fprintln(s.out, "There is no Session yet: a host starts one with work_on_project.")
		return err
	}
	t := newTable(s.out)
	for _, r := range p.Sessions {
		project := "-"
		if r.Project != nil {
			project = shortProject(*r.Project)
		}
		busy := ""
		if n := r.OpenCalls + r.ActiveJobs; n > 0 {
			busy = fmt.Sprintf("%d running", n)
		}
		t.row(string(r.SessionID), localTime(r.UpdatedAt), string(r.Lifecycle), project, shorten(r.Title, 60), busy)
	}
	t.flush()
	if p.NextOffset != nil {
		fmt.Fprintf(s.out, "%d of %d; go on with --offset %d\n", p.Returned, p.Total, *p.NextOffset)
	}
	return nil
}

// shortProject leaves the Runner's id out: people know the folder name.
func shortProject(p string) string {
	if i := strings.LastIndexByte(p, ':'); i >= 0 {
		return p[i+1:]
	}
	return p
}

// zone is the person's.
var zone = time.Local

// localTime shows a stored time in the person's zone.
func localTime(stored string) string {
	t, err := time.Parse(event.TimeForm, stored)
	if err != nil {
		return stored
	}
	return t.In(zone).Format("2006-01-02 15:04:05")
}
