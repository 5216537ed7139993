package ssh

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/ssh/sshtest"
	"webcodex/runner/wire"
)

func must(t testing.TB, err error) {
	t.Helper()
	sshtest.Must(t, err)
}

func writeKey(t testing.TB, path, kind, passphrase string) ssh.PublicKey {
	t.Helper()
	return sshtest.WriteKey(t, path, kind, passphrase)
}

// world is a Runner's side: settings, a key that the host takes, and its known hosts.
type world struct {
	*sshtest.Host
	t    *testing.T
	dir  string
	file string
	user string
	r    *Resources
}

// newWorld has a host and one resource, "build", that leads to it.
func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	me, err := user.Current()
	must(t, err)
	w.user, w.file = me.Username, filepath.Join(w.dir, "ssh.toml")
	writeKey(t, filepath.Join(w.dir, "id"), "ed25519", "")
	w.Host = sshtest.Start(t, filepath.Join(w.dir, "id.pub"))
	w.trust(w.Known(w.Keys["ed25519"]))
	w.write(w.resource("build", ""))
	o.File = w.file
	w.r = New(o)
	t.Cleanup(w.r.Close)
	return w
}

func (w *world) trust(lines ...string) {
	must(w.t, os.WriteFile(filepath.Join(w.dir, "known_hosts"), []byte(strings.Join(lines, "")), 0o600))
}

// resource is a table of the settings; extra lines come last.
func (w *world) resource(name, extra string) string {
	return w.resourceAt(name, w.Port, extra)
}

func (w *world) resourceAt(name, port, extra string) string {
	return fmt.Sprintf("[ssh.resources.%q]\nhost = \"127.0.0.1\"\nport = %s\nuser = %q\nidentity_files = [%q]\nknown_hosts = [%q]\n%s\n",
		name, port, w.user, filepath.Join(w.dir, "id"), filepath.Join(w.dir, "known_hosts"), extra)
}

// write replaces the settings as an editor does: a new file under the old name.
func (w *world) write(parts ...string) {
	must(w.t, os.WriteFile(w.file+".new", []byte(strings.Join(parts, "\n")), 0o600))
	must(w.t, os.Rename(w.file+".new", w.file))
}

const (
	sessionA = event.SessionID("wc_sess_00000000000000000000000000000001")
	sessionB = event.SessionID("wc_sess_00000000000000000000000000000002")
)

// run runs one command on build under sessionA.
func (w *world) run(text string) (wire.ProcessOutcome, *fault.Error) {
	return w.runIn("build", sessionA, "", text, 20*time.Second)
}

func (w *world) runIn(name string, s event.SessionID, cwd, text string, limit time.Duration) (wire.ProcessOutcome, *fault.Error) {
	c, f := w.r.Open(context.Background(), s, name)
	if f != nil {
		return wire.ProcessOutcome{}, f
	}
	return c.Run(context.Background(), command(cwd, text), limit)
}

func command(cwd, text string) Command {
	return Command{Command: text, Shell: "sh", Cwd: cwd, Stdout: proc.NewTail(proc.KeptBytes), Stderr: proc.NewTail(proc.KeptBytes)}
}

// prints runs a command that must end well and gives what it printed.
func (w *world) prints(text string) string {
	w.t.Helper()
	out, f := w.run(text)
	if f != nil {
		w.t.Fatalf("%q: %v (%v)\nhost: %s", text, f, f.Unwrap(), w.Log)
	}
	if !out.Completed || out.ExitCode == nil || *out.ExitCode != 0 {
		w.t.Fatalf("%q: %+v", text, out)
	}
	return out.Stdout.Text
}

func (w *world) marker() string { return filepath.Join(w.dir, "marker") }

// marks are the lines of the marker file: one for each time that a command ran.
func (w *world) marks() int {
	raw, _ := os.ReadFile(w.marker())
	return bytes.Count(raw, []byte("\n"))
}
