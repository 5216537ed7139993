package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	link "webcodex/runner/link/client"
	"webcodex/runner/wire"
)

// A Runner says each state once and in words, its server's build where it is another, and that it
// is ready only when the server knows that it listens.
func TestRunnerNews(t *testing.T) {
	t.Parallel()
	said, ready := &strings.Builder{}, 0
	n := &runnerNews{s: streams{err: said, out: io.Discard}, client: "a", build: "v1", first: func() error { ready++; return nil }}
	ok := wire.HelloReply{OK: true, Build: "v2", Protocol: wire.Protocol}
	protocol := wire.HelloReply{Reason: wire.RefusedProtocol, Text: "the Runner (v1) speaks protocol 1, the server (v2\x1b) protocol 2: update the older of the two"}
	for _, c := range []struct {
		reply wire.HelloReply
		err   error
		says  string
		ready int
	}{
		{wire.HelloReply{}, errors.New("no answer"), "", 0},
		{wire.HelloReply{}, fmt.Errorf("hello: %w", link.ErrUnsigned), "not signed with the key", 0},
		{wire.HelloReply{}, fmt.Errorf("hello: %w", link.ErrUnsigned), "", 0},
		{protocol, nil, "speaks protocol 1", 0},
		{protocol, nil, "", 0},
		{wire.HelloReply{Reason: "new_reason"}, nil, "new_reason", 0},
		{ok, nil, "", 0},
		{ok, nil, "the server is v2, this Runner v1", 1},
		{ok, nil, "", 1},
		{wire.HelloReply{Reason: wire.RefusedSecond, Text: "another Runner"}, nil, "another Runner", 1},
		{ok, nil, "accepted this Runner again", 1},
		{ok, nil, "", 1},
	} {
		said.Reset()
		n.hear(c.reply, c.err)
		if got := said.String(); (c.says == "") != (got == "") || !strings.Contains(got, c.says) || ready != c.ready || strings.Contains(got, "\x1b") {
			t.Errorf("%+v %v: said %q, ready %d", c.reply, c.err, got, ready)
		}
	}
}
