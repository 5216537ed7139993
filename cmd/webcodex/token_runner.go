package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
)

// runnerFlagsOnly refuses flags of a token that a Runner's credential has no use for.
func runnerFlagsOnly(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if f.Name == "scopes" || f.Name == "group" {
			err = usagef("token create: --%s is not for --kind runner: a Runner calls no tools, it runs them", f.Name)
		}
	})
	return err
}

// runnerWay is how the Runners' credentials of a data directory are reached.
type runnerWay struct {
	list   func(context.Context) (access.RunnerList, error)
	create func(context.Context, access.RunnerIn) (access.RunnerIssued, error)
	rotate func(context.Context, access.RotateIn) (access.RunnerIssued, error)
	revoke func(context.Context, access.RevokeIn) (access.RunnerView, error)
}

func remoteRunners(c *control) runnerWay {
	return runnerWay{
		list: func(ctx context.Context) (l access.RunnerList, err error) { return l, c.get(ctx, pathRunners, nil, &l) },
		create: func(ctx context.Context, in access.RunnerIn) (i access.RunnerIssued, err error) {
			return i, c.post(ctx, pathRunners, in, &i)
		},
		rotate: func(ctx context.Context, in access.RotateIn) (i access.RunnerIssued, err error) {
			return i, c.post(ctx, pathRunners+"/rotate", in, &i)
		},
		revoke: func(ctx context.Context, in access.RevokeIn) (v access.RunnerView, err error) {
			return v, c.post(ctx, pathRunners+"/revoke", in, &v)
		},
	}
}

// offlineRunners makes no code: it would tell of no server.
func offlineRunners(o *offlineLog, actor event.Actor) runnerWay {
	r := access.NewRunners(access.RunnerOptions{Writer: aggregate.NewWriter(o.log, time.Now), Fold: o.models.runners, Actor: actor, Now: time.Now})
	return runnerWay{list: func(context.Context) (access.RunnerList, error) { return r.List(), nil },
		create: r.Create, rotate: r.Rotate, revoke: r.Revoke}
}

// controlRunners serves the owner's commands on Runners of other processes.
func (s *server) controlRunners(mux *http.ServeMux) {
	mux.HandleFunc("GET "+pathRunners, func(w http.ResponseWriter, _ *http.Request) { answer(w, s.others.List(), nil) })
	mux.HandleFunc("POST "+pathRunners, func(w http.ResponseWriter, r *http.Request) {
		controlDo(s, w, r, func(in access.RunnerIn) (access.RunnerIssued, error) { return s.others.Create(r.Context(), in) })
	})
	mux.HandleFunc("POST "+pathRunners+"/rotate", func(w http.ResponseWriter, r *http.Request) {
		controlDo(s, w, r, func(in access.RotateIn) (access.RunnerIssued, error) { return s.others.Rotate(r.Context(), in) })
	})
	mux.HandleFunc("POST "+pathRunners+"/revoke", func(w http.ResponseWriter, r *http.Request) {
		controlDo(s, w, r, func(in access.RevokeIn) (access.RunnerView, error) { return s.others.Revoke(r.Context(), in) })
	})
}

// isRunner tells whether an id is that of a Runner's credential.
func (w tokenWay) isRunner(ctx context.Context, id string) (bool, error) {
	l, err := w.runners.list(ctx)
	return slices.ContainsFunc(l.Runners, func(v access.RunnerView) bool { return string(v.ID) == id }), err
}

// runnerAction does to a Runner's credential what token was asked to.
func runnerAction(ctx context.Context, s streams, way tokenWay, what string, in access.CreateIn, id string, asJSON bool) error {
	show := func(v any, text func() error) func() error {
		return func() error {
			if asJSON {
				return printJSON(s.out, v)
			}
			return text()
		}
	}
	switch what {
	case "revoke":
		v, err := way.runners.revoke(ctx, access.RevokeIn{ID: id})
		return way.done(err, show(v, func() error {
			_, err := fmt.Fprintf(s.out, "revoked %s (%s); its connection is cut, what its Projects' Sessions hold stays\n", v.ID, clean(v.Name))
			return err
		}))
	case "rotate":
		i, err := way.runners.rotate(ctx, access.RotateIn{ID: id, Expires: in.Expires})
		return way.done(err, show(i, func() error { return showCode(s, i) }))
	}
	i, err := way.runners.create(ctx, access.RunnerIn{Name: in.Name, Projects: in.Projects, Expires: in.Expires})
	return way.done(err, show(i, func() error { return showCode(s, i) }))
}

func showCode(s streams, i access.RunnerIssued) error {
	p := &page{w: s.out}
	p.field("code", i.Code)
	p.field("", "shown this once and good for one Runner: `webcodex runner --enroll CODE DIR…` there")
	p.field("id", string(i.ID))
	p.field("name", i.Name)
	p.field("client", string(i.Client))
	p.field("projects", strings.Join(i.Projects, " "))
	p.field("expires", localTime(i.CodeExpiresAt))
	return p.err
}

// listBoth shows the tokens and the Runners.
func listBoth(ctx context.Context, s streams, way tokenWay, asJSON bool) error {
	l, err := way.list(ctx)
	r, rerr := way.runners.list(ctx)
	return way.done(errors.Join(err, rerr), func() error {
		if asJSON {
			return printJSON(s.out, struct {
				access.TokenList
				access.RunnerList
			}{l, r})
		}
		if len(l.Tokens) > 0 || len(r.Runners) == 0 {
			if err := showTokens(s, l, false); err != nil {
				return err
			}
		}
		t := newTable(s.out)
		for _, v := range r.Runners {
			ends := "never"
			if v.CodeExpiresAt != "" {
				ends = localTime(v.CodeExpiresAt)
			}
			t.row(string(v.ID), string(v.Status), access.KindRunner, shorten(v.Name, 40), ends, string(v.Client), strings.Join(v.Projects, " "))
		}
		t.flush()
		return nil
	})
}
