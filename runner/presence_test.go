package runner

import (
	"errors"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// A server that another life of it has followed, or that was not heard for the time of a lease, is
// gone, once; one that was away for less is not.
// Covers: SHL-19
func TestAServerThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel()
	var now time.Duration
	r := &Runner{bootTime: func() time.Duration { return now }}
	told := make(chan bool, 8)
	r.OnGone(func(stopping bool) { told <- stopping })
	silent := errors.New("no answer")
	ok := func(server string) wire.HelloReply {
		return wire.HelloReply{OK: true, Server: event.InstanceID(server)}
	}
	for _, step := range []struct {
		after time.Duration
		reply wire.HelloReply
		err   error
		gone  bool
	}{
		{0, wire.HelloReply{}, silent, false},
		{wire.Lease * 2, wire.HelloReply{}, silent, false}, // there was none
		{0, ok("a"), nil, false},
		{wire.Lease, wire.HelloReply{}, silent, false},
		{0, ok("a"), nil, false},
		{wire.Lease, wire.HelloReply{Reason: "second_instance"}, nil, false},
		{time.Second, wire.HelloReply{}, silent, true},
		{wire.Lease, wire.HelloReply{}, silent, false}, // told already
		{0, ok("a"), nil, false},
		{time.Second, ok("b"), nil, true},
		{time.Second, ok("b"), nil, false},
	} {
		now += step.after
		r.heard(step.reply, step.err)
		select {
		case stopping := <-told:
			if !step.gone || stopping {
				t.Errorf("%+v: told, stopping %v", step, stopping)
			}
		case <-time.After(50 * time.Millisecond):
			if step.gone {
				t.Errorf("%+v: not told", step)
			}
		}
	}
	r.leave()
	if stopping := <-told; !stopping {
		t.Error("the end of the Runner was told as something else")
	}
}
