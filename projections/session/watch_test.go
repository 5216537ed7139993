package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog/event"
)

// posts is a Store with one Session, and a function that posts to it.
func posts(t *testing.T) (*Store, event.SessionID, func()) {
	t.Helper()
	s, id := NewStore(), event.NewSessionID()
	agg, n := event.SessionAggregate(id), uint64(0)
	apply := func(e event.Event) {
		n++
		s.Apply(n, "h", event.Commit{Aggregate: agg, Version: n, At: time.Unix(int64(n), 0), Events: []event.Event{e}})
	}
	apply(event.SessionCreated{Mode: event.ModeNormal})
	return s, id, func() {
		apply(event.MessagePosted{Message: event.NewMessageID(), Kind: event.MessageNote, Text: "x", Priority: event.PriorityNormal})
	}
}

func revision(t *testing.T, s *Store, id event.SessionID) uint64 {
	t.Helper()
	v, err := s.Load(id)
	if err != nil {
		t.Error(err)
	}
	return v.Board.Revision
}

// Every one of many that wait sees the last change, whenever it came, while others post, wait
// and give up.
//
// Covers: MSG-23, MSG-24
func TestAwaitMissesNothing(t *testing.T) {
	s, id, post := posts(t)
	const changes, waiters = 50, 20
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			for seen := uint64(0); seen < changes; {
				if err := s.Await(t.Context(), id, func() bool {
					now := revision(t, s, id)
					enough := now > seen
					seen = now
					return enough
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := s.Await(ctx, id, func() bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("gave up with %v", err)
			}
		})
	}
	for range changes {
		post()
	}
	wg.Wait()
	idle(t, s)
}

// Commits of other Sessions, and such that change no board, wake nobody.
//
// Covers: MSG-23
func TestAwaitIsWokenByTheBoardAlone(t *testing.T) {
	s, id, _ := posts(t)
	var looks atomic.Int64
	looked := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- s.Await(t.Context(), id, func() bool {
			select {
			case looked <- struct{}{}:
			default:
			}
			return looks.Add(1) == 2
		})
	}()
	<-looked
	other := event.NewSessionID()
	s.Apply(100, "h", event.Commit{Aggregate: event.SessionAggregate(other), Version: 1, Events: []event.Event{
		event.SessionCreated{Mode: event.ModeNormal}, event.MessagePosted{Message: event.NewMessageID()}}})
	s.Apply(101, "h", event.Commit{Aggregate: event.SessionAggregate(id), Version: 2, Events: []event.Event{
		event.ToolCallStarted{Call: event.NewCallID()}}})
	s.watchers.mu.Lock()
	if s.watchers.waking || looks.Load() != 1 {
		t.Errorf("woken %d times by what changes no board", looks.Load()-1)
	}
	s.watchers.mu.Unlock()
	s.Apply(102, "h", event.Commit{Aggregate: event.SessionAggregate(other), Version: 2, Events: []event.Event{event.SessionRemoved{Session: id}}})
	if err := <-done; err != nil { // its removal is told
		t.Error(err)
	}
	idle(t, s)
}

// One that is busy with its look holds up neither the writer nor, for long, the others.
func TestAwaitIsNotHeldUpByOneWhoLooks(t *testing.T) {
	s, id, post := posts(t)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	var wg sync.WaitGroup
	slow := 0
	wg.Go(func() {
		_ = s.Await(t.Context(), id, func() bool {
			if slow++; slow == 1 {
				entered <- struct{}{}
				return false
			}
			<-release
			return true
		})
	})
	<-entered
	ready := make(chan struct{}, 8)
	var others sync.WaitGroup
	for range 8 {
		others.Go(func() {
			first := true
			_ = s.Await(t.Context(), id, func() bool {
				if first {
					first = false
					ready <- struct{}{}
					return false
				}
				return true
			})
		})
	}
	for range 8 {
		<-ready
	}
	post()
	others.Wait()
	close(release)
	wg.Wait()
	idle(t, s)
}

// idle holds that nothing is kept of those who have gone.
func idle(t *testing.T, s *Store) {
	t.Helper()
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	if len(s.watchers.by) != 0 || s.watchers.n.Load() != 0 {
		t.Errorf("%d Sessions, %d watchers are kept", len(s.watchers.by), s.watchers.n.Load())
	}
}
