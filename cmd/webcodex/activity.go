package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// activity knows whether anybody uses the server: requests in flight, attached windows.
type activity struct {
	mu   sync.Mutex
	n    int
	last time.Time
}

func newActivity() *activity { return &activity{last: time.Now()} }

// begin counts one use until the returned function is called.
func (a *activity) begin() (end func()) {
	a.mu.Lock()
	a.n++
	a.mu.Unlock()
	return func() {
		a.mu.Lock()
		a.n--
		a.last = time.Now()
		a.mu.Unlock()
	}
}

// wrap counts every request of a handler.
func (a *activity) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.begin()()
		h.ServeHTTP(w, r)
	})
}

// remaining is how long the server may still be idle before d is over; the whole of d while
// it is in use.
func (a *activity) remaining(d time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n > 0 {
		return d
	}
	return d - time.Since(a.last)
}

// idle returns when nobody has used the server for d and busy (Jobs that still run) says no,
// or when ctx ends. d ≤ 0 never is over.
func (a *activity) idle(ctx context.Context, d time.Duration, busy func() bool) {
	if d <= 0 {
		<-ctx.Done()
		return
	}
	for {
		left := a.remaining(d)
		if left <= 0 && !busy() {
			return
		}
		if left <= 0 {
			left = d
		}
		t := time.NewTimer(left)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}
