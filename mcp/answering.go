package mcp

import (
	"net/http"
	"sync"
	"time"
)

// answering counts the requests whose answer is still on its way to the client. A call is over
// for the kernel before its result is written; ending the server in between would take the
// answer of a call that succeeded from its caller.
type answering struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // made by wait; closed when the last answer is out
}

// enter counts a request, and gives the function that counts its end. A stream that only
// listens is not counted: it ends with its client or the server.
func (a *answering) enter(r *http.Request) func() {
	if r.Method != http.MethodPost || r.Header.Get("Mcp-Method") == "subscriptions/listen" {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	return a.leave
}

func (a *answering) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n--; a.n == 0 && a.empty != nil {
		close(a.empty)
		a.empty = nil
	}
}

// wait returns when no answer is on its way, or when limit has passed.
func (a *answering) wait(limit time.Duration) {
	a.mu.Lock()
	if a.n == 0 {
		a.mu.Unlock()
		return
	}
	if a.empty == nil {
		a.empty = make(chan struct{})
	}
	empty := a.empty
	a.mu.Unlock()
	select {
	case <-empty:
	case <-time.After(limit):
	}
}
