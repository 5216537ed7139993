package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
	"webcodex/mcp"
)

func tokenCommand() command {
	return command{
		name: "token", args: "create|list|revoke|rotate [ID]", min: 1, max: 2, short: "give somebody else access, or take it away",
		long: `create makes a bearer token for a second principal and prints it once; nothing keeps it.
list shows who has one. revoke ID ends one for good, rotate ID replaces it: both at once, open
streams included. Works with and without a running server.

  webcodex token create --kind user --name "Ada's laptop" --projects all \
      --scopes runtime:read,project:read,project:write,job:run,session:collaborate
  webcodex token create --kind project --name review --projects agent:…:site --expires 30d
  webcodex token create --kind runner --name "build box" --projects site,api --expires 2h

A user sees no Session of anybody else. A project token is for the named Projects alone. Tokens
of kind shared-key that were made with --group ID share their Sessions with that one's holder.
Whoever may run jobs can do to the Projects' files, and to this account, what you can.

Of --kind runner it is a one-time code that lets a Runner on another machine in (webcodex help
runner). --projects are folder names or ids of what it may serve, --expires is when the code ends;
the Runner's own key is good until you revoke it, which cuts its connection at once.`,
		setup: func(fs *flag.FlagSet) action {
			var in access.CreateIn
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			fs.StringVar(&in.Kind, "kind", "", "create: `user`, project, shared-key or runner")
			fs.StringVar(&in.Name, "name", "", "create: `NAME` by which you know it again")
			scopes := fs.String("scopes", "runtime:read,project:read", "create: `LIST` of scopes, with commas")
			projects := fs.String("projects", "", "create: `LIST` of agent:<client>:<project>, with commas, or all")
			fs.StringVar(&in.Expires, "expires", "", "create, rotate: `WHEN`, 90d, 12h, 1d12h, an RFC 3339 time or never; default for create: 90d, of a Runner's code 24h")
			fs.StringVar(&in.Group, "group", "", "create: `ID` of a shared-key token whose group to join")
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				if err := tokenFlags(fs, args[0]); err != nil {
					return err
				}
				if in.Kind == access.KindRunner {
					if err := runnerFlagsOnly(fs); err != nil {
						return err
					}
				}
				in.Scopes, in.Projects = listOf(*scopes), listOf(*projects)
				return tokenAction(ctx, s, dir, args, in, *asJSON)
			}
		},
	}
}

// tokenFlags refuses a flag that the action does not look at: a rotate that seemed to narrow the
// scopes would leave them as they are.
func tokenFlags(fs *flag.FlagSet, what string) (err error) {
	fs.Visit(func(f *flag.Flag) {
		switch {
		case f.Name == "data" || f.Name == "json" || what == "create" || what == "rotate" && f.Name == "expires":
		case err == nil:
			err = usagef("token %s: --%s changes nothing here: a token keeps what it was made with; make another one and revoke this", what, f.Name)
		}
	})
	return err
}

func listOf(s string) (out []string) {
	for _, p := range strings.Split(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

func tokenAction(ctx context.Context, s streams, dir string, args []string, in access.CreateIn, asJSON bool) error {
	what, id := args[0], ""
	if len(args) > 1 {
		id = args[1]
	}
	needsID := what == "revoke" || what == "rotate"
	switch {
	case what != "create" && what != "list" && !needsID:
		return usagef("token: create, list, revoke ID or rotate ID")
	case needsID && !event.TokenID(id).Valid():
		return usagef("token %s: name the token by its id, wc_tok_…: `webcodex token list` shows them", what)
	case !needsID && id != "":
		return usagef("token %s: one argument too many", what)
	}
	way, err := openTokens(ctx, dir)
	if err != nil {
		return err
	}
	ofRunner := what == "create" && in.Kind == access.KindRunner
	if needsID {
		if ofRunner, err = way.isRunner(ctx, id); err != nil {
			return way.done(err, nil)
		}
	}
	if ofRunner {
		return runnerAction(ctx, s, way, what, in, id, asJSON)
	}
	switch what {
	case "list":
		return listBoth(ctx, s, way, asJSON)
	case "revoke":
		v, rerr := way.revoke(ctx, access.RevokeIn{ID: id})
		return way.done(rerr, func() error { return showRevoked(s, v, asJSON) })
	case "rotate":
		i, rerr := way.rotate(ctx, access.RotateIn{ID: id, Expires: in.Expires})
		return way.done(rerr, func() error { return showIssued(s, i, asJSON) })
	}
	i, cerr := way.create(ctx, in)
	return way.done(cerr, func() error { return showIssued(s, i, asJSON) })
}

// tokenWay is how the tokens of a data directory are reached: over its server, or by its log.
type tokenWay struct {
	list   func(context.Context) (access.TokenList, error)
	create func(context.Context, access.CreateIn) (access.Issued, error)
	rotate func(context.Context, access.RotateIn) (access.Issued, error)
	revoke func(context.Context, access.RevokeIn) (access.TokenView, error)
	close  func() error

	runners runnerWay
}

// done closes the way and shows what came of it: a token is shown only when it is certain that
// the log has it.
func (w tokenWay) done(err error, show func() error) error {
	if err = errors.Join(err, w.close()); err != nil {
		return err
	}
	return show()
}

// openTokens finds the running server, or takes its place for as long as it lasts.
func openTokens(ctx context.Context, dir string) (tokenWay, error) {
	c, err := connectControl(ctx, dir)
	if err == nil {
		return remoteTokens(c), nil
	}
	if !errors.Is(err, errNoServer) {
		return tokenWay{}, err
	}
	return offlineTokens(ctx, dir)
}

func remoteTokens(c *control) tokenWay {
	return tokenWay{
		list: func(ctx context.Context) (l access.TokenList, err error) { return l, c.get(ctx, pathTokens, nil, &l) },
		create: func(ctx context.Context, in access.CreateIn) (i access.Issued, err error) {
			return i, c.post(ctx, pathTokens, in, &i)
		},
		rotate: func(ctx context.Context, in access.RotateIn) (i access.Issued, err error) {
			return i, c.post(ctx, pathTokens+"/rotate", in, &i)
		},
		revoke: func(ctx context.Context, in access.RevokeIn) (v access.TokenView, err error) {
			return v, c.post(ctx, pathTokens+"/revoke", in, &v)
		},
		close: func() error { c.close(); return nil }, runners: remoteRunners(c),
	}
}

// offlineTokens opens the log itself, under its lock.
func offlineTokens(ctx context.Context, dir string) (tokenWay, error) {
	if err := mayOpen(dir); err != nil {
		return tokenWay{}, err
	}
	actor, err := mcp.ReadOwner(dir)
	if err != nil {
		return tokenWay{}, err
	}
	o, err := openOffline(ctx, dir)
	if err != nil {
		return tokenWay{}, err
	}
	t := access.NewTokens(aggregate.NewWriter(o.log, time.Now), o.models.tokens, o.models.known.Known, actor, time.Now)
	return tokenWay{
		list:   func(context.Context) (access.TokenList, error) { return t.List(), nil },
		create: t.Create, rotate: t.Rotate, revoke: t.Revoke, close: o.close, runners: offlineRunners(o, actor),
	}, nil
}

func showIssued(s streams, i access.Issued, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, i)
	}
	p := &page{w: s.out}
	p.field("token", i.Token)
	p.field("", "shown this once, kept nowhere: hand it over now; rotate makes another one")
	showToken(p, i.TokenView)
	return p.err
}

func showRevoked(s streams, v access.TokenView, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, v)
	}
	_, err := fmt.Fprintf(s.out, "revoked %s (%s); its Sessions stay\n", v.ID, clean(v.Name))
	return err
}

func showToken(p *page, v access.TokenView) {
	p.field("id", string(v.ID))
	p.field("name", v.Name)
	p.field("kind", string(v.Kind)+", group "+v.Group)
	p.field("scopes", strings.Join(v.Scopes, " "))
	p.field("projects", strings.Join(v.Projects, " "))
	p.field("expires", expires(v))
}

func expires(v access.TokenView) string {
	if v.ExpiresAt == nil {
		return "never"
	}
	return localTime(*v.ExpiresAt)
}

func showTokens(s streams, l access.TokenList, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, l)
	}
	if len(l.Tokens) == 0 {
		_, err := fmt.Fprintln(s.out, "Nobody but you has access: `webcodex help token` says how to give it.")
		return err
	}
	t := newTable(s.out)
	for _, v := range l.Tokens {
		t.row(string(v.ID), string(v.Status), string(v.Kind), shorten(v.Name, 40), expires(v), v.Group, strings.Join(v.Scopes, " "),
			strings.Join(v.Projects, " "))
	}
	t.flush()
	return nil
}
