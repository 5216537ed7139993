package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// A run that asks for it is bound to the files of its start and to all that it printed, what was
// not kept included; one whose files move under it says so, and one that does not ask tells
// nothing. The journal keeps the binding and the time of the end.
func TestARunIsBoundToItsFiles(t *testing.T) {
	t.Parallel()
	looks := 0
	g := newRig(t, func(o *Options) {
		o.Tree = func(_ context.Context, root *os.Root) event.Binding {
			looks++
			b, err := root.ReadFile("state")
			if err != nil {
				return event.Binding{Reason: "not_a_repository"}
			}
			return event.Binding{Commit: "c", Tree: "t" + string(b)}
		}
	})
	run := func(command string, bind bool) wire.Result {
		return g.do(g.make(wire.OpShell, wire.ProcessIn{Shell: "sh", Command: command, Bind: bind}))
	}
	if r := run("true", true); r.Process.Bound == nil || r.Process.Bound.Reason != "not_a_repository" || r.Process.Bound.Output == "" || r.EndedAt == "" {
		t.Errorf("%+v", r.Process.Bound)
	}
	if err := os.WriteFile(g.path("state"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	looks = 0
	r := run("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; echo e >&2", true)
	out, all := sha256.New(), sha256.New()
	for range 20000 {
		out.Write([]byte("0123456789\n"))
	}
	all.Write(out.Sum(nil))
	errs := sha256.Sum256([]byte("e\n"))
	all.Write(errs[:])
	want := event.Binding{Commit: "c", Tree: "t1", Output: hex.EncodeToString(all.Sum(nil))}
	if b := r.Process.Bound; b == nil || *b != want || looks != 2 || !r.Process.Stdout.Truncated {
		t.Errorf("%+v, want %+v, after %d looks", b, want, looks)
	}
	if known, ok := g.journal.find(r.ID); !ok || known.result == nil || known.result.EndedAt != r.EndedAt || *known.result.Process.Bound != want {
		t.Errorf("the journal keeps %+v", known.result)
	}
	if b := run("echo 2 > state", true).Process.Bound; b == nil || !b.Moved || b.Tree != "t1" {
		t.Errorf("moved: %+v", b)
	}
	if b := run("rm state", true).Process.Bound; b == nil || b.Tree != "" || b.Reason == "" {
		t.Errorf("gone: %+v", b)
	}
	looks = 0
	if r := run("true", false); r.Process.Bound != nil || looks != 0 {
		t.Errorf("%+v after %d looks", r.Process.Bound, looks)
	}
}
