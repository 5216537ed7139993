package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/execution"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	link "webcodex/runner/link/server"
	"webcodex/runner/wire"
)

// way is where Runners of other processes may come in.
type way struct {
	addr  string // HOST:PORT; empty: none
	plain bool
}

// address reads Listen.
func (c RunnersConfig) address() (way, error) {
	bad := usagef("HOST:PORT, or nats://HOST:PORT on loopback, which is without TLS")
	if c.Listen == "" {
		return way{}, nil
	}
	scheme, addr, ok := strings.Cut(c.Listen, "://")
	if !ok {
		scheme, addr = "tls", c.Listen
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" || scheme != "tls" && scheme != "nats" {
		return way{}, bad
	}
	if scheme == "nats" && !eventlog.Loopback(host) {
		return way{}, bad
	}
	return way{addr: addr, plain: scheme == "nats"}, nil
}

// identity is who the server is to Runners of other processes: its certificate. It is there once
// the data directory's key is read.
type identity struct {
	mu   sync.Mutex
	own  *tls.Certificate // made from the data directory's key
	pin  []byte
	conf RunnersConfig
	file *tls.Certificate // read from conf
	at   time.Time        // when the files had changed last
}

const certificateDomain = "webcodex.runner-certificate.v1"

// make makes the server's own certificate: the same key in every life, so that its pin is.
func (d *identity) make(f *execution.Fleet) error {
	seed, err := f.Derive(certificateDomain)
	if err != nil {
		return err
	}
	key := ed25519.NewKeyFromSeed(seed)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webcodex"}, DNSNames: []string{"webcodex"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return failf(exitFailed, "the certificate for Runners cannot be made: %v", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return failf(exitFailed, "the certificate for Runners cannot be made: %v", err)
	}
	pin := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own, d.pin = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pin[:]
	return nil
}

var errNotYet = errors.New("the server is starting")

// certificate is asked at each handshake: files of the operator are read again when they change.
func (d *identity) certificate() (*tls.Certificate, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conf.TLSCert == "" {
		if d.own == nil {
			return nil, errNotYet
		}
		return d.own, nil
	}
	info, err := os.Stat(d.conf.TLSCert)
	if err != nil || d.file != nil && info.ModTime().Equal(d.at) {
		return d.file, d.unread(err)
	}
	c, err := tls.LoadX509KeyPair(d.conf.TLSCert, d.conf.TLSKey)
	if err != nil {
		return d.file, d.unread(err) // half written: what was read goes on
	}
	d.file, d.at = &c, info.ModTime()
	return d.file, nil
}

func (d *identity) unread(err error) error {
	if d.file != nil {
		return nil
	}
	return err
}

// listenFor says where the log's server listens for Runners. Errors: files that are no pair.
func (s *server) listenFor(c RunnersConfig) (eventlog.RunnerListen, error) {
	w, err := c.address()
	if err != nil {
		return eventlog.RunnerListen{}, err
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return eventlog.RunnerListen{}, usagef("runner.tls_cert and runner.tls_key belong together")
	}
	s.identity = &identity{conf: c}
	if c.TLSCert != "" {
		if _, err := s.identity.certificate(); err != nil {
			return eventlog.RunnerListen{}, usagef("runner.tls_cert and runner.tls_key are no certificate with its key: %v", short(err))
		}
	}
	return eventlog.RunnerListen{Address: w.addr, Plain: w.plain, Certificate: s.identity.certificate, WebSocket: c.WSListen}, nil
}

// admitRunners opens the way in for Runners of other processes, where one was asked for.
func (s *server) admitRunners(c RunnersConfig) (err error) {
	if err := s.identity.make(s.fleet); err != nil {
		return err
	}
	if c.Listen == "" && c.WSListen == "" {
		return nil
	}
	s.runnersAt, err = s.log.ServeRunners(func(public string) (eventlog.RunnerKey, bool) {
		if _, err := s.log.Head(event.RunnersAggregate()); err != nil {
			return eventlog.RunnerKey{}, false // what its record lost may be a revocation
		}
		client, code, ok := s.others.Admit(public)
		return eventlog.RunnerKey{Client: client, Enrols: code}, ok
	})
	return err
}

// newOthers wires the credentials of Runners in other processes.
func (s *server) newOthers(c RunnersConfig) {
	o := access.RunnerOptions{Writer: s.writer, Fold: s.models.runners, Actor: s.access.Principal().Actor, Now: time.Now,
		Cut: func(client event.ClientID) {
			s.log.CutRunner(client)
			s.fleet.Revoked(client)
		}}
	if c.Listen != "" || c.WSListen != "" {
		o.Code = func(client event.ClientID) (string, string, error) { return s.newCode(c, client) }
	}
	s.others = access.NewRunners(o)
}

// newCode makes an enrolment code with what a Runner has to know of this server.
func (s *server) newCode(c RunnersConfig, client event.ClientID) (text, public string, err error) {
	code := wire.Code{Client: client, URL: s.runnerURL(c)}
	if code.Seed, public, err = link.NewCode(); err != nil {
		return "", "", err
	}
	if code.Server, err = s.fleet.ServerKey(); err != nil {
		return "", "", err
	}
	if c.TLSCert == "" {
		code.Pin = bytes.Clone(s.identity.pin)
	}
	return code.String(), public, nil
}

// runnerURLs are the addresses that are listened on.
func (s *server) runnerURLs() (out []string) {
	if a := s.runnersAt.Address; a != "" {
		scheme := "tls://"
		if w, err := s.identity.conf.address(); err == nil && w.plain {
			scheme = "nats://"
		}
		out = append(out, scheme+a)
	}
	if a := s.runnersAt.WebSocket; a != "" {
		out = append(out, "ws://"+a)
	}
	return out
}

// runnerURL is the address that a code tells; empty where the listener takes any of the machine's.
func (s *server) runnerURL(c RunnersConfig) string {
	if c.URL != "" {
		return c.URL
	}
	for _, u := range s.runnerURLs() {
		_, addr, _ := strings.Cut(u, "://")
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" && !net.ParseIP(host).IsUnspecified() {
			return u
		}
	}
	return ""
}
