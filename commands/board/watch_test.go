package board_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// Covers: MSG-11, MSG-14, MSG-15, MSG-16, MSG-18, MSG-21
func TestObserve(t *testing.T) {
	w := newWorld(t)
	for range 10 {
		w.post(nil)
	}
	base := w.observe("", nil)
	if len(base.Messages) != 0 || base.Messages == nil || base.HasMore || base.HistoryLost || base.Changed || base.WaitOutcome != "not_waited" {
		t.Errorf("the baseline: %+v", base)
	}
	if n := len(base.Token); n == 0 || n > 192 || !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(base.Token) {
		t.Errorf("the token: %q", base.Token)
	}
	risk := w.post(args{"kind": "risk"}).MessageID
	calltest.Must[board.ResolveOut](w.Env, &board.ResolveMessage, w.on(args{"message_id": risk}))
	asked := w.post(args{"requires_ack": true}).MessageID
	o := w.observe(base.Token, nil)
	if len(o.Messages) != 2 || o.Messages[0].MessageID != risk || o.Messages[0].Status != view.MessageDone || o.Messages[1].MessageID != asked || !o.Changed {
		t.Errorf("%+v", o)
	}
	if same := w.observe(o.Token, nil); len(same.Messages) != 0 || same.Changed || same.WaitOutcome != "not_waited" {
		t.Errorf("nothing changed: %+v", same)
	}
	w.Append(w.id, event.MessagesAcknowledged{Messages: []event.MessageID{asked}})
	if ack := w.observe(o.Token, nil); len(ack.Messages) != 1 || ack.Messages[0].FirstAckAt == nil || ack.Messages[0].Status != view.MessageOpen {
		t.Errorf("an ACK: %+v", ack)
	}
	// 120 changes in pages, with posts between them: none skipped, none doubled.
	token, seen := w.observe("", nil).Token, map[event.MessageID]bool{}
	for range 120 {
		w.post(nil)
	}
	for more := true; more; {
		o := w.observe(token, args{"limit": 50})
		for _, m := range o.Messages {
			if seen[m.MessageID] {
				t.Errorf("%s came twice", m.MessageID)
			}
			seen[m.MessageID] = true
		}
		if token, more = o.Token, o.HasMore; len(seen) == 50 {
			w.post(nil)
		}
	}
	if len(seen) != 121 {
		t.Errorf("%d messages", len(seen))
	}
}

// Whatever is not exactly a token of this Session's incarnation is none, and gives nothing.
//
// Covers: MSG-11, MSG-13
func TestTokensThatAreNone(t *testing.T) {
	w := newWorld(t)
	w.post(nil)
	token := w.observe("", nil).Token
	w.post(nil)
	future := w.observe("", nil).Token
	other := &world{Env: w.Env, t: t, id: w.start()}
	other.post(nil)
	other.post(nil)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte{}, raw...)
	flipped[3] ^= 1
	none := map[string]string{
		"empty": "", "truncated": token[:len(token)-1], "shorter": token[4:], "extended": token + "A", "doubled": token + token,
		"padded": token + "=", "upper case": strings.ToUpper(token), "lower case": strings.ToLower(token), "line break": token[:8] + "\n" + token[8:],
		"line break at the end": token + "\r\n", "space": " " + token, "re-encoded": base64.RawStdEncoding.EncodeToString(append(raw, 0xfb, 0xff)),
		"hex": fmt.Sprintf("%x", raw), "193 bytes": strings.Repeat("A", 193), "192 bytes": strings.Repeat("A", 192), "a bit": base64.RawURLEncoding.EncodeToString(flipped),
		"another Session's": other.observe("", nil).Token, "a number": "12", "a fence": "wsa1_" + strings.Repeat("A", 43), "a message": string(event.NewMessageID()),
	}
	for name, s := range none {
		f := w.refuse(&board.ObserveMessages, args{"after_observation_token": s}, fault.InvalidObservation)
		reason := map[string]string{"193 bytes": "oversized", "doubled": "oversized", "another Session's": "wrong_session"}[name]
		if f.Details != nil || f.Field != "after_observation_token" || f.Reason != cmp.Or(reason, "malformed") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// The numbers of a board that has fewer changes than the token says.
	before := w.board().Revision
	if o := w.observe(future, nil); len(o.Messages) != 0 || before != 2 {
		t.Errorf("%+v at %d", o, before)
	}
	w.refuse(&board.CompleteMessage, args{"message_id": w.todo(), "answer": "x", "completion_key": "k", "expected_assignment_fence": token}, fault.InvalidFence)
	w.refuse(&board.ObserveMessages, args{"wait_secs": 5}, fault.InvalidArguments)
	for _, secs := range []int{0, 61, -1} {
		w.refuse(&board.ObserveMessages, args{"after_observation_token": token, "wait_secs": secs}, fault.InvalidArguments)
	}
}

// A token of a later state than the board's, of another incarnation of the Session, and of a
// history whose end was lost.
//
// Covers: MSG-13, MSG-20
func TestTokensOfAnotherHistory(t *testing.T) {
	w := newWorld(t)
	w.post(nil)
	copied := t.TempDir()
	if err := w.Log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(copied, os.DirFS(w.Dir)); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	old := w.observe("", nil).Token
	w.post(nil)
	token := w.observe("", nil).Token
	// The copy has the same history, as far as it goes: there the token is from the future.
	back := &world{Env: calltest.At(t, copied, nil), t: t, id: w.id}
	if f := back.refuse(&board.ObserveMessages, args{"after_observation_token": token}, fault.InvalidObservation); f.Reason != "future_revision" {
		t.Errorf("%+v", f)
	}
	if o := back.observe(old, nil); o.HistoryLost || o.Changed {
		t.Errorf("%+v", o)
	}
	// A Session with the same id that began otherwise is another one.
	later := calltest.New(t, nil)
	created := w.Events(w.id)[0].(event.SessionCreated)
	created.Nonce = event.NewNonce()
	later.Append(w.id, created)
	if f := later.Refused(calltest.Owner(), &board.ObserveMessages, w.on(args{"after_observation_token": old}), fault.InvalidObservation); f.Reason != "wrong_session" {
		t.Errorf("of an earlier incarnation: %+v", f)
	}
	// A tail that is lost names another history, whatever the numbers are.
	back.Commit(event.LogAggregate(), event.LogTailLost{Epoch: event.NewNonce(), LastSeq: 1})
	back.post(nil)
	for _, s := range []string{old, token} {
		o := back.observe(s, args{"wait_secs": 60})
		if !o.HistoryLost || !o.Changed || len(o.Messages) != 0 || o.WaitOutcome != "not_waited" {
			t.Errorf("%+v", o)
		}
		if again := back.observe(o.Token, nil); again.HistoryLost || again.Changed {
			t.Errorf("the fresh token: %+v", again)
		}
	}
}

func (w *world) reopen() {
	w.t.Helper()
	e := calltest.At(w.t, w.Dir, nil)
	w.Env = e
}

// A cursor from before what retention took is told so; one behind it is not.
//
// Covers: MSG-19, MSG-20
func TestHistoryLostToRetention(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	for range view.MaxMessages {
		w.post(nil)
	}
	if o := w.observe(token, args{"limit": 1}); o.HistoryLost || len(o.Messages) != 1 {
		t.Errorf("all is there: %+v", o)
	}
	after := w.observe(token, args{"limit": 1}).Token
	w.post(nil)
	if o := w.observe(token, args{"limit": 100}); !o.HistoryLost || len(o.Messages) == 0 || !o.HasMore {
		t.Errorf("the first has left: lost %v, %d messages", o.HistoryLost, len(o.Messages))
	}
	if o := w.observe(after, nil); o.HistoryLost {
		t.Error("what has left was seen")
	}
}

// Tokens, keys and fences are good in the next life, and nothing old is new there.
//
// Covers: MSG-22, RES-12
func TestTokensSurviveARestart(t *testing.T) {
	w := newWorld(t)
	id := w.todo()
	token, fence := w.observe("", nil).Token, *w.assignment(id).Fence
	w.Reopen()
	if o := w.observe(token, nil); o.Changed || o.HistoryLost {
		t.Errorf("old messages are new: %+v", o)
	}
	late := w.post(nil).MessageID
	w.Reopen()
	if o := w.observe(token, nil); len(o.Messages) != 1 || o.Messages[0].MessageID != late {
		t.Errorf("%+v", o)
	}
	if now := *w.assignment(id).Fence; now != fence {
		t.Error("the fence is another one")
	}
}

// A wait sees the post that comes, and only then ends; everybody else goes on meanwhile.
//
// Covers: MSG-15, MSG-23, MSG-24
func TestWaitSeesTheNextChange(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	const waiters = 20
	outs := make(chan board.ObserveOut, waiters)
	for i := range waiters {
		go func() {
			resp, err := w.as(window(fmt.Sprintf("%x", i%16)), &board.ObserveMessages, args{"after_observation_token": token, "wait_secs": 60})
			outs <- outOf[board.ObserveOut](t, resp, err)
		}()
	}
	w.waiting(waiters)
	// What changes no board is written meanwhile, and ends no wait.
	w.Append(w.id, event.ToolCallStarted{Call: event.NewCallID(), Role: event.RoleBusiness, Tool: "x"})
	other := &world{Env: w.Env, t: t, id: w.start()}
	other.post(nil)
	select {
	case o := <-outs:
		t.Fatalf("a wait ended: %+v", o)
	default:
	}
	id := w.post(nil).MessageID
	for range waiters {
		if o := <-outs; len(o.Messages) != 1 || o.Messages[0].MessageID != id || o.WaitOutcome != "changed" || !o.Changed {
			t.Errorf("%+v", o)
		}
	}
	// What has changed already is not waited for.
	if o := w.observe(token, args{"wait_secs": 60}); len(o.Messages) != 1 || o.WaitOutcome != "changed" {
		t.Errorf("%+v", o)
	}
}

// waiting returns when so many calls have given up their slot to wait.
func (w *world) waiting(n int) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); w.Kernel.Waiters() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d calls wait, want %d", w.Kernel.Waiters(), n)
		}
	}
}

// A wait that nothing ends is a success, with a token to go on with.
//
// Covers: MSG-25
func TestWaitThatTimesOut(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	o := w.observe(token, args{"wait_secs": 1})
	if len(o.Messages) != 0 || o.Changed || o.HistoryLost || o.HasMore || o.WaitOutcome != "timeout" {
		t.Errorf("%+v", o)
	}
	id := w.post(nil).MessageID
	if o := w.observe(o.Token, nil); len(o.Messages) != 1 || o.Messages[0].MessageID != id {
		t.Errorf("%+v", o)
	}
}

// A cancelled wait, and the end of the server, leave nothing behind. What the server ends is a
// success, and its token is good in the next life.
//
// Covers: MSG-22, MSG-24, MSG-25
func TestWaitThatIsEnded(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := w.CallAs(ctx, calltest.Owner(), &board.ObserveMessages, w.on(args{"after_observation_token": token, "wait_secs": 60}))
		ended <- err
	}()
	w.waiting(1)
	cancel()
	if err := <-ended; fault.KindOf(err) != fault.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	w.waiting(0)

	outs := make(chan board.ObserveOut, 1)
	go func() {
		resp, err := w.Call(&board.ObserveMessages, w.on(args{"after_observation_token": token, "wait_secs": 60}))
		outs <- outOf[board.ObserveOut](t, resp, err)
	}()
	w.waiting(1)
	if err := w.Kernel.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := <-outs
	if o.Changed || o.WaitOutcome != "timeout" {
		t.Errorf("%+v", o)
	}
	w.Reopen()
	if again := w.observe(o.Token, nil); again.Changed || again.HistoryLost {
		t.Errorf("%+v", again)
	}
}

// One principal may wait 64 times at once, and work beside that.
func TestWaitersAreBounded(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range call.MaxWaitersPerPrincipal / 32 { // no more than 32 come in at once
		for range 32 {
			wg.Go(func() {
				_, _ = w.CallAs(ctx, calltest.Owner(), &board.ObserveMessages, w.on(args{"after_observation_token": token, "wait_secs": 60}))
			})
		}
		n := w.Kernel.Waiters() + 32
		w.waiting(n - n%32)
	}
	w.refuse(&board.ObserveMessages, args{"after_observation_token": token, "wait_secs": 60}, fault.TooManyCalls)
	w.list(nil)
	cancel()
	wg.Wait()
	w.waiting(0)
}

// The answer's form.
func TestObserveIsGolden(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	w.post(args{"message": "a <message>"})
	resp, err := w.Call(&board.ObserveMessages, w.on(args{"after_observation_token": token}))
	if err != nil {
		t.Fatal(err)
	}
	shape := string(resp.Output)
	for _, re := range []string{`wc_msg_[0-9a-f]{32}`, `wc_sess_[0-9a-f]{32}`, `"observation_token":"[^"]+"`, `[0-9-]{10}T[0-9:.]{12}Z`} {
		shape = regexp.MustCompile(re).ReplaceAllStringFunc(shape, func(s string) string {
			name, value, ok := strings.Cut(s, `":"`)
			if ok {
				return name + `":"` + strings.Repeat("T", min(len(value), 1)) + `"`
			}
			return "X"
		})
	}
	want, err := os.ReadFile(filepath.Join("testdata", "observe.json"))
	if err != nil {
		t.Fatal(err)
	}
	if shape != strings.TrimSpace(string(want)) || !json.Valid(resp.Output) {
		t.Errorf("%s", shape)
	}
}

// Observing is no receipt and no acknowledgement: it writes nothing, and nobody can tell from
// the board who has looked.
//
// Covers: MSG-26
func TestObservingLeavesNothing(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	id := w.post(args{"requires_ack": true}).MessageID
	before, seq, revision := w.list(args{"message_id": id}).Messages[0], w.Seq(), w.board().Revision
	for range 3 {
		if o := w.observe(token, args{"wait_secs": 60}); len(o.Messages) != 1 {
			t.Fatalf("%+v", o)
		}
		w.observe("", nil)
	}
	after := w.list(args{"message_id": id}).Messages[0]
	if after.FirstAckAt != nil || after.Status != before.Status || w.Seq() != seq || w.board().Revision != revision {
		t.Errorf("%+v, %d commits", after, w.Seq()-seq)
	}
}
