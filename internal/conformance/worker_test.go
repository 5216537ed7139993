package conformance_test

import "slices"

// assignment is what get_session_assignment answers.
type assignment struct {
	Todo    message
	Replies []message
	Total   int     `json:"replies_total"`
	Fence   *string `json:"assignment_fence"`
	Can     bool    `json:"completable"`
}

// is checks an assignment that can be completed, and gives its fence.
func (d *delegation) is(a assignment, replies ...string) string {
	d.Helper()
	var got []string
	for _, r := range a.Replies {
		got = append(got, r.ID)
	}
	if a.Todo.ID != d.todo || a.Todo.Status != "open" || a.Todo.Text != duty || a.Total != len(replies) || !slices.Equal(got, replies) ||
		!a.Can || a.Fence == nil {
		d.Fatalf("the assignment is %+v, want the replies %v", a, replies)
	}
	return *a.Fence
}

// take: the worker begins in a Session of its own, reads the other's handoff and finds its todo.
// That it has read the assignment is kept in the coordinator's Session, all else in its own.
func (d *delegation) take() {
	d.Helper()
	if d.handID = d.session(d.hand, workerJob); d.handID == d.bossID {
		d.Fatal("the worker was given the coordinator's Session")
	}
	own := beside{record: d.handID}
	d.before = d.handoff(d.hand, own)
	if b := d.before; b.Task.Root.Text != task || *b.Attention.Todos != 1 || b.Task.Decisions.Items[0].ID != d.note || b.Progress.Changed.Total != 0 {
		d.Errorf("the handoff is %+v", b)
	}
	var found struct{ Messages []message }
	d.hand.must("list_session_messages", args{"session_id": d.bossID, "kind": "todo", "status": "open"}, own, &found)
	if len(found.Messages) != 1 || found.Messages[0].ID != d.todo || found.Messages[0].FirstAck != nil {
		d.Fatalf("the worker finds %+v", found)
	}
	var a struct {
		assignment
		Attention attention `json:"session_attention"`
	}
	d.hand.must("get_session_assignment", args{"session_id": d.bossID, "message_id": d.todo}, beside{record: d.bossID}, &a)
	d.fence = d.is(a.assignment)
	if got := a.Attention.ids(); a.Attention.Session != d.bossID || a.Attention.Source != "recorder" || !slices.Equal(got, []string{d.todo}) {
		d.Errorf("beside the assignment: %+v", a.Attention)
	}
	d.saw(d.hand, []string{d.todo})
	d.handSees = newWatcher(d.hand, d.bossID, d.handID)
}

// talk: the worker tells how far it is and asks; while it waits, the coordinator answers. A reply
// to the todo makes another assignment of it.
func (d *delegation) talk() {
	d.Helper()
	d.progress = d.post(d.hand, "progress", "I have it; Sum subtracts.", args{"reply_to": d.todo, "requires_ack": true, "delivery_key": "p1"}).ID
	d.question = d.post(d.hand, "question", "May I touch the comment?", args{"requires_ack": true}).ID
	if got := d.handSees.news(); !slices.Equal(got, []string{d.progress, d.question}) {
		d.Errorf("the worker observes %v", got)
	}
	wait := d.hand.waiting("observe_session_messages", d.handSees.args(60), beside{})
	if got := d.bossSees.news(); !slices.Equal(got, []string{d.todo, d.progress, d.question}) {
		d.Errorf("the coordinator observes %v", got)
	}
	answer := d.answer()
	d.handSees.take("changed", d.hand.outcome("observe_session_messages", d.hand.answer("the wait", wait)))
	d.handSees.until(func(m message) bool { return m.ID == answer && m.ReplyTo != nil && *m.ReplyTo == d.question })
	d.handSees.until(func(m message) bool { return m.ID == d.question && m.Status == "resolved" })

	var a assignment
	d.hand.must("get_session_assignment", args{"session_id": d.bossID, "message_id": d.todo}, beside{record: d.handID}, &a)
	if fence := d.is(a, d.progress); fence == d.fence {
		d.Error("a reply to the todo left the fence as it was")
	} else {
		d.fence = fence
	}
}

// repair: the worker changes the file and proves it by the test, in its own Session.
func (d *delegation) repair(from, to string) {
	d.Helper()
	in := args{"project": d.srv.Project, "session_id": d.handID}
	var read struct {
		Items []struct{ SHA256, Text string }
	}
	d.hand.must("read_files", with(in, args{"items": []args{{"path": "sum.go"}}}), beside{}, &read)
	var edit struct {
		Paths []string `json:"changed_paths"`
	}
	d.hand.must("edit_project_files", with(in, args{"changes": []args{{"kind": "edit", "path": "sum.go", "expected_sha256": read.Items[0].SHA256,
		"edits": []args{{"kind": "replace_exact", "old_text": from, "new_text": to}}}}}), beside{}, &edit)
	if !slices.Equal(edit.Paths, []string{"sum.go"}) {
		d.Errorf("changed %v", edit.Paths)
	}
	var test struct {
		Passed bool
		Tests  int `json:"tests_passed"`
	}
	d.hand.must("go_test", with(in, args{"packages": []string{"./..."}, "min_tests": 1}), beside{}, &test)
	if !test.Passed || test.Tests != 1 {
		d.Errorf("%+v", test)
	}
}

// killedWhileWaiting: the server dies under the worker's wait. Nobody gets an answer; after the
// restart the worker's token of before is as good as it was, and sends nothing again.
func (d *delegation) killedWhileWaiting() {
	d.Helper()
	wait := d.hand.waiting("observe_session_messages", d.handSees.args(60), beside{record: d.handID})
	d.srv.kill(d.T)
	if l := d.boss.answer("a post", d.boss.send("post_session_message", d.correctionArgs(), beside{record: d.bossID})); l.Error == "" {
		d.Errorf("somebody answers: %s", l.Result)
	}
	d.restart()
	d.hand.connect(d.srv.ready) // gives up on the answer: no SDK tells that its stream has ended
	if l := d.hand.answer("the killed wait", wait); l.Error == "" {
		d.Errorf("the killed wait has an answer: %s", l.Result)
	}
	d.boss.goOn(d.srv.ready)
	if got := d.handSees.news(); len(got) != 0 {
		d.Errorf("after the restart the worker is sent %v", got)
	}
}

// completion is what complete_session_message answers.
type completion struct {
	ID       string `json:"completion_id"`
	Answer   string `json:"answer_message_id"`
	Replayed bool
	Todo     message
	Message  message `json:"answer"`
}

// complete gives the arguments of the worker's one intent: one answer under one key.
func (d *delegation) complete(fence string) args {
	return args{"session_id": d.bossID, "message_id": d.todo, "answer": answered, "completion_key": "sum-is-done", "expected_assignment_fence": fence}
}

// correctionArgs are those of the coordinator's correction, which is sent under one key.
func (d *delegation) correctionArgs() args {
	return args{"session_id": d.bossID, "kind": "guidance", "message": "Say in its comment that it may overflow.", "reply_to": d.todo,
		"requires_ack": true, "delivery_key": "correction"}
}

// correct: the coordinator changes what it wants, and the worker, who does not know yet, is told
// so when it delivers, with the assignment as it is now.
func (d *delegation) correct() {
	d.Helper()
	if again := d.postTodo(); again.ID != d.todo || !again.Replayed {
		d.Errorf("after a restart the key posts %+v", again)
	}
	var p posted
	d.boss.must("post_session_message", d.correctionArgs(), beside{record: d.bossID}, &p)
	if d.correction = p.ID; p.Replayed {
		d.Error("what was sent to no server had arrived")
	}
	var stale struct{ Assignment assignment }
	d.hand.refused("assignment_fence_stale", "complete_session_message", d.complete(d.fence), beside{record: d.handID}, &stale)
	fence := d.is(stale.Assignment, d.progress, d.correction)
	if fence == d.fence {
		d.Error("the fence that is given back is the outdated one")
	}
	d.fence = fence
	if got := d.handSees.news(); !slices.Equal(got, []string{d.correction}) {
		d.Errorf("the worker observes %v", got)
	}
	d.saw(d.hand, []string{d.correction}, d.todo, d.progress)
	if got := d.handSees.news(); !slices.Equal(got, []string{d.correction}) {
		d.Errorf("the first acknowledgement is no change: %v", got)
	}
}

// killedAfterDelivery: the worker completes, and the server dies as soon as it has said so. What
// the worker sends again, with the fence of then, gives the same completion.
func (d *delegation) killedAfterDelivery() {
	d.Helper()
	own := beside{record: d.handID}
	d.handoff(d.hand, own) // a reader leaves the fence as it is
	d.hand.must("complete_session_message", d.complete(d.fence), own, &d.done)
	d.srv.kill(d.T)
	if c := d.done; c.Replayed || c.Todo.Status != "resolved" || c.Todo.Completion == nil || *c.Todo.Completion != c.ID ||
		*c.Todo.ResolvedBy != c.Answer || c.Message.ID != c.Answer || *c.Message.ReplyTo != d.todo || c.Message.Text != answered || *c.Message.Author != d.handID {
		d.Errorf("%+v", c)
	}
	d.restart()
	d.hand.goOn(d.srv.ready)
	d.boss.goOn(d.srv.ready)
	var again completion
	d.hand.must("complete_session_message", d.complete(d.fence), own, &again)
	if again.ID != d.done.ID || again.Answer != d.done.Answer || !again.Replayed || again.Todo.Status != "resolved" || again.Message.Text != answered {
		d.Errorf("the retry gives %+v, the first was %+v", again, d.done)
	}
	d.hand.refused("idempotency_conflict", "complete_session_message", with(d.complete(d.fence), args{"answer": "Another."}), own, &struct{}{})
	d.hand.refused("already_completed", "complete_session_message", with(d.complete(d.fence), args{"completion_key": "another"}), own, &struct{}{})
	if got := d.handSees.news(); !slices.Equal(sorted(got), sorted([]string{d.todo, d.done.Answer})) {
		d.Errorf("the worker observes %v", got)
	}
	d.handSees.whole()
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// with are arguments with others over them.
func with(a, more args) args {
	out := args{}
	for _, m := range []args{a, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
