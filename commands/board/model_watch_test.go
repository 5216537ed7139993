package board

import (
	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// watcher knows messages up to a cursor.
type watcher struct {
	cursor uint64
	knows  map[event.MessageID]session.MessageView
}

func (p *play) begins() *watcher {
	core, b := p.view()
	w := &watcher{cursor: b.Revision, knows: map[event.MessageID]session.MessageView{}}
	for _, m := range b.Messages() {
		w.knows[m.ID] = m.Show(core.ID)
	}
	return w
}

// look is one page; more: there is another.
func (p *play) look(i, limit int) bool {
	core, b := p.view()
	w := p.watchers[i]
	l, err := DecideObserve(b, w.cursor, limit, func(page []*session.Message) int { return 1 + (len(page)-1)/2 })
	if err != nil {
		p.t.Fatal(err)
	}
	if l.Lost {
		p.lost++
		p.watchers[i] = p.begins()
		return false
	}
	for _, m := range l.Messages {
		w.knows[m.ID] = m.Show(core.ID)
	}
	w.cursor = l.Next
	return l.More
}

// check: who has caught up without losing history knows exactly the board.
func (p *play) check() {
	for i := range p.watchers {
		for p.look(i, 30) {
		}
		core, b := p.view()
		for _, m := range b.Messages() {
			if diff := cmp.Diff(m.Show(core.ID), p.watchers[i].knows[m.ID]); diff != "" {
				p.t.Fatal(diff)
			}
		}
	}
}
