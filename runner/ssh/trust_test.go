package ssh

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"webcodex/internal/fault"
	"webcodex/runner/ssh/sshtest"
)

// refused opens build and gives the fault, after it has checked that nothing was started and
// that it tells nothing of the settings.
func (w *world) refused(name string) *fault.Error {
	w.t.Helper()
	before := w.Commands()
	c, f := w.r.Open(context.Background(), sessionA, name)
	if f == nil {
		c.Close()
		w.t.Fatalf("%s was opened", name)
	}
	if f.ExecutionState != "not_started" || f.CommandStarted || f.StateChanged || w.Commands() != before {
		w.t.Errorf("%+v", f)
	}
	if f.Message == "" || f.Next == "" && f.Kind == fault.SSHConnectionFailed {
		w.t.Errorf("no sentence: %+v", f)
	}
	shown, err := json.Marshal(f)
	must(w.t, err)
	for _, secret := range []string{"127.0.0.1", w.Port, w.user, w.dir, "known_hosts\"", "ssh-ed25519", "SHA256:"} {
		if strings.Contains(string(shown), secret) {
			w.t.Errorf("the refusal tells %q: %s", secret, shown)
		}
	}
	return f
}

// A host is trusted for a key that the operator knows of it, and for nothing else; the host that
// is not known is not even called.
// Covers: SSH-12
func TestHostIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	stranger := writeKey(t, filepath.Join(w.dir, "stranger"), "ed25519", "")
	strangerEC := writeKey(t, filepath.Join(w.dir, "stranger-ec"), "ecdsa", "")
	ed, ec := w.Keys["ed25519"], w.Keys["ecdsa"]
	rsa := "[127.0.0.1]:" + w.Port + " ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7vbqajDRw6uGBoVzTdJ2ZqHEVJ8ZC9hJe1cBmCPmG2Vx2sP4ZkJvL1Uo0fyXj5B1tW0+WfQ==\n"
	for _, c := range []struct {
		name, reason string
		lines        []string
		calls        bool
	}{
		{"nothing is known", "host_unknown", nil, false},
		{"another host is known", "host_unknown", []string{"example.org " + string(ssh.MarshalAuthorizedKey(ed))}, false},
		{"another port is known", "host_unknown", []string{"127.0.0.1 " + string(ssh.MarshalAuthorizedKey(ed))}, false},
		{"only an authority is known", "host_unknown", []string{"@cert-authority " + w.Known(ed)}, false},
		{"the key changed", "host_key_changed", []string{w.Known(stranger)}, true},
		{"the key of the other type changed", "host_key_changed", []string{w.Known(strangerEC)}, true},
		{"the key was revoked", "host_key_revoked", []string{w.Known(ed), "@revoked * " + string(ssh.MarshalAuthorizedKey(ed))}, true},
		{"a line is no key", "known_hosts_unreadable", []string{rsa}, false},
	} {
		w.trust(c.lines...)
		before := w.Connections()
		f := w.refused("build")
		if f.Kind != fault.SSHConnectionFailed || f.Reason != c.reason || f.Recovery != fault.None {
			t.Errorf("%s: %+v", c.name, f)
		}
		if called := w.Connections() > before; called != c.calls {
			t.Errorf("%s: called %v", c.name, called)
		}
	}
	for name, lines := range map[string][]string{
		"the second type": {w.Known(ec)}, "both": {w.Known(ed), w.Known(ec)}, "a stale key of the same type beside it": {w.Known(stranger), w.Known(ed)},
	} {
		w.trust(lines...)
		if got := w.prints("echo in"); got != "in\n" {
			t.Errorf("%s: %q", name, got)
		}
		w.Cut()
	}
}

// A host of which only another type of key is known is refused as such: neither unknown nor
// changed.
// Covers: SSH-12
func TestOtherTypeOfKeyIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	other := sshtest.Start(t, filepath.Join(w.dir, "id.pub"), "ecdsa")
	w.trust(other.Known(w.Keys["ed25519"]))
	w.write(w.resourceAt("build", other.Port, ""))
	if f := w.refused("build"); f.Kind != fault.SSHConnectionFailed || f.Reason != "host_key_type_unknown" {
		t.Errorf("%+v", f)
	}
}

// Every reason why there is no key, or none that the host takes, has its word.
// Covers: SSH-10
func TestKeysOfTheRunner(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "agent")
	w := newWorld(t, Options{AgentSocket: socket})
	id := filepath.Join(w.dir, "id")
	writeKey(t, filepath.Join(w.dir, "locked"), "ed25519", "open sesame")
	writeKey(t, filepath.Join(w.dir, "other"), "ed25519", "")
	writeKey(t, filepath.Join(w.dir, "shown"), "ed25519", "")
	must(t, os.Chmod(filepath.Join(w.dir, "shown"), 0o644))
	must(t, os.WriteFile(filepath.Join(w.dir, "torn"), []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nopen sesame\n"), 0o600))
	with := func(file string) {
		w.write(strings.ReplaceAll(w.resource("build", ""), id, filepath.Join(w.dir, file)))
	}
	for file, reason := range map[string]string{
		"locked": "key_encrypted", "other": "auth_refused", "shown": "key_permissions", "torn": "key_unreadable", "none": "key_unreadable",
	} {
		with(file)
		if f := w.refused("build"); f.Kind != fault.SSHConnectionFailed || f.Reason != reason {
			t.Errorf("%s: %+v", file, f)
		}
	}
	agentOnly := strings.ReplaceAll(w.resource("build", "agent = true"), `identity_files = ["`+id+`"]`, "")
	w.write(agentOnly)
	if f := w.refused("build"); f.Reason != "agent_unavailable" {
		t.Errorf("no agent: %+v", f)
	}
	ring := agent.NewKeyring()
	serveAgent(t, socket, ring)
	if f := w.refused("build"); f.Reason != "no_key" {
		t.Errorf("an empty agent: %+v", f)
	}
	raw, err := os.ReadFile(id)
	must(t, err)
	private, err := ssh.ParseRawPrivateKey(raw)
	must(t, err)
	must(t, ring.Add(agent.AddedKey{PrivateKey: private}))
	if got := w.prints(`echo "in$SSH_AUTH_SOCK"`); got != "in\n" {
		t.Errorf("with the agent's key, and without the agent there: %q", got)
	}
}

func serveAgent(t *testing.T, socket string, ring agent.Agent) {
	l, err := net.Listen("unix", socket)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, c); _ = c.Close() }()
		}
	}()
}

// On the way over another host each of the two is checked, and the refusal says which it was.
// Covers: SSH-12
func TestJumpHostIsCheckedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	bastion := sshtest.Start(t, filepath.Join(w.dir, "id.pub"))
	stranger := writeKey(t, filepath.Join(w.dir, "stranger"), "ed25519", "")
	w.write(w.resource("build", `jump = "bastion"`), w.resourceAt("bastion", bastion.Port, ""))
	target, way := w.Known(w.Keys["ed25519"]), bastion.Known(bastion.Keys["ed25519"])

	w.trust(target, way)
	if got := w.prints("echo over"); got != "over\n" || bastion.Connections() != 1 || w.Connections() != 1 || bastion.Commands() != 0 {
		t.Errorf("%q, %d and %d connections", got, bastion.Connections(), w.Connections())
	}
	bastion.Cut()
	for _, c := range []struct {
		reason string
		jump   bool
		lines  []string
	}{
		{"host_unknown", true, []string{target}},
		{"host_key_changed", true, []string{target, bastion.Known(stranger)}},
		{"host_unknown", false, []string{way}},
		{"host_key_changed", false, []string{way, w.Known(stranger)}},
	} {
		w.trust(c.lines...)
		reached := w.Connections()
		f := w.refused("build")
		if f.Reason != c.reason || (f.Details["hop"] == "jump") != c.jump {
			t.Errorf("%+v: %+v", c, f)
		}
		if c.jump && w.Connections() != reached {
			t.Error("the host behind an untrusted one was reached")
		}
	}
}

// Connecting, also to a host that says nothing, ends at its bound; a refused connection at once.
// Covers: SSH-13
func TestConnectingIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Connect: 300 * time.Millisecond})
	w.Hold(true)
	began := time.Now()
	if f := w.refused("build"); f.Reason != "connect_timeout" || f.Recovery != fault.RetrySame {
		t.Errorf("%+v", f)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	w.Hold(false)
	gone := sshtest.FreePort(t)
	w.trust("[127.0.0.1]:" + gone + " " + string(ssh.MarshalAuthorizedKey(w.Keys["ed25519"])))
	w.write(w.resourceAt("build", gone, ""))
	if f := w.refused("build"); f.Reason != "unreachable" {
		t.Errorf("%+v", f)
	}
}
