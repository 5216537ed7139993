package session

import "webcodex/eventlog/event"

// window is the evidence of a stretch of the tail.
type window struct {
	counts          Counts
	changed, recent []string
}

// since narrows the evidence to events from sequence seq on.
func (ev evidence) since(seq uint64) window {
	i := 0
	for i < len(ev.items) && ev.items[i].Seq < seq {
		i++
	}
	var w window
	for _, it := range ev.items[i:] {
		if e, ok := it.Event().(event.ToolCallFinished); ok {
			w.counts.add(e)
		}
	}
	w.changed, w.recent = pathsOf(ev.items[i:])
	return w
}
