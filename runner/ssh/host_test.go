package ssh

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// host is a real sshd of the test's own behind a relay that counts, cuts and holds connections.
type host struct {
	t    *testing.T
	dir  string
	port string // of the relay
	keys map[string]ssh.PublicKey
	log  *lockedBuffer

	mu     sync.Mutex
	conns  []net.Conn // both ends of each
	dialed int
	held   bool // nothing passes
	freed  *sync.Cond
}

// startHost runs an sshd that takes the key in dir/id and has keys of these kinds, or of both.
func startHost(t *testing.T, dir string, kinds ...string) *host {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the sshd of other systems is not the one these tests know")
	}
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(sshd); err != nil {
		t.Fatal("there is no sshd: install openssh-server (.ci/run does)")
	}
	if os.Geteuid() == 0 {
		must(t, os.MkdirAll("/run/sshd", 0o755)) // sshd refuses to start as root without it
	}
	h := &host{t: t, dir: t.TempDir(), keys: map[string]ssh.PublicKey{}, log: &lockedBuffer{}}
	h.freed = sync.NewCond(&h.mu)
	if kinds == nil {
		kinds = []string{"ed25519", "ecdsa"}
	}
	for _, kind := range kinds {
		h.keys[kind] = writeKey(t, filepath.Join(h.dir, kind), kind, "")
	}
	port := ""
	for range 5 { // somebody else may take the port before sshd does
		port = freePort(t)
		if h.launch(sshd, dir, port) {
			break
		}
		port = ""
	}
	if port == "" {
		t.Fatalf("sshd did not start: %s", h.log)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, h.port, _ = net.SplitHostPort(l.Addr().String())
	go h.relay(l, "127.0.0.1:"+port)
	t.Cleanup(func() {
		_ = l.Close()
		h.cut()
	})
	return h
}

func (h *host) launch(sshd, dir, port string) bool {
	config := filepath.Join(h.dir, "sshd_config")
	lines := []string{"ListenAddress 127.0.0.1", "Port " + port, "PidFile none", "UsePAM no", "StrictModes no", "LogLevel VERBOSE",
		"AuthorizedKeysFile " + filepath.Join(dir, "id.pub"), "PermitRootLogin yes",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "AllowAgentForwarding yes", "MaxStartups 100", "PerSourcePenalties no"}
	for kind := range h.keys {
		lines = append(lines, "HostKey "+filepath.Join(h.dir, kind))
	}
	must(h.t, os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	if bytes.Contains(output(sshd, "-t", "-f", config), []byte("PerSourcePenalties")) { // older ones do not know it
		raw, err := os.ReadFile(config)
		must(h.t, err)
		must(h.t, os.WriteFile(config, bytes.ReplaceAll(raw, []byte("PerSourcePenalties no\n"), nil), 0o600))
	}
	cmd := exec.Command(sshd, "-D", "-e", "-f", config)
	cmd.Stderr = h.log
	must(h.t, cmd.Start())
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	for range 500 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return true
		}
		select {
		case <-done:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

func output(name string, args ...string) []byte {
	out, _ := exec.Command(name, args...).CombinedOutput()
	return out
}

func (h *host) relay(l net.Listener, to string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = in.Close()
			continue
		}
		h.mu.Lock()
		h.dialed++
		h.conns = append(h.conns, in, out)
		h.mu.Unlock()
		go h.pass(in, out)
		go h.pass(out, in)
	}
}

func (h *host) pass(from, to net.Conn) {
	defer func() { _ = from.Close(); _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		h.mu.Lock()
		for h.held {
			h.freed.Wait()
		}
		h.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut ends every connection.
func (h *host) cut() {
	h.hold(false)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
}

// hold lets nothing pass, or everything again.
func (h *host) hold(held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = held
	h.freed.Broadcast()
}

func (h *host) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dialed
}

// commands counts the channels on which the host ran something.
func (h *host) commands() int { return strings.Count(h.log.String(), "Starting session: command") }

// known is the line of known_hosts for a key of this host.
func (h *host) known(key ssh.PublicKey) string {
	return knownhosts.Line([]string{knownhosts.Normalize("127.0.0.1:" + h.port)}, key) + "\n"
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// writeKey makes a key pair: path and path.pub.
func writeKey(t *testing.T, path, kind, passphrase string) ssh.PublicKey {
	t.Helper()
	var private any
	var err error
	if kind == "ecdsa" {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, private, err = ed25519.GenerateKey(rand.Reader)
	}
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	must(t, os.WriteFile(path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600))
	return signer.PublicKey()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a Runner's side: settings, a key that the host takes, and its known hosts.
type world struct {
	*host
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
	w.host = startHost(t, w.dir)
	w.trust(w.known(w.keys["ed25519"]))
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
	return w.resourceAt(name, w.port, extra)
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
		w.t.Fatalf("%q: %v (%v)\nhost: %s", text, f, f.Unwrap(), w.log)
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

