package eventlog

import (
	"crypto/tls"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// RunnerListen says where Runners of other processes connect. The zero value: nowhere, the
// server listens on nothing.
type RunnerListen struct {
	// Address is HOST:PORT, port 0: a free one; empty: no such listener. It speaks TLS 1.3.
	Address string
	// Plain leaves TLS away, on loopback only.
	Plain bool
	// Certificate is asked at each handshake. It is needed unless Plain.
	Certificate func() (*tls.Certificate, error)
	// WebSocket is HOST:PORT on loopback, for a proxy that ends HTTPS; empty: no such listener.
	WebSocket string
}

// any tells that something is to be listened on.
func (r RunnerListen) any() bool { return r.Address != "" || r.WebSocket != "" }

// check refuses what would carry command text over a network in the open (faults.md 4).
func (r RunnerListen) check() error {
	for _, l := range []struct {
		addr  string
		plain bool
	}{{r.Address, r.Plain}, {r.WebSocket, true}} {
		if l.addr == "" {
			continue
		}
		host, port, err := net.SplitHostPort(l.addr)
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n > 65535 {
			return fault.New(fault.InvalidArguments, "an address for Runners is HOST:PORT").WithField("runner_listen")
		}
		if l.plain && !Loopback(host) {
			return fault.New(fault.InvalidArguments, "without TLS Runners connect on loopback only").WithField("runner_listen").
				WithNext("name 127.0.0.1 and put a proxy with HTTPS before it, or listen with TLS")
		}
	}
	if r.Address != "" && !r.Plain && r.Certificate == nil {
		return fault.New(fault.InvalidArguments, "a listener with TLS needs a certificate").WithField("runner_listen")
	}
	return nil
}

// Loopback tells that a host name or address never leaves this machine.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// free tells early that an address is taken: the embedded server would only log it.
func (r RunnerListen) free() error {
	for _, addr := range []string{r.Address, r.WebSocket} {
		if addr == "" {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "the address for Runners cannot be listened on").WithField("runner_listen").
				WithNext("end what uses it, or name another one")
		}
		_ = l.Close()
	}
	return nil
}

// set brings the listeners into the embedded server's options. The first one opens later, when
// the server can tell whom it admits (ServeRunners); the second refuses everybody until then.
func (r RunnerListen) set(opts *server.Options) {
	if !r.any() {
		return
	}
	opts.MaxConn, opts.MaxSubs = maxConnections, maxSubscriptions
	opts.PingInterval, opts.MaxPingsOut = pingEvery, maxPings
	opts.TLSTimeout, opts.AuthTimeout = authTime.Seconds(), authTime.Seconds()
	opts.Cluster.NoAdvertise = true // the addresses of this machine are nobody's business
	if r.Address != "" {
		opts.Host, opts.Port = hostPort(r.Address)
		if !r.Plain {
			get := r.Certificate
			opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13,
				GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return get() }}
		}
	}
	if r.WebSocket != "" {
		host, port := hostPort(r.WebSocket)
		// What a browser sends has an Origin. One that must be the same as the plain listener's
		// and yet is https is none: all are refused.
		opts.Websocket = server.WebsocketOpts{Host: host, Port: port, NoTLS: true, SameOrigin: true,
			AllowedOrigins: []string{"https://none.invalid"}, AuthTimeout: authTime.Seconds(), HandshakeTimeout: authTime}
	}
}

// hostPort splits an address that was checked; the embedded server calls a free port -1.
func hostPort(addr string) (string, int) {
	host, p, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(p)
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port
}

// RunnerKey is what a Runner's public key stands for.
type RunnerKey struct {
	Client event.ClientID
	// Enrols: the key is that of an enrolment code. Its holder may ask once for the Runner's own
	// key to be taken, and nothing else.
	Enrols bool
}

// RunnerAddrs are the addresses that Runners can reach; empty: no such listener.
type RunnerAddrs struct {
	Address   string // TLS, or plain on loopback
	WebSocket string
}

// ServeRunners opens the listeners of Options.Runners. admit tells whom a key is of; it is asked
// at every connection, and who is not admitted any more is cut with CutRunner. It may be called
// once.
func (l *Log) ServeRunners(admit func(public string) (RunnerKey, bool)) (RunnerAddrs, error) {
	var a RunnerAddrs
	r := l.opts.Runners
	l.auth.admit(admit)
	if r.WebSocket != "" {
		if u, err := url.Parse(l.srv.WebsocketURL()); err == nil {
			host, _, _ := net.SplitHostPort(r.WebSocket)
			a.WebSocket = net.JoinHostPort(host, u.Port())
		}
	}
	if r.Address != "" {
		ready := make(chan struct{})
		go l.srv.AcceptLoop(ready)
		<-ready
		at := l.srv.Addr()
		if at == nil {
			return a, fault.New(fault.Unavailable, "the address for Runners cannot be listened on").WithField("runner_listen").
				WithNext("end what uses it, or name another one")
		}
		host, _, _ := net.SplitHostPort(r.Address)
		_, port, _ := net.SplitHostPort(at.String())
		a.Address = net.JoinHostPort(host, port)
	}
	return a, nil
}

// CutRunner closes every connection that a Runner has from outside. Call it once its key is
// admitted no more: none comes back.
func (l *Log) CutRunner(c event.ClientID) { l.auth.cut(c) }

const (
	// maxConnections of the embedded server, its own ones included; maxSubscriptions of each.
	maxConnections   = 512
	maxSubscriptions = 1024
	// maxPerRunner connections of one Runner at once: the one in use, and what a broken link has
	// left half open.
	maxPerRunner = 4
	// authTime is how long a connection may take to say who it is.
	authTime = 5 * time.Second
	// pingEvery and maxPings bound how long a link that went silent counts as one.
	pingEvery = 10 * time.Second
	maxPings  = 2
)
