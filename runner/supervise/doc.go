// Package supervise keeps one detached Job alive without its Runner: a process of its own that
// holds the lock of the Job's directory while anything of the Job lives, keeps the end of what it
// prints there, and writes down how it ended before the lock goes (faults.md 3, Adoption).
//
// Whoever finds the directory knows: lock held, it lives; lock free and a record of the end, it
// ended so; lock free without one, nobody knows how.
package supervise

import (
	"encoding/json"
	"os"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// Version is of what lies in a Job's directory and of what is said on its socket. Fields are only
// ever added; a directory of a later version is left alone.
const Version = 1

// Names in a Job's directory.
const (
	lockName   = "lock"
	recordName = "job.json"
	exitName   = "exit.json"
	socketName = "sock"
)

// Record is what is written down of a Job besides its lock: who it is and where it belongs. Pids
// are for diagnosis and for ending what a killed supervisor left; they prove nothing.
type Record struct {
	Version    int               `json:"version"`
	ID         event.ExecutionID `json:"id"`
	Digest     string            `json:"digest"`
	Instance   event.InstanceID  `json:"instance"` // the Runner life that accepted it
	Project    event.ProjectID   `json:"project"`
	Key        string            `json:"key,omitempty"`
	Payload    string            `json:"payload,omitempty"`
	Nonce      string            `json:"nonce"` // of this very log, for observers
	Boot       string            `json:"boot"`
	AcceptedAt string            `json:"accepted_at"`
	StartedAt  string            `json:"started_at,omitempty"`
	LimitMS    int64             `json:"limit_ms"`
	Supervisor *proc.Identity    `json:"supervisor,omitempty"`
	Child      *proc.Identity    `json:"child,omitempty"`
}

// Exit is how a Job ended.
type Exit struct {
	Version int `json:"version"`
	// State is terminal, or start_failed where nothing was started, for Reason.
	State   wire.JournalState    `json:"state"`
	Reason  string               `json:"reason,omitempty"`
	Process *wire.ProcessOutcome `json:"process,omitempty"` // counts and numbers; the texts are in the logs
	EndedAt string               `json:"ended_at,omitempty"`
}

// Spec is what a supervisor is told. It comes over a pipe and is never stored: it holds the
// command.
type Spec struct {
	Record     Record   `json:"record"`
	Executable string   `json:"executable"`
	Args       []string `json:"args,omitempty"`
	Env        []string `json:"env"`
	Stdin      string   `json:"stdin,omitempty"`
	Cwd        string   `json:"cwd"` // its name, where a descriptor alone cannot be entered
}

// Bounds of a Job's directory: a stream keeps its last segments, of segmentBytes each, so at
// least LogBytes.
const (
	segmentBytes = 256 << 10
	keptSegments = 5
	LogBytes     = segmentBytes * (keptSegments - 1)
	maxFile      = 64 << 10 // a record or an end
	maxSpec      = 2 << 20
	// handshake is how long a Runner waits for a supervisor's word; the Job goes on without it.
	handshake = 10 * time.Second
	// sayAgain is the pause between two tellings that output has come.
	sayAgain = 20 * time.Millisecond
	// clockStep is how often the limit is looked at on the clock that counts sleep.
	clockStep = time.Second
	// writeTries and writePause are for the record of an end on a full disk.
	writeTries = 60
	writePause = time.Second
	maxPeers   = 16
	// cellWait is how long a supervisor stays for the control group of its Job to go.
	cellWait = 2 * time.Second
)

// replace writes a file whole, or leaves the old one; durable also against a power cut.
func replace(name string, v any, durable bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := name + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}
