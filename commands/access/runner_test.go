package access_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	fold "webcodex/projections/access"
	"webcodex/runner/wire"
)

// A Runner's credential has a name, some Projects or all, and a code that ends; there are not too
// many, and no client id is given twice.
func TestDecideInvite(t *testing.T) {
	fine := access.NewRunner{ID: event.NewTokenID(), Client: "box-1", Name: "box", Code: "U1", CodeExpiresAt: noon.Add(time.Hour)}
	for name, c := range map[string]struct {
		change func(*access.NewRunner)
		kind   fault.Kind
		field  string
	}{
		"no name":       {func(n *access.NewRunner) { n.Name = " \t" }, fault.InvalidArguments, "name"},
		"no client":     {func(n *access.NewRunner) { n.Client = "" }, fault.InvalidArguments, "name"},
		"all and some":  {func(n *access.NewRunner) { n.Projects = []string{"all", "site"} }, fault.InvalidArguments, "projects"},
		"a path":        {func(n *access.NewRunner) { n.Projects = []string{"/srv/site"} }, fault.InvalidArguments, "projects"},
		"too many":      {func(n *access.NewRunner) { n.Projects = make([]string, access.MaxTokenProjects+1) }, fault.InvalidArguments, "projects"},
		"expired":       {func(n *access.NewRunner) { n.CodeExpiresAt = noon }, fault.InvalidArguments, "expires"},
		"never expires": {func(n *access.NewRunner) { n.CodeExpiresAt = time.Time{} }, fault.InvalidArguments, "expires"},
		"too long":      {func(n *access.NewRunner) { n.CodeExpiresAt = noon.Add(access.MaxCodeLife + 2*time.Hour) }, fault.InvalidArguments, "expires"},
		"taken":         {func(n *access.NewRunner) { n.Client = "old" }, fault.Conflict, ""},
	} {
		n := fine
		c.change(&n)
		events, err := access.DecideInvite([]fold.Runner{{Client: "old", RevokedAt: noon}}, n, noon)
		if f := fault.As(err); err == nil || f.Kind != c.kind || f.Field != c.field || events != nil {
			t.Errorf("%s: %v %v", name, events, err)
		}
	}
	full := make([]fold.Runner, access.MaxRunners)
	if _, err := access.DecideInvite(full, fine, noon); fault.KindOf(err) != fault.StorageFull {
		t.Errorf("one more than the bound: %v", err)
	}
	fine.Projects = []string{"site", "api", "site"}
	events, err := access.DecideInvite(nil, fine, noon)
	if err != nil || fmt.Sprint(events[0].(event.RunnerInvited).Projects) != "[api site]" {
		t.Errorf("%v %v", events, err)
	}
}

// What became of a code is told by a kind of its own, and a lost answer does no harm.
func TestDecideEnrol(t *testing.T) {
	live := fold.Runner{ID: event.NewTokenID(), Client: "box-1", Code: "C", CodeExpiresAt: noon.Add(time.Hour)}
	with := func(change func(*fold.Runner)) fold.Runner {
		k := live
		change(&k)
		return k
	}
	for name, c := range map[string]struct {
		k     fold.Runner
		found bool
		key   string
		kind  fault.Kind
	}{
		"unknown":        {fold.Runner{}, false, "K", fault.EnrolmentInvalid},
		"replaced":       {with(func(k *fold.Runner) { k.Code = "D" }), true, "K", fault.EnrolmentInvalid},
		"revoked":        {with(func(k *fold.Runner) { k.RevokedAt = noon }), true, "K", fault.EnrolmentRevoked},
		"spent":          {with(func(k *fold.Runner) { k.Key = "other" }), true, "K", fault.EnrolmentSpent},
		"expired":        {with(func(k *fold.Runner) { k.CodeExpiresAt = noon }), true, "K", fault.EnrolmentExpired},
		"another's key":  {live, true, "taken", fault.EnrolmentInvalid},
		"another's code": {live, true, "code", fault.EnrolmentInvalid},
	} {
		events, err := access.DecideEnrol(c.k, c.found, []fold.Runner{{Key: "taken", Code: "code"}}, wire.Enrol{Code: "C", Key: c.key}, noon)
		if fault.KindOf(err) != c.kind || events != nil {
			t.Errorf("%s: %v %v", name, events, err)
		}
	}
	events, err := access.DecideEnrol(live, true, nil, wire.Enrol{Code: "C", Key: "K"}, noon)
	if err != nil || events[0] != (event.RunnerEnrolled{Runner: live.ID, Key: "K"}) {
		t.Errorf("%v %v", events, err)
	}
	if events, err := access.DecideEnrol(with(func(k *fold.Runner) { k.Key = "K" }), true, nil, wire.Enrol{Code: "C", Key: "K"}, noon.Add(2*time.Hour)); err != nil || events != nil {
		t.Errorf("again: %v %v", events, err)
	}
}

// Over a log: a code comes once, what ends a key cuts its connections, and the log holds no code.
func TestRunnersOverTheLog(t *testing.T) {
	f := fold.NewRunners()
	log, err := eventlog.Open(t.Context(), eventlog.Options{Dir: t.TempDir(), Durability: eventlog.Process, MaxBytes: 64 << 20,
		Server: event.NewInstanceID(), Folds: []eventlog.Fold{f}})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	clock, codes, cut := func() time.Time { return noon }, 0, []event.ClientID{}
	o := access.RunnerOptions{Writer: aggregate.NewWriter(log, clock), Fold: f, Now: clock, Actor: event.Actor{Authority: "a", Principal: "p", Credential: "owner"},
		Code: func(event.ClientID) (string, string, error) {
			codes++
			return fmt.Sprint("secret", codes), fmt.Sprint("U", codes), nil
		}, Cut: func(c event.ClientID) { cut = append(cut, c) }}
	r := access.NewRunners(o)
	a, err := r.Create(t.Context(), access.RunnerIn{Name: "Build Box (2)", Projects: []string{"site"}})
	if err != nil || a.Code != "secret1" || !strings.HasPrefix(string(a.Client), "build-box-2-") || a.Status != fold.StatusInvited || strings.Contains(fmt.Sprint(a), "secret") {
		t.Fatalf("%v %v", a, err)
	}
	if e := r.Enrol("other", wire.Enrol{Protocol: wire.Protocol, Code: "U1", Key: "K"}); e.OK || e.Fault.Kind != fault.EnrolmentInvalid {
		t.Errorf("another client's code: %+v", e)
	}
	if e := r.Enrol(a.Client, wire.Enrol{Protocol: wire.Protocol + 1, Code: "U1", Key: "K"}); e.OK || e.Fault.Reason != wire.RefusedProtocol {
		t.Errorf("another protocol: %+v", e)
	}
	for range 2 {
		if e := r.Enrol(a.Client, wire.Enrol{Protocol: wire.Protocol, Code: "U1", Key: "K"}); !e.OK {
			t.Errorf("%+v", e)
		}
	}
	if serves, ok := r.Serves(a.Client); !ok || !serves("x", "site") || serves("x", "api") {
		t.Error("what it may serve")
	}
	if c, code, ok := r.Admit("K"); c != a.Client || code || !ok {
		t.Error("its key")
	}
	b, err := r.Rotate(t.Context(), access.RotateIn{ID: string(a.ID)})
	if err != nil || b.Client != a.Client || b.Code != "secret2" || len(cut) != 1 {
		t.Errorf("%v %v %v", b, err, cut)
	}
	if _, ok := r.Serves(a.Client); ok {
		t.Error("its key is good after a rotation")
	}
	for range 2 {
		if v, err := r.Revoke(t.Context(), access.RevokeIn{ID: string(a.ID)}); err != nil || v.Status != fold.StatusRevoked {
			t.Errorf("%v %v", v, err)
		}
	}
	if head, _ := log.Head(event.RunnersAggregate()); head.Version != 4 || len(cut) != 3 {
		t.Errorf("%d commits, %v cut", head.Version, cut)
	}
	o.Code = nil
	if _, err := access.NewRunners(o).Create(t.Context(), access.RunnerIn{Name: "x"}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("without a server: %v", err)
	}
	o.Code = func(event.ClientID) (string, string, error) { return "", "", errors.New("x") }
	if _, err := access.NewRunners(o).Create(t.Context(), access.RunnerIn{Name: "x"}); err == nil {
		t.Error("a code that could not be made")
	}
}
