package eventlog

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"webcodex/internal/fault"
)

// door is a log that Runners may reach from outside, and who is admitted.
type door struct {
	log   *Log
	addrs RunnerAddrs
	mu    sync.Mutex
	keys  map[string]RunnerKey
}

func (d *door) admit(public string, k RunnerKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[public] = k
}

func (d *door) find(public string) (RunnerKey, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.keys[public]
	return k, ok
}

func selfSigned(t *testing.T) func() (*tls.Certificate, error) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return func() (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
	}
}

func openDoor(t *testing.T) *door {
	t.Helper()
	l := open(t, t.TempDir(), func(o *Options) {
		o.Runners = RunnerListen{Address: "127.0.0.1:0", Certificate: selfSigned(t), WebSocket: "127.0.0.1:0"}
	})
	d := &door{log: l, keys: map[string]RunnerKey{}}
	var err error
	if d.addrs, err = l.ServeRunners(d.find); err != nil {
		t.Fatal(err)
	}
	return d
}

// dial connects from outside with a key; nil for none of its own.
func (d *door) dial(key nkeys.KeyPair, url string, opts ...nats.Option) (*nats.Conn, error) {
	all := []nats.Option{nats.NoReconnect(), nats.Timeout(5 * time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	if key != nil {
		public, err := key.PublicKey()
		if err != nil {
			return nil, err
		}
		all = append(all, nats.Nkey(public, key.Sign))
	}
	if strings.HasPrefix(url, "tls") {
		all = append(all, nats.Secure(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}))
	}
	return nats.Connect(url, append(all, opts...)...)
}

func (d *door) urls() []string {
	return []string{"tls://" + d.addrs.Address, "ws://" + d.addrs.WebSocket}
}

func newKey(t *testing.T) (nkeys.KeyPair, string) {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// A Runner from outside reaches exactly its own subjects, over TLS and over WebSocket; an
// enrolment code reaches one.
func TestOutsidersReachTheirOwnSubjectsOnly(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	srv, err := d.log.ServerBus()
	if err != nil {
		t.Fatal(err)
	}
	answer(t, srv, "wc.run.*.*")
	answer(t, srv, "wc.enrol.*")
	runner, public := newKey(t)
	d.admit(public, RunnerKey{Client: "a"})
	code, codePublic := newKey(t)
	d.admit(codePublic, RunnerKey{Client: "a", Enrols: true})
	for _, url := range d.urls() {
		a, err := d.dial(runner, url, nats.CustomInboxPrefix("_INBOX_a"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.dial(code, url, nats.CustomInboxPrefix("_ENROL_a"))
		if err != nil {
			t.Fatal(err)
		}
		for subject, want := range map[string]bool{"wc.run.a.hello": true, "wc.run.a.offer": false, "wc.run.b.hello": false, "wc.enrol.a": false, "$JS.API.INFO": false} {
			if request(a, subject) != want {
				t.Errorf("%s: a Runner's request on %s is answered: %v", url, subject, !want)
			}
		}
		for subject, want := range map[string]bool{"wc.enrol.a": true, "wc.enrol.b": false, "wc.run.a.hello": false, "$JS.API.INFO": false} {
			if request(c, subject) != want {
				t.Errorf("%s: an enrolment's request on %s is answered: %v", url, subject, !want)
			}
		}
		heard := make(chan *nats.Msg, 8)
		for _, nc := range []*nats.Conn{a, c} {
			for _, subject := range []string{">", "wc.>", "wc.log.>", "_INBOX.>", "_INBOX_b.>", "wc.enrol.>"} {
				_, _ = nc.ChanSubscribe(subject, heard)
			}
			_ = nc.Flush()
		}
		_ = request(a, "wc.run.a.hello")
		select {
		case m := <-heard:
			t.Errorf("%s: %q was heard", url, m.Subject)
		case <-time.After(50 * time.Millisecond):
		}
		a.Close()
		c.Close()
	}
}

// Who cannot prove a key that is admitted sees nothing and is closed: no key, an unknown one, a
// known one that it does not have.
func TestFailedAuthenticationCloses(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	own, public := newKey(t)
	d.admit(public, RunnerKey{Client: "a"})
	stranger, _ := newKey(t)
	nameless, namelessPublic := newKey(t)
	d.admit(namelessPublic, RunnerKey{})
	forger := nats.Nkey(public, stranger.Sign)
	for _, url := range d.urls() {
		for name, dial := range map[string]func() (*nats.Conn, error){
			"no key": func() (*nats.Conn, error) { return d.dial(nil, url) }, "unknown": func() (*nats.Conn, error) { return d.dial(stranger, url) },
			"forged": func() (*nats.Conn, error) { return d.dial(nil, url, forger) }, "no client": func() (*nats.Conn, error) { return d.dial(nameless, url) },
			"password": func() (*nats.Conn, error) { return d.dial(nil, url, nats.UserInfo("runner-a", public)) },
		} {
			if nc, err := dial(); err == nil {
				t.Errorf("%s, %s: admitted as %v", url, name, nc.Status())
				nc.Close()
			}
		}
		nc, err := d.dial(own, url)
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	acc := d.log.srv.GlobalAccount()
	for end := time.Now().Add(5 * time.Second); acc.NumConnections() != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the global account has %d connections", acc.NumConnections())
		}
	}
	if v, err := d.log.srv.LookupAccount(accountRun); err != nil || v.JetStreamEnabled() {
		t.Errorf("the Runners' account has JetStream: %v", err)
	}
}

// A Runner that is admitted no more is cut at once, and stays out.
func TestCutRunnerStaysOut(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	key, public := newKey(t)
	d.admit(public, RunnerKey{Client: "a"})
	other, otherPublic := newKey(t)
	d.admit(otherPublic, RunnerKey{Client: "b"})
	for _, url := range d.urls() {
		closed := make(chan struct{})
		if _, err := d.dial(key, url, nats.ClosedHandler(func(*nats.Conn) { close(closed) })); err != nil {
			t.Fatal(err)
		}
		b, err := d.dial(other, url)
		if err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		delete(d.keys, public)
		d.mu.Unlock()
		d.log.CutRunner("a")
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: the connection is still there", url)
		}
		if nc, err := d.dial(key, url); err == nil {
			nc.Close()
			t.Errorf("%s: it came back", url)
		}
		if err := b.FlushTimeout(5 * time.Second); err != nil {
			t.Errorf("%s: another Runner was cut too: %v", url, err)
		}
		b.Close()
		d.admit(public, RunnerKey{Client: "a"})
	}
}

// One Runner cannot take all the connections there are.
func TestConnectionsOfOneRunnerAreBounded(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	key, public := newKey(t)
	d.admit(public, RunnerKey{Client: "a"})
	var open []*nats.Conn
	for range maxPerRunner {
		nc, err := d.dial(key, d.urls()[0])
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
	}
	if nc, err := d.dial(key, d.urls()[1]); err == nil {
		nc.Close()
		t.Errorf("connection %d was taken", maxPerRunner+1)
	}
	open[0].Close()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if nc, err := d.dial(key, d.urls()[1]); err == nil {
			nc.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal("a closed connection still counts")
		}
	}
}

// A browser's WebSocket is refused whatever its Origin says, and what stands in X-Forwarded-*
// changes nothing; who says nothing is closed soon; other protocols of the port are off.
func TestWebSocketTakesNoBrowser(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	upgrade := func(path string, headers ...string) (int, *bufio.Reader, net.Conn) {
		c, err := net.Dial("tcp", d.addrs.WebSocket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n", path, d.addrs.WebSocket, strings.Join(append(headers, ""), "\r\n"))
		r := bufio.NewReader(c)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, r, c
	}
	for _, origin := range []string{"http://" + d.addrs.WebSocket, "https://" + d.addrs.WebSocket, "https://none.invalid", "http://none.invalid", "null", "https://evil.example"} {
		if code, _, _ := upgrade("/", "Origin: "+origin, "X-Forwarded-Proto: https", "X-Forwarded-Host: none.invalid"); code != http.StatusForbidden {
			t.Errorf("Origin %s: %d", origin, code)
		}
	}
	if code, _, _ := upgrade("/mqtt"); code == http.StatusSwitchingProtocols {
		t.Error("another protocol is spoken")
	}
	code, r, c := upgrade("/", "X-Forwarded-For: 10.0.0.1")
	if code != http.StatusSwitchingProtocols {
		t.Fatalf("a Runner's request: %d", code)
	}
	_ = c.SetReadDeadline(time.Now().Add(authTime + 10*time.Second))
	for {
		if _, err := r.ReadByte(); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Error("a silent connection stays open")
			}
			return
		}
	}
}

// Old TLS is refused, and what would be in the open leaves loopback never.
func TestRunnersConnectOverTLS13OrLoopback(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	key, public := newKey(t)
	d.admit(public, RunnerKey{Client: "a"})
	old := nats.Secure(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if nc, err := d.dial(key, d.urls()[0], old); err == nil {
		nc.Close()
		t.Error("TLS 1.2 was taken")
	}
	if nc, err := d.dial(key, "nats://"+d.addrs.Address, func(o *nats.Options) error { o.Secure = false; return nil }); err == nil {
		_, secure := nc.TLSConnectionState()
		if secure != nil {
			t.Error("a plain connection was taken")
		}
		nc.Close()
	}
	for _, r := range []RunnerListen{{Address: "0.0.0.0:0", Plain: true}, {WebSocket: "0.0.0.0:0"}, {WebSocket: "[::]:0"}, {Address: ":0", Plain: true},
		{Address: "192.0.2.1:1", Plain: true}, {Address: "127.0.0.1:0"}, {Address: "127.0.0.1"}, {Address: "127.0.0.1:70000", Plain: true}} {
		o := Options{Dir: t.TempDir(), Durability: Process, MaxBytes: 64 << 20, Runners: r}
		if l, err := Open(context.Background(), o); fault.KindOf(err) != fault.InvalidArguments {
			t.Errorf("%+v: %v", r, err)
			if err == nil {
				_ = l.Close()
			}
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := Options{Dir: t.TempDir(), Durability: Process, MaxBytes: 64 << 20, Runners: RunnerListen{WebSocket: taken.Addr().String()}}
	if _, err := Open(context.Background(), o); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a taken address: %v", err)
	}
}
