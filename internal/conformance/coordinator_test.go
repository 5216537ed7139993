package conformance_test

import (
	"bytes"
	"encoding/json"
	"slices"
)

// attention is what answers show of a Session's open messages.
type attention struct {
	Session      string `json:"session_id"`
	Source       string
	Messages     []message
	Acknowledged int
	Ref          string `json:"ack_ref"`
}

func (a attention) ids() (out []string) {
	for _, m := range a.Messages {
		out = append(out, m.ID)
	}
	return out
}

// attend makes a call that the coordinator's Session keeps, and checks which messages it shows.
func (d *delegation) attend(h *host, b beside, want ...string) attention {
	d.Helper()
	var out struct {
		Attention *attention `json:"session_attention"`
	}
	b.record = d.bossID
	h.must("list_projects", nil, b, &out)
	switch {
	case out.Attention == nil && len(want) == 0:
		return attention{}
	case out.Attention == nil || out.Attention.Session != d.bossID || !slices.Equal(sorted(out.Attention.ids()), sorted(want)):
		d.Fatalf("%s is shown %+v, want %v", h.name, out.Attention, want)
	}
	return *out.Attention
}

// saw: a host tells by their ids which messages it has seen. One answer leaves them out; the next
// shows them again, since nothing is resolved.
func (d *delegation) saw(h *host, ids []string, rest ...string) {
	d.Helper()
	d.attend(h, beside{ack: ids}, rest...)
	if a := d.attend(h, beside{}, append(ids, rest...)...); a.Acknowledged != 0 {
		d.Errorf("an acknowledgement is remembered: %+v", a)
	}
}

// acknowledge: the coordinator tells that it has seen two messages, where its era has a ref by
// that alone: it stands for the one that was named and the one that was shown then.
func (d *delegation) acknowledge(one, other string) {
	d.Helper()
	if !d.boss.modern {
		d.saw(d.boss, []string{one, other})
		return
	}
	ref := d.attend(d.boss, beside{ack: []string{one}}, other).Ref
	for range 2 {
		if a := d.attend(d.boss, beside{ackRef: ref}); a.Acknowledged != 2 || a.Ref != ref {
			d.Errorf("the ref stands for %+v", a)
		}
	}
	d.attend(d.boss, beside{}, one, other)
}

// answer: the coordinator answers the worker's question and settles it, on other calls where its
// era has the envelope, else by calls of their own. It gives the answer's id.
func (d *delegation) answer() string {
	d.Helper()
	const text, resolution = "Yes, but not the signature.", "told"
	own := beside{record: d.bossID}
	d.saw(d.boss, []string{d.question}, d.todo, d.progress)
	if !d.boss.modern {
		id := d.post(d.boss, "answer", text, args{"reply_to": d.question}).ID
		d.resolve(d.question, resolution)
		return id
	}
	var out struct {
		Control struct {
			Reply, Resolve struct {
				Success bool
				Output  struct {
					ID      string `json:"message_id"`
					Changed bool
				}
			}
		}
	}
	own.reply = args{"reply_to": d.question, "message": text}
	d.boss.must("read_session_discussion", args{"session_id": d.bossID}, own, &out)
	id := out.Control.Reply.Output.ID
	if !out.Control.Reply.Success || id == "" {
		d.Fatalf("the reply came to %+v", out)
	}
	d.boss.must("list_projects", nil, beside{record: d.bossID, resolve: args{"message_id": d.question, "resolution": resolution}}, &out)
	if !out.Control.Resolve.Success || !out.Control.Resolve.Output.Changed {
		d.Errorf("the resolve came to %+v", out)
	}
	return id
}

// resolve marks a message as dealt with, which changes something once.
func (d *delegation) resolve(id, resolution string) {
	d.Helper()
	for _, changes := range []bool{true, false} {
		var out struct {
			Changed bool
			Message message
		}
		d.boss.must("resolve_session_message", args{"session_id": d.bossID, "message_id": id, "resolution": resolution}, beside{record: d.bossID}, &out)
		if out.Changed != changes || out.Message.Status != "resolved" {
			d.Errorf("resolving changes %+v", out)
		}
	}
}

// check: the coordinator, who has looked last before both kills, finds exactly one completion.
func (d *delegation) check() {
	d.Helper()
	got := d.bossSees.news()
	d.bossSees.whole()
	if slices.Contains(got, d.progress) || len(sorted(got)) != len(slices.Compact(sorted(got))) {
		d.Errorf("the coordinator observes %v", got)
	}
	var answers []message
	for _, m := range d.bossSees.known() {
		if m.ReplyTo != nil && *m.ReplyTo == d.todo && m.Kind == "answer" {
			answers = append(answers, m)
		}
		if m.ID == d.todo && (m.Status != "resolved" || *m.ResolvedBy != d.done.Answer || *m.Completion != d.done.ID) {
			d.Errorf("the todo is %+v", m)
		}
	}
	if len(answers) != 1 || answers[0].ID != d.done.Answer || answers[0].Text != answered || *answers[0].Author != d.handID {
		d.Errorf("the todo is answered by %+v", answers)
	}
	d.attend(d.boss, beside{}, d.progress, d.correction)
	d.acknowledge(d.progress, d.correction)
	if got := d.bossSees.news(); !slices.Equal(got, []string{d.progress}) {
		d.Errorf("the acknowledgements changed %v", got) // the correction had its first from the worker
	}
	d.acknowledge(d.progress, d.correction)
	if got := d.bossSees.news(); len(got) != 0 {
		d.Errorf("acknowledging again changed %v", got)
	}
}

// brief is what the stories look at in a handoff_brief.
type brief struct {
	raw     json.RawMessage
	Session struct {
		ID        string `json:"session_id"`
		Lifecycle string
	}
	Task struct {
		Root      struct{ Text string } `json:"root_instruction"`
		Decisions notes
		Progress  notes `json:"recent_progress"`
	}
	Progress struct {
		Changed struct {
			Total int
			Items []json.RawMessage
		} `json:"changed_paths"`
	}
	Validation struct{ Status string }
	Attention  struct {
		Guidance  *int `json:"open_guidance"`
		Questions *int `json:"open_questions"`
		Todos     *int `json:"open_todos"`
		Risks     *int `json:"open_risks"`
	}
	Basis struct{ Complete bool }
}

type notes struct {
	Total int
	Items []struct {
		ID   string `json:"message_id"`
		Text string
	}
}

// handoff reads the coordinator's.
func (d *delegation) handoff(h *host, b beside) brief {
	d.Helper()
	return d.briefOf(h, d.bossID, b)
}

// briefOf reads a handoff, which is short, whole and of the Session that was named.
func (d *delegation) briefOf(h *host, id string, b beside) (out brief) {
	d.Helper()
	var read struct {
		Brief json.RawMessage `json:"handoff_brief"`
	}
	h.must("read_session_handoff", args{"session_id": id, "include_checkpoints": false}, b, &read)
	outcome{output: read.Brief}.into(h, &out)
	out.raw = read.Brief
	if len(out.raw) > 8192 || out.Session.ID != id || out.Session.Lifecycle != "active" || !out.Basis.Complete ||
		out.Attention.Guidance == nil || out.Attention.Questions == nil || out.Attention.Todos == nil || out.Attention.Risks == nil {
		d.Fatalf("%d bytes: %s", len(out.raw), out.raw)
	}
	return out
}

// closeOut: the coordinator reads its handoff, settles what is open and has the work judged.
// Reading leaves all as it was, for the next reader too.
func (d *delegation) closeOut() {
	d.Helper()
	first := d.handoff(d.boss, beside{})
	if second := d.handoff(d.boss, beside{}); !bytes.Equal(first.raw, second.raw) {
		d.Errorf("the second reader finds\n%s\nthe first found\n%s", second.raw, first.raw)
	}
	if got := d.bossSees.news(); len(got) != 0 || first.Task.Root.Text != task || first.Task.Decisions.Items[0] != d.before.Task.Decisions.Items[0] ||
		first.Task.Progress.Total != d.before.Task.Progress.Total+1 || first.Task.Progress.Items[0].ID != d.progress || *first.Attention.Guidance != 1 || *first.Attention.Todos != 0 {
		d.Errorf("the handoff is %s, and changes %v", first.raw, got)
	}
	d.attend(d.boss, beside{}, d.progress, d.correction)
	d.resolve(d.progress, "seen")
	d.resolve(d.correction, "done")
	d.attend(d.boss, beside{})
	if got := d.bossSees.news(); !slices.Equal(got, []string{d.progress, d.correction}) {
		d.Errorf("resolving changed %v", got)
	}
	d.bossSees.whole()
	d.judged(d.boss, d.bossID, false, "not_run")
	d.judged(d.hand, d.handID, true, "passed")
	last, own := d.handoff(d.boss, beside{}), d.briefOf(d.boss, d.handID, beside{})
	if *last.Attention.Guidance+*last.Attention.Questions+*last.Attention.Todos+*last.Attention.Risks != 0 || last.Task.Decisions.Total != 1 || last.Progress.Changed.Total != 0 {
		d.Errorf("the coordinator's handoff is %s", last.raw)
	}
	if own.Task.Root.Text != workerJob || own.Task.Decisions.Total != 0 || own.Progress.Changed.Total != 1 || own.Validation.Status != "passed" {
		d.Errorf("the worker's handoff is %s", own.raw)
	}
}

// judged has a Session's work judged: nothing blocks it, and its own evidence is what counts.
func (d *delegation) judged(h *host, id string, edited bool, validation string) {
	d.Helper()
	var out struct {
		ID        string `json:"session_id"`
		Lifecycle string
		Verdict   string
		Blockers  []json.RawMessage       `json:"hard_blockers"`
		Notices   []struct{ Code string } `json:"advisories"`
		Facts     struct {
			Edited     bool   `json:"repository_edited"`
			Validation string `json:"validation_status"`
		}
	}
	h.must("finish_coding_task", args{"project": d.srv.Project, "session_id": id}, beside{record: id}, &out)
	if out.ID != id || out.Lifecycle != "active" || out.Verdict != "warn" || len(out.Blockers) != 0 || len(out.Notices) != 1 || out.Notices[0].Code != "workspace_dirty" ||
		out.Facts.Edited != edited || out.Facts.Validation != validation {
		d.Errorf("%s has its work judged so: %+v", h.name, out)
	}
}

// ownTails: there are two Sessions, each with its own task, and each has kept what it was given,
// across both kills. All work is in the worker's own; in the coordinator's it left that it had
// read and seen.
func (d *delegation) ownTails() {
	d.Helper()
	var list struct {
		Total    int
		Sessions []struct {
			ID string `json:"session_id"`
		}
	}
	d.boss.must("list_sessions", args{"project": d.srv.Project}, beside{}, &list)
	var ids []string
	for _, s := range list.Sessions {
		ids = append(ids, s.ID)
	}
	if list.Total != 2 || !slices.Equal(sorted(ids), sorted([]string{d.bossID, d.handID})) {
		d.Errorf("there are %+v", list)
	}
	d.kept.holds(d.boss, d.bossID, task)
	d.kept.holds(d.hand, d.handID, workerJob)
	work := []string{"read_files", "edit_project_files", "go_test"}
	var worked []string
	for _, k := range slices.Concat(d.kept[d.bossID], d.kept[d.handID]) {
		if k.role == "business" {
			worked = append(worked, k.tool)
		}
	}
	if own := d.hand.made[d.handID]; !slices.Equal(worked, slices.Concat(work, work)) || len(own) != len(d.kept[d.handID]) {
		d.Errorf("the work was %v, the worker's Session has %v", worked, own)
	}
	if lent := d.hand.made[d.bossID]; !slices.Equal(slices.Compact(lent), []string{"get_session_assignment", "list_projects"}) || len(d.boss.made[d.handID]) > 0 {
		d.Errorf("in the other's Session are %v and %v", lent, d.boss.made[d.handID])
	}
	d.Logf("kept: %d calls in the coordinator's Session, %d in the worker's", len(d.kept[d.bossID]), len(d.kept[d.handID]))
}
