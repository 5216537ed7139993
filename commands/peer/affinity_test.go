package peer_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/peer"
	"webcodex/commands/runtime"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/window"
)

// relations are those of the owner's window as they are retained.
func (w *world) relations(of event.WindowID) (out []window.Relation) {
	return w.Windows.Book(calltest.Owner().Actor.Principal).Related(of)
}

// A relation is kept where authority was established, and only there.
//
// Covers: WIN-20, WIN-21
func TestARelationFollowsAuthority(t *testing.T) {
	w := newWorld(t)
	one := w.work(at(here), calltest.Alpha)
	if r := w.relations(here); len(r) != 1 || r[0].Session != one || r[0].Relation != event.RelationWork || r[0].Project != calltest.Alpha {
		t.Fatalf("%+v", r)
	}
	foreign := w.call(from{who: calltest.Someone("b")}, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "x"}).SessionID
	two := w.work(at(""), calltest.Alpha)
	before := w.relations(here)
	for _, c := range []struct {
		f    from
		spec *call.Spec
		args obj
	}{
		{at(here).recording(foreign), reads, obj{"project": calltest.Alpha.String()}},                        // denied
		{at(here).recording(two), reads, obj{"project": calltest.Beta.String()}},                             // of another Project
		{at(here), &session.WorkOnProject, obj{"project": "agent:local:gamma-00000009", "instruction": "x"}}, // failed
		{at(here), &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": ""}},       // refused
		{at(here), &session.WorkOnProject, obj{"session_id": foreign, "instruction": "x"}},                   // denied
	} {
		if _, err := w.try(c.f, c.spec, c.args); err == nil {
			t.Fatalf("%v was taken", c.args)
		}
	}
	w.call(at(here), reads, obj{"project": calltest.Alpha.String(), "session_id": two}) // business, no recorder
	w.call(at(here), &session.ReadSummary, obj{"session_id": two})
	if after := w.relations(here); len(after) != len(before) {
		t.Errorf("%+v", after)
	}
	w.read(at(here).recording(two), calltest.Alpha)
	w.read(at(there).recording(two), calltest.Alpha)
	w.call(at(there), &session.WorkOnProject, obj{"session_id": one, "instruction": "more"})
	if r := w.relations(here); len(r) != 2 || r[0].Session != two || r[0].Relation != event.RelationRecording {
		t.Errorf("%+v", r)
	}
	if r := w.relations(there); len(r) != 2 || r[0].Session != one || r[1].Session != two {
		t.Errorf("%+v", r)
	}
	n := len(w.stored(calltest.Owner()))
	for range 3 {
		w.read(at(here).recording(two), calltest.Alpha)
	}
	if m := len(w.stored(calltest.Owner())); m > n+1 { // it may be told of the peer meanwhile
		t.Errorf("%d events for what was known", m-n)
	}
	w.pass(6 * time.Minute)
	w.read(at(here).recording(two), calltest.Alpha)
	if m := len(w.stored(calltest.Owner())); m == n {
		t.Error("an old relation was not told again")
	}
}

// The diagnosis names the one Session, and each of its conditions alone prevents it. The call
// stays as it was, and so does the next one.
//
// Covers: WIN-26, WIN-27, WIN-28, WIN-29
func TestARecorderGapIsToldAndNothingElse(t *testing.T) {
	w := newWorld(t)
	id := w.work(at(here), calltest.Alpha)
	args := obj{"project": calltest.Alpha.String()}
	before, view := w.others(), w.view(id)
	for range 2 {
		if a := w.call(at(here), reads, args); a.Gap == nil || a.Gap.SessionID != id || a.Gap.ReasonCode != "recent_window_affinity" {
			t.Fatalf("%+v", a.Gap)
		}
	}
	if w.others() != before || w.view(id) != view {
		t.Error("the diagnosis left something in a Session")
	}
	w.restart() // what is stored is enough
	if a := w.call(at(here), reads, args); a.Gap == nil {
		t.Error("no diagnosis after a restart")
	}
	second := calltest.Owner()
	second.Actor.Principal = calltest.Someone("c").Actor.Principal // the same authority group
	for what, none := range map[string]struct {
		f    from
		spec *call.Spec
		args obj
	}{
		"recorded":          {at(here).recording(id), reads, args},
		"in a Session":      {at(here), reads, obj{"project": calltest.Alpha.String(), "session_id": id}},
		"failed":            {at(here), fails, args},
		"a status call":     {at(here), looks, args},
		"no Project call":   {at(here), asks, obj{}},
		"another window":    {at(there), reads, args},
		"no window":         {at(""), reads, args},
		"another principal": {from{who: second, window: here}, reads, args},
		"another Project":   {at(here), reads, obj{"project": calltest.Beta.String()}},
	} {
		if a := w.call(none.f, none.spec, none.args); a.Gap != nil {
			t.Errorf("%s: %+v", what, a.Gap)
		}
	}
	w.call(at(""), &session.CloseSession, obj{"session_id": id})
	if a := w.call(at(here), reads, args); a.Gap != nil {
		t.Errorf("of a Closed Session: %+v", a.Gap)
	}
	other := w.work(at(here), calltest.Alpha)
	if a := w.call(at(here), reads, args); a.Gap == nil || a.Gap.SessionID != other {
		t.Errorf("%+v", a.Gap)
	}
	w.pass(10*time.Minute + time.Second)
	if a := w.call(at(here), reads, args); a.Gap != nil {
		t.Errorf("not recent: %+v", a.Gap)
	}
}

// view is all that a Session shows, as text.
func (w *world) view(id event.SessionID) string {
	w.T.Helper()
	v, err := w.Store.Load(id)
	if err != nil {
		w.T.Fatal(err)
	}
	raw, err := json.Marshal(struct{ Core, Board, Tail any }{v.Core, v.Board.Messages(), v.Tail.Items()})
	if err != nil {
		w.T.Fatal(err)
	}
	return string(raw)
}

// Without a recorder a Project tool shows the open messages of the Session that this window of
// this principal named last at exactly this Project, takes ACKs of this request, and does no
// more.
//
// Covers: ACK-20, ACK-21, ACK-22, ACK-05
func TestAttentionFallsBackToTheWindow(t *testing.T) {
	w := newWorld(t)
	old, id := w.work(at(here), calltest.Alpha), w.work(at(here), calltest.Alpha)
	post := func(to event.SessionID, text string) event.MessageID {
		m := event.MessagePosted{Message: event.NewMessageID(), Kind: event.MessageTodo, Text: text, Priority: event.PriorityNormal, RequiresAck: true}
		w.Append(to, m)
		return m.Message
	}
	post(old, "old")
	m1, m2 := post(id, "1"), post(id, "2")
	args := obj{"project": calltest.Alpha.String()}
	before := w.others()
	a := w.call(at(here), reads, args)
	if a.Attention == nil || a.Attention.SessionID != id || a.Attention.Source != "window_affinity" || len(a.Attention.Messages) != 2 || a.Attention.AckRef == "" {
		t.Fatalf("%+v", a.Attention)
	}
	if w.others() != before {
		t.Error("showing it wrote something")
	}
	colleague := calltest.Owner()
	colleague.Actor.Principal = calltest.Someone("c").Actor.Principal
	for what, c := range map[string]struct {
		f    from
		args obj
	}{
		"window":    {at(there), args},
		"none":      {at(""), args},
		"principal": {from{who: colleague, window: here}, args},
		"project":   {at(here), obj{"project": calltest.Beta.String()}},
	} {
		c.f.env.AckRef = a.Attention.AckRef
		if got := w.call(c.f, reads, c.args); got.Attention != nil {
			t.Errorf("another %s: %+v", what, got.Attention)
		}
	}
	if w.others() != before {
		t.Error("a ref without its Session wrote something")
	}
	core := func() string {
		v, err := w.Store.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		v.Core.Version = 0 // an ACK's commit counts
		raw, _ := json.Marshal(struct{ Tail, Guards, Lifecycle, Context any }{v.Tail.Items(), v.Core.Guards, v.Core.Lifecycle, v.Core.Context})
		return string(raw)
	}
	was := core()
	if got := w.call(at(here).ack(m1), reads, args); got.Attention == nil || got.Attention.Acknowledged != 1 || got.Attention.Messages[0].MessageID != m2 {
		t.Fatalf("%+v", got.Attention)
	}
	if core() != was {
		t.Error("an ACK changed more than the message")
	}
	last := w.Commits(id)
	if got, ok := last[len(last)-1].Events[0].(event.MessagesAcknowledged); !ok || !slices.Equal(got.Messages, []event.MessageID{m1}) {
		t.Errorf("%+v", last[len(last)-1].Events)
	}
	if got := w.call(at(here).recording(old), reads, args); got.Attention == nil || got.Attention.SessionID != old || got.Attention.Source != "recorder" {
		t.Errorf("an explicit recorder: %+v", got.Attention)
	}
	if got := w.call(at(here), reads, args); got.Attention == nil || got.Attention.SessionID != old {
		t.Errorf("the latest is the recorder's: %+v", got.Attention)
	}
}

// Whatever windows know of each other, targets and authority stay explicit.
//
// Covers: WIN-05, WIN-06, WIN-12
func TestAWindowSelectsAndAuthorisesNothing(t *testing.T) {
	w := newWorld(t)
	w.meet()
	id := w.work(at(here), calltest.Alpha)
	foreign := from{who: calltest.Someone("b"), window: here} // an equal window gives no authority
	for _, c := range []struct {
		f    from
		spec *call.Spec
		args obj
		kind fault.Kind
	}{
		{foreign, &session.ReadSummary, obj{"session_id": id}, fault.SessionAuthorityDenied},
		{foreign.recording(id), reads, obj{"project": calltest.Alpha.String()}, fault.SessionAuthorityDenied},
		{at(here), &session.ReadSummary, obj{}, fault.InvalidArguments},
		{at(here), &board.PostMessage, obj{"kind": "note", "message": "x"}, fault.InvalidArguments},
		{at(here), &session.ReadSummary, obj{"session_id": peer.Name(calltest.Owner().Actor.Principal, here)}, fault.UnknownSessionID},
		{at(here).recording(event.SessionID(peer.Name(calltest.Owner().Actor.Principal, here))), reads, obj{"project": calltest.Alpha.String()}, fault.UnknownSessionID},
	} {
		if _, err := w.try(c.f, c.spec, c.args); fault.KindOf(err) != c.kind {
			t.Errorf("%s %v: %v, want %s", c.spec.Name, c.args, err, c.kind)
		}
	}
	// Who knows the peer that works there is in neither of two Sessions of different Projects for it.
	elsewhere := w.work(at(there), calltest.Beta)
	for _, c := range []struct {
		f    from
		spec *call.Spec
		args obj
		kind fault.Kind
	}{
		{at(here).recording(elsewhere), &board.PostMessage, obj{"session_id": id, "kind": "note", "message": "x"}, fault.SessionProjectMismatch},
		{at(here).recording(elsewhere), reads, obj{"project": calltest.Alpha.String()}, fault.SessionProjectMismatch},
		{at(here), &session.FinishTask, obj{"session_id": elsewhere, "project": calltest.Alpha.String()}, fault.SessionProjectMismatch},
		{from{who: calltest.Owner(call.ScopeCollaborate), window: here}, &board.PostMessage, obj{"session_id": elsewhere, "kind": "note", "message": "x"}, fault.InsufficientScope},
	} {
		if _, err := w.try(c.f, c.spec, c.args); fault.KindOf(err) != c.kind {
			t.Errorf("%s %v: %v, want %s", c.spec.Name, c.args, err, c.kind)
		}
	}
	n := len(w.Commits(id))
	w.read(at(here), calltest.Alpha)
	if len(w.Commits(id)) != n {
		t.Error("a window recorded")
	}
	fresh := w.call(at(here), &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "y"}).SessionID
	if fresh == id {
		t.Error("a window resumed")
	}
}

// The Sessions that a window named are linked to it, the newest first.
func TestLinkedAreTheWindowsOwn(t *testing.T) {
	w := newWorld(t)
	one, two := w.work(at(here), calltest.Alpha), w.work(at(here), calltest.Beta)
	w.work(at(there), calltest.Alpha)
	var got []event.SessionID
	spec := *reads
	spec.Run = func(ctx context.Context, c *call.Call) (call.Result, error) {
		got = w.peers.Linked(ctx, c)
		return call.Result{}, nil
	}
	w.call(at(here), &spec, obj{"project": calltest.Alpha.String()})
	if !slices.Equal(got, []event.SessionID{two, one}) {
		t.Errorf("%v", got)
	}
	w.call(at(""), &spec, obj{"project": calltest.Alpha.String()})
	if got != nil {
		t.Errorf("%v without a window", got)
	}
}

// The status shows what was seen of the caller's own window; without one it is unavailable.
//
// Covers: WIN-22, WIN-24, WIN-25
func TestTheStatusTellsOfTheCallersLoop(t *testing.T) {
	w := newWorld(t)
	loop := func(f from) (l window.Loop, raw string) {
		t.Helper()
		resp, err := w.Kernel.Call(context.Background(), call.Request{Spec: runtime.GetRuntimeStatus, Args: json.RawMessage(`{}`), Principal: f.who, Window: f.window})
		var out struct {
			Loop json.RawMessage `json:"window_loop"`
		}
		if err != nil || json.Unmarshal(resp.Output, &out) != nil || json.Unmarshal(out.Loop, &l) != nil {
			t.Fatal(err)
		}
		return l, string(out.Loop)
	}
	w.work(at(here), calltest.Alpha)
	w.read(at(there), calltest.Alpha)
	w.call(at(here), asks, obj{})
	w.pass(time.Minute)
	w.read(at(here), calltest.Beta)
	for range 2 { // the look itself is none of it
		l, raw := loop(at(here))
		if l.Continuity != window.LoopObserved || len(l.Calls) != 2 || l.Calls[0].Tool != "work_on_project" || l.Calls[0].GapMS == nil || *l.Calls[0].GapMS < 60_000 || l.Calls[1].GapMS != nil {
			t.Fatalf("%s", raw)
		}
		for _, word := range []string{"turn", "generation", "response", "online"} {
			if strings.Contains(raw, word) {
				t.Errorf("%s tells of a %s", raw, word)
			}
		}
	}
	for _, f := range []from{at(""), {who: calltest.Someone("b")}} {
		if l, raw := loop(f); l.Continuity != window.LoopUnavailable || len(l.Calls) != 0 {
			t.Errorf("%s", raw)
		}
	}
	if l, raw := loop(from{who: calltest.Someone("b"), window: here}); len(l.Calls) != 0 {
		t.Errorf("another principal is shown %s", raw)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				w.read(at(here), calltest.Alpha)
				w.call(at(here), runtime.GetRuntimeStatus, obj{})
			}
		})
	}
	wg.Wait()
	if l, _ := loop(at(here)); len(l.Calls) != 20 {
		t.Errorf("%d calls", len(l.Calls))
	}
}
