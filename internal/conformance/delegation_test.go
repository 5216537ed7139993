package conformance_test

import (
	"net/url"
	"path/filepath"
	"testing"
)

// A host of the modern era has one of the eras before do its work, over the board of its own
// Session, with the server killed while the worker waits and right after it has delivered.
//
// Covers: SES-59, MSG-22, MSG-34, MSG-36, REC-06, ACK-03, HND-41
func TestModernDelegatesToLegacy(t *testing.T) { delegate(t, "v2", "v1") }

// The same the other way round.
//
// Covers: SES-59, MSG-27, MSG-32, MSG-37, MSG-38, REC-01, REC-13, ACK-24
func TestLegacyDelegatesToModern(t *testing.T) { delegate(t, "v1", "v2") }

// delegation is a story of two hosts and a server that is killed twice. Each host has a Session
// of its own; what they have in common is the board and the handoff of the coordinator's.
type delegation struct {
	*testing.T
	srv  *server
	repo string
	kept ledger

	boss, hand     *host  // coordinator and worker
	bossID, handID string // their Sessions
	bossSees       *watcher
	handSees       *watcher

	todo, note, progress, question, correction string
	fence                                      string // of the assignment as the worker has read it
	done                                       completion
	before                                     brief // the coordinator's handoff as the worker found it
}

const (
	task      = "Have Sum repaired by somebody else, and check what comes."
	duty      = "Make the test of Sum pass. Leave its signature alone."
	workerJob = "Take the todo that another Session has for me."
	answered  = "Sum adds now, its comment says that it may overflow; TestSum passes."
)

// delegate plays the story from the first call to the closeout.
func delegate(t *testing.T, boss, hand string) {
	n := node(t)
	d := &delegation{T: t, repo: repository(t), kept: ledger{}}
	d.srv = upOn(t, d.repo, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	d.boss, d.hand = newHost(t, n, boss, "coordinator", d.kept), newHost(t, n, hand, "worker", d.kept)
	d.boss.connect(d.srv.ready)
	d.hand.connect(d.srv.ready)

	d.otherEra()
	d.ask()
	d.take()
	d.talk()
	d.repair("a - b", "a + b")
	d.killedWhileWaiting()
	d.correct()
	d.repair("// Sum adds.", "// Sum adds; it may overflow.")
	d.killedAfterDelivery()
	d.check()
	d.closeOut()
	d.ownTails()
}

// otherEra tries the members that the other era has on each host: they are unknown to its tools.
func (d *delegation) otherEra() {
	d.Helper()
	for _, h := range []*host{d.boss, d.hand} {
		name, v := "_wc", any(args{"context": []string{}})
		if h.modern {
			name, v = "recording_session_id", "~s1"
		}
		var f struct{ Field string }
		if h.refused("invalid_arguments", "list_projects", args{name: v}, beside{}, &f); f.Field != name {
			d.Errorf("%s is refused for %q", h.name, f.Field)
		}
	}
}

// restart starts the server again, at its address and over its data, after a kill.
func (d *delegation) restart() {
	d.Helper()
	u, err := url.Parse(d.srv.MCPURL)
	if err != nil {
		d.Fatal(err)
	}
	old := d.srv.ready
	d.srv = upOn(d.T, d.repo, old.DataDir, u.Host)
	if d.srv.MCPURL != old.MCPURL || d.srv.Token != old.Token || d.srv.Project != old.Project || d.srv.PID == old.PID {
		d.Errorf("the server came back as %+v, it was %+v", d.srv.ready, old)
	}
}

// session begins work and gives the Session that it made.
func (d *delegation) session(h *host, instruction string) string {
	d.Helper()
	var out struct {
		ID           string `json:"session_id"`
		Continuation string
	}
	h.must("work_on_project", args{"project": d.srv.Project, "instruction": instruction}, beside{}, &out)
	if out.Continuation != "created" {
		d.Errorf("%s got a Session %s", h.name, out.Continuation)
	}
	return out.ID
}

// posted is what a post answers.
type posted struct {
	ID       string `json:"message_id"`
	Replayed bool
	Message  message
}

// post puts a message on the coordinator's board, which the caller's own Session keeps.
func (d *delegation) post(h *host, kind, text string, more args) posted {
	d.Helper()
	own := d.bossID
	if h == d.hand {
		own = d.handID
	}
	a := args{"session_id": d.bossID, "kind": kind, "message": text}
	for k, v := range more {
		a[k] = v
	}
	var p posted
	h.must("post_session_message", a, beside{record: own}, &p)
	if p.ID != p.Message.ID || p.Message.Kind != kind || p.Message.Text != text || p.Message.Author == nil || *p.Message.Author != own {
		d.Errorf("%s posted %+v", h.name, p)
	}
	return p
}

// postTodo posts the todo, each time with the key of the first.
func (d *delegation) postTodo() posted {
	d.Helper()
	return d.post(d.boss, "todo", duty, args{"requires_ack": true, "priority": "high", "tags": []string{"sum"}, "delivery_key": "todo-of-sum"})
}

// ask: the coordinator begins, and says on its board what is known and what it wants.
func (d *delegation) ask() {
	d.Helper()
	d.bossID = d.session(d.boss, task)
	d.note = d.post(d.boss, "decision", "Sum stays a function of two ints.", nil).ID
	d.post(d.boss, "progress", "TestSum fails: Sum(2, 3) is -1.", nil)
	first := d.postTodo()
	if d.todo = first.ID; first.Replayed || first.Message.Status != "open" || !first.Message.RequiresAck {
		d.Errorf("%+v", first)
	}
	if again := d.postTodo(); again.ID != d.todo || !again.Replayed {
		d.Errorf("posted again: %+v", again)
	}
	d.bossSees = newWatcher(d.boss, d.bossID, d.bossID)
}
