package wire

import "webcodex/eventlog/event"

// OpSSHShell runs command text on a named resource of the Runner; it ends in ProcessOutcome. Its
// name is the capability too (SSH-02).
const OpSSHShell Op = "ssh_shell"

// MaxRemoteCwdBytes bounds a directory on a resource (EXE-07).
const MaxRemoteCwdBytes = 4096

// SSHShellIn is its input. Of the resource only the name travels (SSH-10).
type SSHShellIn struct {
	Session  event.SessionID `json:"session"` // connections are not shared between Sessions
	Resource string          `json:"resource"`
	Command  string          `json:"command"`
	Shell    string          `json:"shell"`         // sh, bash
	Cwd      string          `json:"cwd,omitempty"` // there; empty: the resource's, or the login's
}
