package ssh

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// Command is one command line for a resource.
type Command struct {
	Command string // without NUL
	Shell   string // sh or bash
	Cwd     string // empty: the resource's directory, or the login's
	// Stdout and Stderr collect the end of the streams; Notify, if there, follows each part.
	Stdout, Stderr *proc.Tail
	Notify         func()
	// Started, if there, is called when the command begins; its directory was entered.
	Started func()
}

// RemoteUnknown is ProcessOutcome.RemoteProcess where nobody knows whether something of a
// command is alive there: closing a channel ends nothing, and a signal reaches one group at most
// (faults.md 4).
const RemoteUnknown = "unknown"

// Run sends the command, once, and waits for its end, ctx or limit. Without a fault the outcome
// is proven: it ended, or it was given up (timed_out, cancelled) and asked to end. A fault with
// execution_state not_started proves that the command did not begin: invalid_path (the
// directory could not be entered), command_spawn_failed (no such shell), ssh_connection_failed.
// ssh_transport_failed says outcome_unknown; what was printed until then is in the outcome.
// It closes the Channel.
func (c *Channel) Run(ctx context.Context, cmd Command, limit time.Duration) (wire.ProcessOutcome, *fault.Error) {
	defer c.Close()
	if ctx.Err() != nil {
		return wire.ProcessOutcome{}, notStarted(fault.New(fault.Cancelled, "the command was cancelled before it started"))
	}
	began := time.Now()
	r := c.begin(cmd)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var out wire.ProcessOutcome
	select {
	case <-r.over:
	case <-timer.C:
		out.TimedOut = true
	case <-ctx.Done():
		out.Cancelled = true
	}
	if out.TimedOut || out.Cancelled {
		r.end()
	} else {
		r.drain(drainTime)
	}
	r.close()
	f := r.judge(&out)
	out.DurationMS = time.Since(began).Milliseconds()
	out.Stdout, out.Stderr = stream(cmd.Stdout), stream(cmd.Stderr)
	return out, f
}

func stream(t *proc.Tail) wire.Stream {
	text, dropped := t.Text(proc.KeptChars)
	return wire.Stream{Text: text, Bytes: t.Total(), DroppedBytes: dropped, Truncated: dropped > 0}
}

// remoteRun is a command that was sent.
type remoteRun struct {
	c     *Channel
	gate  *gate
	heard atomic.Int64  // parts of the streams
	over  chan struct{} // closed when its end was heard, or that none will be
	read  chan struct{} // closed when both streams have ended
	whole bool          // both streams ended of themselves

	// Set before over is closed.
	refused bool
	status  *int
	signal  string
}

func (c *Channel) begin(cmd Command) *remoteRun {
	r := &remoteRun{c: c, over: make(chan struct{}), read: make(chan struct{})}
	notify := func() {
		r.heard.Add(1)
		if cmd.Notify != nil {
			cmd.Notify()
		}
	}
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // it never fails
	cwd := cmd.Cwd
	if cwd == "" {
		cwd = c.cwd
	}
	r.gate = &gate{token: []byte(hex.EncodeToString(raw)), to: cmd.Stdout, open: func() {
		if cmd.Started != nil {
			cmd.Started()
		}
	}}
	go r.drive(remoteCommand(string(r.gate.token), cwd, cmd.Shell, cmd.Command))
	go func() {
		defer close(r.read)
		other := make(chan struct{})
		go func() {
			defer close(other)
			copyTo(cmd.Stderr.Write, c.channel.Stderr(), notify)
		}()
		copyTo(r.gate.Write, c.channel, notify)
		<-other
	}()
	return r
}

func copyTo(write func([]byte), from io.Reader, notify func()) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			write(buf[:n])
			notify()
		}
		if err != nil {
			return
		}
	}
}

// drive sends the command and hears how it ends.
func (r *remoteRun) drive(line string) {
	defer close(r.over)
	defer func() { go ssh.DiscardRequests(r.c.requests) }()
	ok, err := r.c.channel.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{line}))
	r.refused = err == nil && !ok
	if err != nil || !ok {
		return
	}
	_ = r.c.channel.CloseWrite()
	for q := range r.c.requests {
		switch q.Type {
		case "exit-status":
			var end struct{ Status uint32 }
			if ssh.Unmarshal(q.Payload, &end) == nil {
				status := int(end.Status)
				r.status = &status
			}
		case "exit-signal":
			var end struct {
				Signal     string
				CoreDumped bool
				Message    string
				Language   string
			}
			if ssh.Unmarshal(q.Payload, &end) == nil {
				r.signal = signalName(end.Signal)
			}
		}
		if q.WantReply {
			_ = q.Reply(false, nil)
		}
		if r.status != nil || r.signal != "" {
			return // the channel may stay open as long as something holds the output
		}
	}
}

// drain waits until the output has ended, or was silent for a while, or limit is over.
func (r *remoteRun) drain(limit time.Duration) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		before := r.heard.Load()
		select {
		case <-r.read:
			r.whole = true
			return
		case <-over.C:
			return
		case <-time.After(drainQuiet):
			if r.heard.Load() == before {
				return
			}
		}
	}
}

// end asks the command to end, then tells it to. Hosts may ignore both.
func (r *remoteRun) end() {
	for _, s := range []struct {
		signal ssh.Signal
		grace  time.Duration
	}{{ssh.SIGTERM, termGrace}, {ssh.SIGKILL, killGrace}} {
		go func() {
			_, _ = r.c.channel.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{string(s.signal)}))
		}()
		select {
		case <-r.over:
			r.drain(drainQuiet)
			return
		case <-time.After(s.grace):
		}
	}
}

// close gives the channel up and waits until nothing writes into the streams any more. A host
// confirms that only when the command has ended; until then the connection holds a rest of it, so
// no further command is put there.
func (r *remoteRun) close() {
	go func() { _ = r.c.channel.Close() }()
	select {
	case <-r.read:
	case <-time.After(drainQuiet):
		r.c.give(true)
	}
	r.gate.close()
}

// judge says what the end proves.
func (r *remoteRun) judge(out *wire.ProcessOutcome) *fault.Error {
	words := r.gate.words()
	out.Started = true // it was sent; only what follows proves otherwise
	if out.TimedOut || out.Cancelled {
		out.RemoteProcess = RemoteUnknown
	}
	switch {
	case len(words) > 1 && words[0] == wordCwd:
		*out = wire.ProcessOutcome{}
		return cwdFault(words[1])
	case len(words) > 0 && words[0] == wordShell:
		*out = wire.ProcessOutcome{}
		return notStarted(fault.New(fault.CommandSpawnFailed, "the shell was not found on the resource").WithField("shell").WithReason("not_found"))
	case out.TimedOut || out.Cancelled:
		return nil
	case r.refused:
		*out = wire.ProcessOutcome{}
		return connectFault("exec_refused", false, nil)
	case r.status == nil && r.signal == "":
		out.RemoteProcess = RemoteUnknown
		return lost("")
	case len(words) == 0:
		// The login ended, or the host ran something else in place of the command.
		out.RemoteProcess = RemoteUnknown
		return lost("start_not_confirmed")
	}
	if !r.whole {
		out.RemoteProcess = RemoteUnknown // something holds the output
	}
	out.Completed, out.ExitCode, out.Signal = true, r.status, r.signal
	return nil
}

var cwdTexts = map[string]string{
	"not_found":     "the working directory does not exist on the resource",
	"not_directory": "the working directory is not a directory on the resource",
	"unreadable":    "the working directory cannot be entered on the resource",
}

// cwdFault is the word of the remote side about a directory (SSH-15).
func cwdFault(reason string) *fault.Error {
	text, ok := cwdTexts[reason]
	if !ok {
		reason, text = "unreadable", cwdTexts["unreadable"]
	}
	return notStarted(fault.New(fault.InvalidPath, "%s", text).WithField("cwd").WithReason(reason))
}

// signalName is a signal as processes of the Runner itself name it, "SIGTERM", within bounds.
func signalName(remote string) string {
	for i := range len(remote) {
		if c := remote[i]; i > 16 || (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return "unknown"
		}
	}
	if remote == "" {
		return "unknown"
	}
	return "SIG" + remote
}
