package board_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// Covers: MSG-31, MSG-36, MSG-37, MSG-38, MSG-41, RES-12
func TestCompletionAndItsReplay(t *testing.T) {
	w := newWorld(t)
	id := w.todo()
	token := w.observe("", nil).Token
	a := w.completion(id, "key")
	first := calltest.Must[board.CompleteOut](w.Env, &board.CompleteMessage, a)
	if first.Replayed || first.Todo.Status != view.MessageDone || *first.Todo.ResolvedBy != first.AnswerMessageID || first.Answer == nil ||
		*first.Answer.ReplyTo != id || first.Answer.Kind != event.MessageAnswer || *first.Answer.Completion != first.CompletionID ||
		*first.Todo.Completion != first.CompletionID || first.Answer.Author != nil {
		t.Errorf("%+v", first)
	}
	if o := w.observe(token, nil); len(o.Messages) != 2 {
		t.Errorf("observed: %+v", o.Messages)
	}
	token = w.observe("", nil).Token
	for range 2 {
		before := w.Seq()
		again := calltest.Must[board.CompleteOut](w.Env, &board.CompleteMessage, a)
		if !again.Replayed || again.AnswerMessageID != first.AnswerMessageID || again.CompletionID != first.CompletionID || w.Seq() != before {
			t.Errorf("again: %+v", again)
		}
		for _, other := range []args{{"answer": "otherwise"}, {"priority": "high"}, {"tags": []string{"x"}}} {
			b := args{}
			for _, m := range []args{a, other} {
				for k, v := range m {
					b[k] = v
				}
			}
			w.refuse(&board.CompleteMessage, b, fault.IdempotencyConflict)
		}
		b := w.on(a)
		b["completion_key"] = "another"
		w.refuse(&board.CompleteMessage, b, fault.AlreadyCompleted)
		w.Reopen()
	}
	if o := w.observe(token, nil); len(o.Messages) != 0 || o.HistoryLost {
		t.Errorf("a replay is a change: %+v", o)
	}
	for field, b := range map[string]args{
		"expected_assignment_fence": {"message_id": id, "answer": "x", "completion_key": "k"},
		"completion_key":            {"message_id": id, "answer": "x", "expected_assignment_fence": a["expected_assignment_fence"]},
	} {
		if f := w.refuse(&board.CompleteMessage, b, fault.InvalidArguments); f.Field != field {
			t.Errorf("without %s: field %q", field, f.Field)
		}
	}
	w.refuse(&board.CompleteMessage, args{"message_id": w.todo(), "answer": strings.Repeat("x", board.MaxText+1), "completion_key": "k",
		"expected_assignment_fence": a["expected_assignment_fence"]}, fault.InvalidMessage)
}

// A text that cannot be a fence has an error of its own; one that could be, and is not this
// assignment's, is stale. Neither changes anything.
//
// Covers: MSG-32, MSG-48
func TestFencesThatAreNone(t *testing.T) {
	w := newWorld(t)
	a := w.completion(w.todo(), "key")
	fence := a["expected_assignment_fence"].(string)
	for name, tc := range map[string]struct {
		fence  string
		kind   fault.Kind
		reason string
	}{
		"truncated": {fence[:47], fault.InvalidFence, "malformed"}, "extended": {fence + "A", fault.InvalidFence, "oversized"},
		"another prefix": {"wsa2_" + fence[5:], fault.InvalidFence, "malformed"}, "the prefix in capitals": {"WSA1_" + fence[5:], fault.InvalidFence, "malformed"},
		"a line break inside": {fence[:20] + "\n" + fence[21:], fault.InvalidFence, "malformed"}, "a line break at the end": {fence[:47] + "\n", fault.InvalidFence, "malformed"},
		"padded": {fence[:47] + "=", fault.InvalidFence, "malformed"}, "re-encoded": {fence[:46] + "+/", fault.InvalidFence, "malformed"},
		"193 bytes": {strings.Repeat("A", 193), fault.InvalidFence, "oversized"}, "a token": {w.observe("", nil).Token, fault.InvalidFence, "oversized"},
		"in capitals": {fence[:5] + strings.ToUpper(fence[5:]), fault.FenceStale, ""}, "made up": {"wsa1_" + strings.Repeat("A", 43), fault.FenceStale, ""},
	} {
		b := w.on(a)
		b["expected_assignment_fence"] = tc.fence
		if f := w.refuse(&board.CompleteMessage, b, tc.kind); f.Reason != tc.reason || f.Field != "expected_assignment_fence" || f.StateChanged {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A reply between assignment and completion: the first try changes nothing and shows the
// assignment as it is, the second stands. A foreign fence never helps.
//
// Covers: MSG-32, MSG-33, MSG-34, MSG-48
func TestReplyBetweenAssignmentAndCompletion(t *testing.T) {
	w := newWorld(t)
	id, other := w.todo(), w.todo()
	a := w.completion(id, "key")
	for range 100 {
		w.post(nil)
	}
	b := w.on(a)
	b["expected_assignment_fence"] = *w.assignment(other).Fence
	w.refuse(&board.CompleteMessage, b, fault.FenceStale)
	resp, err := w.as(window("c"), &board.GetAssignment, args{"message_id": id})
	b["expected_assignment_fence"] = *outOf[board.Assignment](t, resp, err).Fence
	w.refuse(&board.CompleteMessage, b, fault.FenceStale)

	w.post(args{"message": "wait, also that", "reply_to": id})
	f := w.refuse(&board.CompleteMessage, a, fault.FenceStale)
	now := f.Details["assignment"].(board.Assignment)
	if f.StateChanged || !now.Completable || len(now.Replies) != 1 || now.Replies[0].Message != "wait, also that" {
		t.Fatalf("%+v", f)
	}
	a["expected_assignment_fence"] = *now.Fence
	if out := calltest.Must[board.CompleteOut](w.Env, &board.CompleteMessage, a); out.Replayed {
		t.Errorf("%+v", out)
	}
}

// Completing after the todo was evicted, and a board that the completion itself overflows.
//
// Covers: MSG-35, MSG-39
func TestCompletionAndRetention(t *testing.T) {
	w := newWorld(t)
	id := w.todo()
	a := w.completion(id, "key")
	for range view.MaxMessages - 1 {
		w.post(nil)
	}
	out := calltest.Must[board.CompleteOut](w.Env, &board.CompleteMessage, a)
	b := w.board()
	if _, ok := b.Find(id); !ok || b.Len() != view.MaxMessages || out.Answer == nil {
		t.Errorf("the completion let its own todo leave: %d messages", b.Len())
	}
	w.post(nil) // message 201 lets the todo leave
	if _, ok := w.board().Find(id); ok || w.board().Len() != view.MaxMessages {
		t.Errorf("%d messages", w.board().Len())
	}
	w.refuse(&board.CompleteMessage, a, fault.UnknownMessage)
	w.refuse(&board.GetAssignment, args{"message_id": id}, fault.UnknownMessage)

	id = w.todo()
	a = w.completion(id, "other")
	for range view.MaxMessages {
		w.post(nil)
	}
	w.refuse(&board.CompleteMessage, a, fault.UnknownMessage)
	w.refuse(&board.CompleteMessage, args{"message_id": w.post(nil).MessageID, "answer": "x", "completion_key": "k",
		"expected_assignment_fence": a["expected_assignment_fence"]}, fault.NotTodo)
}

// Eight windows complete one todo at once, each under its own key: one wins, the others get a
// truthful answer, and the winner's retry is its own completion again.
//
// Covers: MSG-37, MSG-38
func TestEightWindowsCompleteOneTodo(t *testing.T) {
	w := newWorld(t)
	for round := range 5 {
		id := w.todo()
		const windows = 8
		var wg sync.WaitGroup
		outs, errs := make([]*board.CompleteOut, windows), make([]error, windows)
		all := make([]args, windows)
		for i := range windows {
			p := window(fmt.Sprint(i))
			resp, err := w.as(p, &board.GetAssignment, args{"message_id": id})
			all[i] = args{"message_id": id, "answer": fmt.Sprintf("done by %d", i), "completion_key": fmt.Sprintf("key %d of %d", i, round),
				"expected_assignment_fence": *outOf[board.Assignment](t, resp, err).Fence}
		}
		for i := range windows {
			wg.Go(func() {
				resp, err := w.as(window(fmt.Sprint(i)), &board.CompleteMessage, all[i])
				if errs[i] = err; err == nil {
					out := outOf[board.CompleteOut](t, resp, nil)
					outs[i] = &out
				}
			})
		}
		wg.Wait()
		won := -1
		for i := range windows {
			switch {
			case errs[i] == nil && won >= 0:
				t.Errorf("%d and %d both completed", won, i)
			case errs[i] == nil:
				won = i
			case fault.KindOf(errs[i]) != fault.AlreadyCompleted:
				t.Errorf("window %d: %v", i, errs[i])
			}
		}
		if won < 0 {
			t.Fatal("nobody completed it")
		}
		resp, err := w.as(window(fmt.Sprint(won)), &board.CompleteMessage, all[won])
		if again := outOf[board.CompleteOut](t, resp, err); !again.Replayed || again.CompletionID != outs[won].CompletionID {
			t.Errorf("the winner again: %+v", again)
		}
		if n := w.list(args{"reply_to": id}).Total; n != 1 {
			t.Errorf("%d answers", n)
		}
	}
}

// The same completion from two connections at once, as a host does that retries too early.
//
// Covers: MSG-37, MSG-38
func TestOneCompletionSentTwiceAtOnce(t *testing.T) {
	w := newWorld(t)
	for round := range 5 {
		a := w.completion(w.todo(), fmt.Sprint(round))
		outs := make([]board.CompleteOut, 2)
		var wg sync.WaitGroup
		for i := range outs {
			wg.Go(func() {
				resp, err := w.Call(&board.CompleteMessage, a)
				outs[i] = outOf[board.CompleteOut](t, resp, err)
			})
		}
		wg.Wait()
		if outs[0].Replayed == outs[1].Replayed || outs[0].CompletionID != outs[1].CompletionID {
			t.Errorf("%+v\n%+v", outs[0], outs[1])
		}
	}
}

// Resolve and complete at once: whoever comes second is told how the todo ended.
//
// Covers: MSG-06, MSG-38
func TestResolveAndCompleteAtOnce(t *testing.T) {
	w := newWorld(t)
	for round := range 10 {
		id := w.todo()
		a := w.completion(id, fmt.Sprint(round))
		var wg sync.WaitGroup
		var resolved board.ResolveOut
		var cerr error
		wg.Go(func() {
			resolved = calltest.Must[board.ResolveOut](w.Env, &board.ResolveMessage, w.on(args{"message_id": id}))
		})
		wg.Go(func() { _, cerr = w.Call(&board.CompleteMessage, a) })
		wg.Wait()
		m := w.list(args{"message_id": id}).Messages[0]
		answered := m.ResolvedBy != nil
		if m.Status != view.MessageDone || answered != (cerr == nil) || resolved.Changed == answered ||
			cerr != nil && fault.KindOf(cerr) != fault.AlreadyCompleted {
			t.Errorf("resolved %v, complete %v, the todo %+v", resolved.Changed, cerr, m)
		}
	}
}

// The disk gives no word on a completion: its caller is told that, and the same key tells in
// the next life how it ended.
//
// Covers: MSG-40
func TestCompletionWithoutAWordOfTheDisk(t *testing.T) {
	for name, stands := range map[string]bool{"stored": true, "never sent": false} {
		t.Run(name, func(t *testing.T) {
			faults := &eventlog.Faults{}
			w := &world{Env: calltest.New(t, faults), t: t}
			w.id = w.start()
			id := w.todo()
			a := w.completion(id, "key")
			w.Reopen() // what the log's committer asks for is taken at its start
			broken := errors.New("no word")
			if stands {
				faults.AfterSync = func(uint64) error { return broken }
			} else {
				faults.BeforePublish = func(uint64) error { return broken }
			}
			w.Reopen()
			_, err := w.CallAs(context.Background(), calltest.Owner(), &board.CompleteMessage, w.on(a))
			f := fault.As(err)
			if f.Kind != fault.CompletionUncertain || f.FailureKind != "outcome_unknown" || f.Recovery != fault.RetrySame || !f.StateChanged {
				t.Fatalf("%+v (%v)", f, err)
			}
			// From now on nothing is sent, and nothing is said to be uncertain.
			_, err = w.Call(&board.CompleteMessage, w.on(a))
			if f := fault.As(err); f.Kind != fault.PersistenceUncertain || f.StateChanged {
				t.Errorf("after the log has ended: %+v", f)
			}
			*faults = eventlog.Faults{}
			_ = w.Log.Close()
			e := calltest.At(t, w.Dir, nil)
			e.Tokens = w.Tokens
			again := &world{Env: e, t: t, id: w.id}
			out := calltest.Must[board.CompleteOut](again.Env, &board.CompleteMessage, again.on(a))
			if out.Replayed != stands {
				t.Errorf("the retry: %+v", out)
			}
			if n := again.list(args{"reply_to": id}).Total; n != 1 {
				t.Errorf("%d answers", n)
			}
		})
	}
}

// A completion's author is its authorised recorder, and nobody that the arguments name.
//
// Covers: MSG-41
func TestAuthorIsTheRecorder(t *testing.T) {
	w := newWorld(t)
	recorder := w.start()
	a := w.completion(w.todo(), "k")
	resp, err := w.Kernel.Call(context.Background(), call.Request{Spec: &board.CompleteMessage, Args: encoded(t, a), Principal: calltest.Owner(),
		Transport: "mcp", Envelope: call.Envelope{Record: string(recorder), Field: "record"}})
	out := outOf[board.CompleteOut](t, resp, err)
	if out.Answer.Author == nil || *out.Answer.Author != recorder {
		t.Errorf("%+v", out.Answer)
	}
	b := w.completion(w.todo(), "l")
	b["author_session_id"] = recorder
	if out := calltest.Must[board.CompleteOut](w.Env, &board.CompleteMessage, b); out.Answer.Author != nil {
		t.Errorf("the caller said who wrote it: %+v", out.Answer)
	}
}
