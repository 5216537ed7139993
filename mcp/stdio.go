package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// StdioConfig of ServeStdio. Dial and Token are required.
type StdioConfig struct {
	// Dial connects to the running server's socket.
	Dial  func(ctx context.Context) (net.Conn, error)
	Token string
	// Full serves every tool in tools/list.
	Full bool
	// Drain is how long calls in flight may finish after the host has closed stdin; 0: the
	// default, which is longer than the synchronous grace of a command.
	Drain  time.Duration
	Logger *slog.Logger
}

const (
	// stdioDrain covers the grace after which a command becomes a Job.
	stdioDrain = 15 * time.Second
	// maxStdioBurst is how many messages of one host are on their way at once. It is above what
	// the server takes from one caller, which answers the rest with too_many_calls; at this
	// bound reading stops, and cancellations are not read either.
	maxStdioBurst = 256
)

// ServeStdio speaks MCP over in and out for a host that starts a command, and carries every
// message to the running server: the same endpoint, the same eras, the same answers. Only
// MCP messages are written to out. It returns when in ends or ctx is done.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, cfg StdioConfig) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Drain == 0 {
		cfg.Drain = stdioDrain
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{cfg: cfg, life: ctx, out: &lineWriter{w: out}, calls: map[string]*pending{},
		http: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return cfg.Dial(ctx) },
			// A fresh connection a message: on an idle one of a restarted server nobody could
			// tell whether the message was read.
			DisableKeepAlives: true, DisableCompression: true}}}
	lines := make(chan line)
	go readLines(ctx, in, lines)
	slots := make(chan struct{}, maxStdioBurst)
	for {
		select {
		case <-ctx.Done():
			return b.drain(cancel, 0, ctx.Err())
		case l, ok := <-lines:
			switch {
			case !ok:
				return b.drain(cancel, cfg.Drain, nil)
			case l.err != nil:
				return b.drain(cancel, cfg.Drain, l.err)
			case l.tooLong:
				b.out.message(rpcErrorBody(l.id, codeInvalidRequest, "the message is larger than 4 MiB", nil))
				continue
			}
			b.dispatch(ctx, l.data, slots)
		}
	}
}

// dispatch handles one line. Order is kept where it matters: initialize and notifications
// are done before the next line is read; calls run beside each other.
func (b *bridge) dispatch(ctx context.Context, data []byte, slots chan struct{}) {
	f := frame{body: data}
	if code, sentence := f.parse(); code != 0 {
		b.out.message(rpcErrorBody(f.id, code, sentence, nil))
		return
	}
	if f.method == "notifications/cancelled" && b.cancelModern(f) {
		return
	}
	if !f.call() || f.method == "initialize" {
		b.forward(ctx, f)
		return
	}
	// Registered before the next line is read, so that a cancellation finds it.
	ctx, done := b.track(ctx, f)
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		done()
		return
	}
	b.inflight.Add(1)
	go func() {
		defer func() { done(); <-slots; b.inflight.Done() }()
		b.forward(ctx, f)
	}()
}

// drain waits for calls in flight, then cuts them.
func (b *bridge) drain(cancel context.CancelFunc, wait time.Duration, err error) error {
	ended := make(chan struct{})
	go func() { b.inflight.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(wait):
	}
	cancel()
	b.http.CloseIdleConnections()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

type line struct {
	data    []byte
	tooLong bool
	id      json.RawMessage // of a call that is too long
	err     error
}

// readLines gives one message a line, bounded: a longer one is skipped to its end.
func readLines(ctx context.Context, in io.Reader, out chan<- line) {
	defer close(out)
	r := bufio.NewReaderSize(in, 64<<10)
	send := func(l line) bool {
		select {
		case out <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		var l line
		var long longCall
		for {
			part, err := r.ReadSlice('\n')
			switch {
			case l.tooLong:
				long.feed(part)
			case len(l.data)+len(part) > MaxBody:
				l.tooLong = true
				long.feed(l.data)
				long.feed(part)
				l.data = nil
			default:
				l.data = append(l.data, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && !errors.Is(err, io.EOF) {
				l.err = err
			}
			if data := bytes.TrimSpace(l.data); len(data) > 0 || l.tooLong || l.err != nil {
				l.data, l.id = data, long.answerTo()
				if !send(l) {
					return
				}
			}
			if err != nil {
				return
			}
			break
		}
	}
}

// lineWriter writes whole messages, one a line.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *lineWriter) message(v any) {
	if b, err := json.Marshal(v); err == nil {
		o.raw(b)
	}
}

// raw writes one message; line breaks inside it are folded away.
func (o *lineWriter) raw(msg []byte) {
	var b bytes.Buffer
	if err := json.Compact(&b, msg); err != nil {
		return
	}
	b.WriteByte('\n')
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.w.Write(b.Bytes())
}
