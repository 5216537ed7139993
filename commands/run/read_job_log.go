package run

import (
	"context"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Streams of read_job_log.
var Streams = []string{wire.Stdout, wire.Stderr}

// JobLogIn is the input of read_job_log.
type JobLogIn struct {
	JobID     string `json:"job_id"`
	Stream    string `json:"stream,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	MaxBytes  int    `json:"max_bytes,omitempty"`
	TailLines *int   `json:"tail_lines,omitempty"`
}

// JobLogOut is its output. A stream is absent where it was not asked for, or nothing is kept.
type JobLogOut struct {
	JobID    string   `json:"job_id"`
	Status   string   `json:"status"`
	Terminal bool     `json:"terminal"`
	Log      string   `json:"log"` // kept, gone
	Stdout   *LogPage `json:"stdout,omitempty"`
	Stderr   *LogPage `json:"stderr,omitempty"`
}

// LogPage is a part of a stream. Offsets and counts are in bytes and exact.
type LogPage struct {
	Text       string `json:"text"`
	Offset     int64  `json:"offset"`
	NextOffset int64  `json:"next_offset"`
	Bytes      int64  `json:"bytes"`         // written until now
	Dropped    int64  `json:"dropped_bytes"` // of its beginning, no longer kept
	More       bool   `json:"more"`          // there is more behind this page now
}

// ReadJobLog reads the output that a Runner keeps of a Job: its end, or a page from an offset on.
var ReadJobLog = call.Spec{
	Name: "read_job_log", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Class: call.Observe,
	In: JobLogIn{}, Run: readJobLog,
}

func readJobLog(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[JobLogIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if in.Offset != nil && in.Stream == "" {
		return call.Result{}, fault.New(fault.InvalidArguments, "an offset is of one stream").WithField("stream").
			WithNext("name stdout or stderr")
	}
	job, err := c.Job(in.JobID)
	if err != nil {
		return call.Result{}, err
	}
	ask := wire.JobLogIn{ID: in.JobID, Stream: in.Stream, Offset: in.Offset, MaxBytes: in.MaxBytes, Lines: DefaultLogLines}
	if ask.MaxBytes == 0 {
		ask.MaxBytes = DefaultLogBytes
	}
	if in.TailLines != nil {
		ask.Lines = min(max(*in.TailLines, 0), MaxLogLines)
	}
	got, err := call.AskTarget[wire.JobLogOut](ctx, c, job.Target, wire.OpJobLog, ask, call.ReadTimeout)
	if err != nil && fault.KindOf(err) != fault.RunnerUnavailable {
		return call.Result{}, err
	}
	out := JobLogOut{JobID: in.JobID, Log: logGone}
	if err != nil || !got.Job.Known {
		s, ok := recorded(c, job)
		switch {
		case ok:
			out.Status, out.Terminal = s.Status, true
			return call.Result{Output: out}, nil
		case err != nil:
			return call.Result{}, err
		}
		return call.Result{}, notKept()
	}
	out.Status, out.Terminal = standingOf(got.Job).Status, got.Job.Terminal
	if !got.Job.Gone {
		out.Log = logKept
	}
	out.Stdout, out.Stderr = pageOf(got.Stdout), pageOf(got.Stderr)
	return call.Result{Output: out}, nil
}

func pageOf(p *wire.LogPage) *LogPage {
	if p == nil {
		return nil
	}
	return &LogPage{Text: p.Text, Offset: p.Offset, NextOffset: p.NextOffset, Bytes: p.Bytes, Dropped: p.Dropped, More: p.NextOffset < p.Bytes}
}
