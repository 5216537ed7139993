package board

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/projections/state"
)

// play is a board that is decided on, kept by a Store over a real file that lives again and
// again, and observed, all at random. The log is in memory.
type play struct {
	t      *rapid.T
	dir    string
	life   int
	log    []eventlog.Applied
	store  *session.Store
	keeper *state.Keeper
	fences fencing

	n         int
	revision  uint64
	keys      map[string]event.MessageID // what a key's first answer was
	completed map[event.MessageID]event.MessageID
	fetched   []task
	watchers  []*watcher
	lost      int
}

// task is a completion that somebody is at, and the assignment as it was read.
type task struct {
	Complete
	read Assignment
}

func (p *play) path() string { return filepath.Join(p.dir, fmt.Sprintf("state%d.db", p.life)) }

// open begins a life with the file as it is.
func (p *play) open() {
	p.store = session.NewStore()
	p.store.SetHotTarget(rapid.IntRange(0, 2).Draw(p.t, "hot"))
	var err error
	p.keeper, err = state.Open(context.Background(), state.Options{Path: p.path(), Fold: session.Shape(), Models: []state.Model{p.store.Model()}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.store.SetKeeper(p.keeper)
	cp, err := p.keeper.Checkpoint()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range p.log[cp.Seq:] {
		p.keeper.Apply(a)
	}
}

// again ends a life: with its file written, as it is, or without it.
func (p *play) again() {
	switch rapid.IntRange(0, 2).Draw(p.t, "end") {
	case 0: // closing writes
	case 1: // nothing more is written: the next life has a copy
		from := p.path()
		p.life++
		for _, end := range []string{"", "-wal"} {
			b, err := os.ReadFile(from + end)
			if err == nil {
				err = os.WriteFile(p.path()+end, b, 0o600)
			}
			if err != nil && !os.IsNotExist(err) {
				p.t.Fatal(err)
			}
		}
	default:
		p.life++ // from the log alone
	}
	if err := p.keeper.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.open()
}

func (p *play) commit(events []event.Event) {
	if len(events) == 0 {
		return
	}
	seq := uint64(len(p.log) + 1)
	a := eventlog.Applied{Seq: seq, Hash: fmt.Sprintf("%064x", seq), Commit: event.Commit{Format: event.Format,
		Aggregate: event.SessionAggregate(sessionID), Version: seq, At: at.Add(time.Duration(seq) * time.Second), Events: events}}
	a.First, a.Root = seq == 1, 1
	p.log = append(p.log, a)
	p.keeper.Apply(a)
}

func (p *play) view() (session.Core, session.Board) {
	if rapid.Bool().Draw(p.t, "target") {
		if _, err := p.store.Target(sessionID); err != nil {
			p.t.Fatal(err)
		}
	}
	c, b, err := p.store.LoadBoard(sessionID)
	if err != nil {
		p.t.Fatal(err)
	}
	if b.Revision < p.revision {
		p.t.Fatalf("revision %d after %d", b.Revision, p.revision)
	}
	p.revision = b.Revision
	return c, b
}

// some names a message: mostly one of the oldest or the newest, one that somebody is at, or one
// that has left.
func (p *play) some(b session.Board) event.MessageID {
	list := b.Messages()
	if n := len(p.fetched); n > 0 && rapid.IntRange(0, 3).Draw(p.t, "at work") == 0 {
		return p.fetched[n-1-rapid.IntRange(0, min(n, 4)-1).Draw(p.t, "which of them")].Todo
	}
	i := rapid.IntRange(-15, 15).Draw(p.t, "which")
	switch {
	case i == 0 || len(list) == 0:
		return msg(rapid.IntRange(0, p.n+1).Draw(p.t, "any"))
	case i > 0:
		return list[max(0, len(list)-i)].ID
	default:
		return list[min(len(list)-1, -i-1)].ID
	}
}

func (p *play) id() event.MessageID {
	p.n++
	return msg(p.n)
}

// unchanged: a refusal or a replay decides nothing.
func (p *play) unchanged(events []event.Event, why any) {
	if len(events) > 0 {
		p.t.Fatalf("%v, and still %v", why, events)
	}
}

func (p *play) post() {
	core, b := p.view()
	x := Post{ID: p.id(), Kind: rapid.SampledFrom(event.MessageKinds()).Draw(p.t, "kind"), Text: fmt.Sprint("text ", p.n),
		Priority: event.PriorityNormal, RequiresAck: rapid.Bool().Draw(p.t, "ack"), Payload: "payload"}
	switch rapid.IntRange(0, 4).Draw(p.t, "names") {
	case 0, 1:
		x.ReplyTo = p.some(b)
	case 2:
		x.Supersedes = p.some(b)
	case 3:
		x.Kind = event.MessageTodo
	}
	if k := rapid.IntRange(0, 60).Draw(p.t, "key"); k < 20 {
		x.Key = fmt.Sprint("key ", p.n/8, k)
	}
	first, events, err := DecidePost(core, b, x)
	was := p.keys[x.Key]
	_, retained := b.Find(was)
	switch {
	case first != nil:
		if p.unchanged(events, "a replay"); first.ID != was {
			p.t.Fatalf("%s gives %s, it was %s", x.Key, first.ID, was)
		}
	case err != nil:
		p.unchanged(events, err)
	case x.Key != "" && retained:
		p.t.Fatalf("%s was posted again, %s is there", x.Key, was)
	default:
		if x.Key != "" {
			p.keys[x.Key] = x.ID
		}
		p.commit(events)
	}
}

func (p *play) resolve() {
	core, b := p.view()
	var text *string
	if t := rapid.SampledFrom([]string{"-", "yes", "no"}).Draw(p.t, "resolution"); t != "-" {
		text = &t
	}
	events, err := DecideResolve(core, b, p.some(b), text)
	if err != nil {
		p.unchanged(events, err)
	}
	p.commit(events)
	if _, now := p.view(); len(events) > 0 && now.Revision != b.Revision+1 {
		p.t.Fatalf("a resolve that was decided moved the revision from %d to %d", b.Revision, now.Revision)
	}
}

// fetch reads an assignment, mostly for later.
func (p *play) fetch() {
	core, b := p.view()
	id := p.some(b)
	if rapid.Bool().Draw(p.t, "the oldest") && b.Len() > 0 {
		id = b.Messages()[0].ID
	}
	m, ok := b.Find(id)
	if !ok {
		return
	}
	if a := p.fences.assign(core, b, m); a.Completable {
		p.fetched = append(p.fetched, task{Complete{Todo: m.ID, Text: "done", Priority: event.PriorityNormal, Fence: *a.Fence, Payload: "payload",
			Key: fmt.Sprint("done ", m.ID, rapid.IntRange(0, 2).Draw(p.t, "whose"))}, a})
		if rapid.Bool().Draw(p.t, "at once") {
			p.complete(0)
		}
	}
}

// means is an assignment without what changes nothing about it: ACKs (MSG-33).
func (a Assignment) means() Assignment {
	a.Todo.FirstAckAt, a.Fence, a.Replies = nil, nil, slices.Clone(a.Replies)
	for i := range a.Replies {
		a.Replies[i].FirstAckAt = nil
	}
	return a
}

// complete tries one of those fetched last, once or again.
func (p *play) complete(nth int) {
	if len(p.fetched) <= nth {
		return
	}
	x := p.fetched[len(p.fetched)-1-nth]
	x.Answer, x.Completion = p.id(), event.CompletionID(fmt.Sprintf("%s%032x", event.CompletionPrefix, p.n))
	core, b := p.view()
	assigned := func(m *session.Message) Assignment { return p.fences.assign(core, b, m) }
	first, events, err := DecideComplete(core, b, x.Complete, assigned)
	todo, retained := b.Find(x.Todo)
	switch {
	case first != nil:
		if p.unchanged(events, "a replay"); first.ResolvedBy != p.keys[x.Key] || first.ID != x.Todo {
			p.t.Fatalf("%s gives %s, it was %s", x.Key, first.ResolvedBy, p.keys[x.Key])
		}
	case err != nil:
		p.unchanged(events, err)
		if p.keys[x.Key] != "" && retained {
			p.t.Fatalf("a completion is refused its replay: %v", err)
		}
		if by := p.completed[x.Todo]; by != "" && retained && fault.KindOf(err) != fault.AlreadyCompleted {
			p.t.Fatalf("a todo that %s has completed is refused with %v", by, err)
		}
		if retained && cmp.Equal(assigned(todo).means(), x.read.means()) {
			p.t.Fatalf("an assignment that is the same is refused: %v", err)
		}
	default:
		if diff := cmp.Diff(x.read.means(), assigned(todo).means()); diff != "" {
			p.t.Fatalf("another assignment was completed:\n%s", diff)
		}
		p.finish(x, b, events)
	}
}

func (p *play) finish(x task, b session.Board, events []event.Event) {
	if by := p.completed[x.Todo]; by != "" {
		p.t.Fatalf("%s is completed a second time", x.Todo)
	}
	p.completed[x.Todo], p.keys[x.Key] = x.Answer, x.Answer
	p.commit(events)
	_, now := p.view()
	if todo, ok := now.Find(x.Todo); !ok || todo.ResolvedBy != x.Answer || now.Revision != b.Revision+2 {
		p.t.Fatalf("the todo is not completed: %+v", todo)
	}
	if _, ok := now.Find(x.Answer); !ok {
		p.t.Fatal("the answer is not there")
	}
}

func (p *play) acknowledge() {
	_, b := p.view()
	p.commit([]event.Event{event.MessagesAcknowledged{Messages: []event.MessageID{p.some(b), p.some(b)}}})
}

func (p *play) step() {
	which := func() int { return rapid.IntRange(0, len(p.watchers)-1).Draw(p.t, "watcher") }
	switch k := rapid.IntRange(0, 39).Draw(p.t, "step"); {
	case k <= 14:
		p.post()
	case k <= 17:
		p.resolve()
	case k <= 19:
		p.acknowledge()
	case k <= 22:
		p.fetch()
	case k <= 27:
		p.complete(rapid.IntRange(0, 7).Draw(p.t, "of those fetched"))
	case k <= 33:
		p.look(which(), rapid.IntRange(1, MaxObserveLimit).Draw(p.t, "limit"))
	case k == 34: // its token is lost
		p.watchers[which()] = p.begins()
	case k <= 36:
		if err := p.keeper.Flush(context.Background()); err != nil {
			p.t.Fatal(err)
		}
	case k == 37:
		p.again()
	case k == 38: // the rest of the Session goes on
		p.commit([]event.Event{event.ContextUpdated{}})
	default:
		p.check()
	}
}

// Random posts, replies, resolves, completions with old and new fences, ACKs and evictions,
// over lives of the read model: who observes with pages and was not told that history is lost
// ends with exactly the board, a todo is completed once and its keys give what they gave, and
// the revision never falls.
//
// Covers: MSG-10, MSG-17, MSG-19, MSG-21, MSG-32, MSG-33, MSG-38, RES-12
func TestModel(t *testing.T) {
	plays, steps := 12, 300
	if os.Getenv("WEBCODEX_SOAK") != "" {
		plays, steps = 100, 1000
	}
	lost, completed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if plays--; plays < 0 {
			return
		}
		whole := false
		defer func() {
			if !whole { // rapid tries it again, smaller
				plays = 1 << 20
			}
		}()
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p := &play{t: rt, dir: dir, fences: fences(t, "s"), keys: map[string]event.MessageID{}, completed: map[event.MessageID]event.MessageID{}}
		p.open()
		defer func() { _ = p.keeper.Close() }()
		first := []event.Event{event.SessionCreated{Nonce: "n", Mode: event.ModeNormal}}
		for range rapid.SampledFrom([]int{0, session.MaxMessages - 3}).Draw(rt, "posts before") {
			p.n++
			first = append(first, posted(p.n, event.MessageTodo))
		}
		p.commit(first)
		p.watchers = []*watcher{p.begins(), p.begins(), p.begins()}
		for range steps {
			p.step()
		}
		p.check()
		lost, completed, whole = lost+p.lost, completed+len(p.completed), true
	})
	if lost == 0 || completed == 0 {
		t.Fatalf("%d watchers lost history, %d todos were completed", lost, completed)
	}
}
