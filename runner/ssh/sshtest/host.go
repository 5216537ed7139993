// Package sshtest is for tests only: a real sshd of the test's own on a loopback port, behind a
// relay that counts, cuts and holds its connections.
package sshtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Host is the sshd with its relay.
type Host struct {
	// Port of the relay on 127.0.0.1.
	Port string
	// Keys of the host by kind: ed25519, ecdsa.
	Keys map[string]ssh.PublicKey
	// Log is what sshd says.
	Log *Buffer

	t   testing.TB
	dir string

	mu     sync.Mutex
	conns  []net.Conn // both ends of each
	dialed int
	held   bool // nothing passes
	freed  *sync.Cond
}

// Start runs an sshd that lets the test's own account in with the keys in the file authorized, and
// has keys of these kinds, or of both. It ends with the test.
func Start(t testing.TB, authorized string, kinds ...string) *Host {
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
		Must(t, os.MkdirAll("/run/sshd", 0o755)) // sshd refuses to start as root without it
	}
	h := &Host{t: t, dir: t.TempDir(), Keys: map[string]ssh.PublicKey{}, Log: &Buffer{}}
	h.freed = sync.NewCond(&h.mu)
	if kinds == nil {
		kinds = []string{"ed25519", "ecdsa"}
	}
	Must(t, os.Mkdir(filepath.Join(h.dir, "home"), 0o700)) // without the account's login files
	for _, kind := range kinds {
		h.Keys[kind] = WriteKey(t, filepath.Join(h.dir, kind), kind, "")
	}
	port := ""
	for range 5 { // somebody else may take the port before sshd does
		port = FreePort(t)
		if h.launch(sshd, authorized, port) {
			break
		}
		port = ""
	}
	if port == "" {
		t.Fatalf("sshd did not start: %s", h.Log)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	_, h.Port, _ = net.SplitHostPort(l.Addr().String())
	go h.relay(l, "127.0.0.1:"+port)
	t.Cleanup(func() {
		_ = l.Close()
		h.Cut()
	})
	return h
}

func (h *Host) launch(sshd, authorized, port string) bool {
	config := filepath.Join(h.dir, "sshd_config")
	lines := []string{"ListenAddress 127.0.0.1", "Port " + port, "PidFile none", "UsePAM no", "StrictModes no", "LogLevel VERBOSE",
		"AuthorizedKeysFile " + authorized, "PermitRootLogin yes",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "AllowAgentForwarding yes", "MaxStartups 100", "PerSourcePenalties no",
		"SetEnv HOME=" + filepath.Join(h.dir, "home") + " TMPDIR=" + h.dir + " " + markVariable + "=" + filepath.Base(h.dir) + filepath.Base(filepath.Dir(h.dir))}
	for kind := range h.Keys {
		lines = append(lines, "HostKey "+filepath.Join(h.dir, kind))
	}
	Must(h.t, os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	if bytes.Contains(output(sshd, "-t", "-f", config), []byte("PerSourcePenalties")) { // older ones do not know it
		raw, err := os.ReadFile(config)
		Must(h.t, err)
		Must(h.t, os.WriteFile(config, bytes.ReplaceAll(raw, []byte("PerSourcePenalties no\n"), nil), 0o600))
	}
	cmd := exec.Command(sshd, "-D", "-e", "-f", config)
	cmd.Stderr = h.Log
	Must(h.t, cmd.Start())
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		h.endCommands()
	})
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

// markVariable is in the environment of what the host runs.
const markVariable = "WEBCODEX_SSHTEST"

// endCommands ends what commands have left: a host ends nothing with its connections.
func (h *Host) endCommands() {
	mark := []byte(markVariable + "=" + filepath.Base(h.dir) + filepath.Base(filepath.Dir(h.dir)) + "\x00")
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && bytes.Contains(env, mark) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

func output(name string, args ...string) []byte {
	out, _ := exec.Command(name, args...).CombinedOutput()
	return out
}

func (h *Host) relay(l net.Listener, to string) {
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

func (h *Host) pass(from, to net.Conn) {
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

// Cut ends every connection.
func (h *Host) Cut() {
	h.Hold(false)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
}

// Hold lets nothing pass, or everything again.
func (h *Host) Hold(held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = held
	h.freed.Broadcast()
}

// Connections counts those that were ever made.
func (h *Host) Connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dialed
}

// Commands counts the channels on which the host ran something.
func (h *Host) Commands() int { return strings.Count(h.Log.String(), "Starting session: command") }

// Known is the line of known_hosts for a key of this host.
func (h *Host) Known(key ssh.PublicKey) string {
	return knownhosts.Line([]string{knownhosts.Normalize("127.0.0.1:" + h.Port)}, key) + "\n"
}

// Buffer is a bytes.Buffer for many.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// FreePort is a port on which nobody listens now.
func FreePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// WriteKey makes a key pair of a kind: path, under the passphrase if there is one, and path.pub.
func WriteKey(t testing.TB, path, kind, passphrase string) ssh.PublicKey {
	t.Helper()
	var private any
	var err error
	if kind == "ecdsa" {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, private, err = ed25519.GenerateKey(rand.Reader)
	}
	Must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	Must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	Must(t, err)
	Must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	Must(t, os.WriteFile(path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600))
	return signer.PublicKey()
}

// Must ends a test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
