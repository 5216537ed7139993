package session

import "webcodex/eventlog/event"

// since narrows the evidence to what was done from sequence seq on.
func (ev evidence) since(seq uint64) work {
	var w work
	for i := len(ev.items) - 1; i >= 0 && ev.items[i].Seq >= seq; i-- {
		if ev.items[i].Kind != KindToolCallFinished {
			continue
		}
		if e, ok := ev.items[i].Event().(event.ToolCallFinished); ok {
			w.add(&e)
		}
	}
	return w
}
