package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

var processOps = []wire.Op{wire.OpProcess, wire.OpScript, wire.OpShell}

func isProcess(op wire.Op) bool { return slices.Contains(processOps, op) }

// readProcess decodes the input of a process op and checks its form and bounds.
func readProcess(o wire.Offer) (wire.ProcessIn, *fault.Error) {
	var in wire.ProcessIn
	if err := json.Unmarshal(o.Body, &in); err != nil {
		return in, fault.Wrap(err, fault.RunnerRefused, "the Runner could not read the request").WithReason("malformed")
	}
	total := 0
	for _, a := range in.Args {
		total += len(a)
		if len(a) > wire.MaxArgBytes {
			return in, tooLarge("args", "an argument has more than %d bytes", wire.MaxArgBytes)
		}
	}
	switch {
	case len(in.Executable) > wire.MaxExecutableBytes:
		return in, tooLarge("executable", "the executable's name has more than %d bytes", wire.MaxExecutableBytes)
	case len(in.Args) > wire.MaxArgs || total > wire.MaxArgvBytes:
		return in, tooLarge("args", "the arguments are more than %d, or have more than %d bytes together", wire.MaxArgs, wire.MaxArgvBytes)
	case len(in.Command) > wire.MaxCommandWire:
		return in, tooLarge("command", "the command has more than %d bytes on the wire", wire.MaxCommandWire)
	case len(in.Script) > wire.MaxScriptBytes:
		return in, tooLarge("script", "the script has more than %d bytes", wire.MaxScriptBytes)
	case len(in.Stdin) > wire.MaxStdinBytes:
		return in, tooLarge("stdin", "the standard input has more than %d bytes", wire.MaxStdinBytes)
	case len(in.Cwd) > wire.MaxCwdBytes:
		return in, tooLarge("cwd", "the directory has more than %d bytes", wire.MaxCwdBytes)
	case in.Interactive && in.Stdin != "":
		return in, refusal("malformed", "an interactive execution has no standard input besides its terminal").WithField("stdin")
	case strings.ContainsRune(in.Executable+in.Cwd+in.Command+strings.Join(in.Args, ""), 0):
		return in, refusal("nul", "an argument has no NUL byte")
	}
	return in, checkForm(o.Op, in)
}

func tooLarge(field, format string, bounds ...any) *fault.Error {
	return refusal("too_large", fmt.Sprintf(format, bounds...)).WithField(field).
		WithNext("use run_script for larger programs, and stdin or files for large data")
}

func checkForm(op wire.Op, in wire.ProcessIn) *fault.Error {
	switch op {
	case wire.OpProcess, wire.OpDetached:
		if in.Executable == "" {
			return refusal("malformed", "no executable is named").WithField("executable")
		}
	case wire.OpShell:
		if in.Command == "" || !slices.Contains(wire.Shells, in.Shell) {
			return refusal("malformed", "a shell command needs a command and one of "+strings.Join(wire.Shells, ", ")).WithField("shell")
		}
	case wire.OpScript:
		if in.Script == "" || interpreters[in.Language] == nil {
			return refusal("malformed", "a script needs its text and one of "+strings.Join(wire.Languages, ", ")).WithField("language")
		}
	}
	return nil
}

// prepared is a process that is ready to be launched, or the reason why it cannot be.
type prepared struct {
	p      *proc.Process
	parser Parser
	report *reportFile // that the parser reads; nil: the output
	// interactive: p has a terminal.
	interactive bool
	before      *event.Binding // the files at the start, where the run is bound to them
	fault       *fault.Error
	undo        []func()
}

// clean takes back what was prepared and what the process no longer needs.
func (q *prepared) clean() {
	for _, undo := range q.undo {
		undo()
	}
}

func (r *Runner) prepare(e *execution) *prepared {
	q := &prepared{}
	in, f := readProcess(e.offer)
	if f != nil {
		q.fault = f
		return q
	}
	dir, f := openCwd(e.project, in.Cwd)
	if f != nil {
		q.fault = f
		return q
	}
	q.undo = append(q.undo, func() { _ = dir.Close() })
	c := proc.Command{Mark: string(e.offer.ID), Dir: dir, Stdin: []byte(in.Stdin), Stdout: e.stdout, Stderr: e.stderr, Notify: e.note}
	environment := proc.Environment
	if in.Interactive {
		c.Interactive, c.OnWaiting, environment = true, e.asks, proc.InteractiveEnvironment
	}
	c.Env = environment(os.Environ(), append([]string{"PWD=" + filepath.Join(e.project.Path, filepath.FromSlash(in.Cwd))}, in.Env...))
	report, f := r.newReport(e.project, &in)
	q.undo = append(q.undo, report.clean)
	if q.report = report; f != nil {
		q.fault = f
		return q
	}
	clean, f := r.form(&c, e.offer.Op, in)
	q.undo = append(q.undo, clean)
	if f != nil {
		q.fault = f
		return q
	}
	if in.Bind && r.o.Tree != nil {
		before := r.o.Tree(e.ctx, e.project.Root)
		q.before = &before
		e.stdout.Sum()
		e.stderr.Sum()
	}
	if in.Parser != "" && r.o.Parsers != nil {
		if found, ok := r.o.Parsers(in.Parser); ok {
			q.parser = found
			report.listen(&c, found)
		}
	}
	p, err := proc.Prepare(c)
	if err != nil {
		q.fault = spawnFault(e.offer.Op, err)
		return q
	}
	q.p, q.interactive, q.undo = p, in.Interactive, append(q.undo, p.Abandon)
	return q
}

// runProcess starts the process of an execution and waits for its end.
func (r *Runner) runProcess(e *execution, q *prepared, limit time.Duration, res wire.Result) wire.Result {
	if q.fault != nil {
		return r.notStarted(res, q.fault)
	}
	if err := r.journal.step(record{ID: e.offer.ID, State: wire.JStarting}, true); err != nil {
		return r.notStarted(res, fault.Wrap(err, fault.StorageFull, "the Runner's journal cannot be written; nothing was started"))
	}
	e.set(wire.JStarting)
	if err := q.p.Launch(limit); err != nil {
		return r.notStarted(res, spawnFault(e.offer.Op, err))
	}
	leader := q.p.Identity()
	defer r.guard.Watch(proc.Leftover{Mark: string(e.offer.ID), Leader: leader})()
	if err := r.journal.step(record{ID: e.offer.ID, State: wire.JRunning, Leader: &leader}, false); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	if q.interactive {
		e.attach(q.p)
		defer e.attach(nil)
	}
	e.set(wire.JRunning)
	r.mu.Lock()
	to := r.link
	r.mu.Unlock()
	to.Started(wire.Started{ID: e.offer.ID})
	exit := q.p.Wait(e.ctx)
	reported := q.report.read(q.parser)
	res.State = wire.JTerminal
	res.Process, res.EndedAt = outcome(exit, e, q.parser), event.FormatTime(r.o.Now())
	if t := res.Process.Tests; t != nil && !reported {
		t.Diagnostics = append(t.Diagnostics, noReport)
	}
	res.Process.Bound = r.bound(e, q.before)
	return r.terminal(res)
}

func outcome(x proc.Exit, e *execution, parser Parser) *wire.ProcessOutcome {
	out := &wire.ProcessOutcome{Started: true, Completed: x.Reaped && !x.TimedOut && !x.Cancelled, ExitCode: x.Code, Signal: x.Signal,
		TimedOut: x.TimedOut, Cancelled: x.Cancelled, DurationMS: x.Duration.Milliseconds(), Stdout: stream(e.stdout), Stderr: stream(e.stderr),
		LeftoverKilled: x.LeftoverKilled, LeftoverAlive: x.LeftoverAlive}
	if x.TimedOut || x.Cancelled {
		out.ExitCode = nil // it is how it took being ended, not how it ended
	}
	if parser != nil {
		report := parser.Report()
		out.Tests = &report
	}
	return out
}

// bound ties what a run printed to the files that it was made on: the ones of its start, as
// long as they are the same at its end.
func (r *Runner) bound(e *execution, before *event.Binding) *event.Binding {
	if before == nil {
		return nil
	}
	b := *before
	h := sha256.New()
	for _, t := range []*proc.Tail{e.stdout, e.stderr} {
		h.Write(t.Sum())
	}
	b.Output = hex.EncodeToString(h.Sum(nil))
	if b.Tree == "" {
		return &b
	}
	// The run may have been cancelled; the files are looked at all the same.
	after := r.o.Tree(context.WithoutCancel(e.ctx), e.project.Root)
	switch {
	case after.Tree == "":
		b.Tree, b.Reason = "", after.Reason
	case after.Tree != b.Tree:
		b.Moved = true
	}
	return &b
}

func stream(t *proc.Tail) wire.Stream {
	text, dropped := t.Text(proc.KeptChars)
	return wire.Stream{Text: text, Bytes: t.Total(), DroppedBytes: dropped, Truncated: dropped > 0}
}

// note wakes observers.
func (e *execution) note() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noteLocked()
}

// openCwd opens the working directory below the root; what is opened is what the child gets.
func openCwd(p *Project, cwd string) (*os.File, *fault.Error) {
	bad := func(err error, reason, text string) *fault.Error {
		return fault.Wrap(err, fault.InvalidPath, "%s", text).WithField("cwd").WithReason(reason)
	}
	if err := (wire.ProcessIn{Cwd: cwd}).CheckCwd(); err != nil {
		return nil, fault.As(err)
	}
	dir, err := p.Root.OpenFile(path.Clean(cwd), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	switch {
	case err == nil:
		return dir, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, bad(err, "not_found", "the working directory does not exist")
	case errors.Is(err, syscall.ENOTDIR):
		return nil, bad(err, "not_directory", "the working directory is not a directory")
	case strings.Contains(err.Error(), "escapes"):
		return nil, bad(err, "symlink_outside", "the working directory leads out of the Project")
	}
	return nil, bad(err, "unreadable", "the working directory cannot be opened")
}

var spawnTexts = map[string]string{
	proc.NotFound:       "the executable was not found on the Runner",
	proc.NotExecutable:  "the file may not be executed",
	proc.IsDirectory:    "the executable is a directory",
	proc.NoFormat:       "the system cannot run this file; it may lack an interpreter line",
	proc.LaunchEnvelope: "the arguments and environment are larger than the system takes at a start",
	proc.BadArgument:    "the system refused the arguments",
	proc.NoResources:    "the system could not start another process now",
}

// executableArg is the argument that chose the program of an op.
var executableArg = map[wire.Op]string{wire.OpProcess: "executable", wire.OpDetached: "executable", wire.OpScript: "language", wire.OpShell: "shell"}

// spawnFault tells why nothing was started (EXE-21).
func spawnFault(op wire.Op, err error) *fault.Error {
	reason := proc.NoResources
	var se *proc.SpawnError
	if errors.As(err, &se) {
		reason = se.Reason
	}
	f := fault.Wrap(err, fault.CommandSpawnFailed, "%s", spawnTexts[reason]).WithField(executableArg[op]).WithReason(reason)
	if reason == proc.LaunchEnvelope {
		f = f.WithNext("use run_script, or give large data on stdin")
	}
	return f
}
