package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Bounds of a connection to a server elsewhere.
const (
	// dialTime bounds one attempt, its TLS handshake and authentication included.
	dialTime = 10 * time.Second
	// retryFirst and retryMax bound the pause between two attempts; each is drawn at random from
	// the upper half, so that the Runners of a server that comes back do not come at once.
	retryFirst = 250 * time.Millisecond
	retryMax   = 15 * time.Second
	// pingEvery and maxPings bound how long a link that went silent counts as one.
	pingEvery = 10 * time.Second
	maxPings  = 2
	// enrolTime bounds an enrolment.
	enrolTime = 30 * time.Second
)

// Remote says how a server elsewhere is reached and known.
type Remote struct {
	// URL is tls://HOST:PORT or wss://HOST[/PATH]; nats:// and ws:// are for loopback only.
	URL string
	// Pin is the SHA-256 of the public key in the server's certificate; empty: this machine's
	// authorities say whether the certificate is good. It is not for wss, where the certificate
	// is a proxy's.
	Pin []byte
	// Server is the key that signs what the server sends.
	Server ed25519.PublicKey
	Client event.ClientID
	// Seed is that of the Runner's own key, as nkeys write one.
	Seed   []byte
	Logger *slog.Logger
}

// CheckURL tells what is wrong with an address of a server. Error: invalid_arguments.
func CheckURL(s string) error {
	bad := func(text string) error {
		return fault.New(fault.InvalidArguments, "%s", text).WithField("server").
			WithNext("name tls://HOST:PORT, or wss://HOST of a proxy with HTTPS")
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return bad("the server's address is a URL without user, query and fragment")
	}
	switch u.Scheme {
	case "tls", "wss":
	case "nats", "ws":
		if a, err := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" && (err != nil || !a.Unmap().IsLoopback()) {
			return bad(u.Scheme + ":// is in the open, so it is for loopback alone")
		}
	default:
		return bad("a server is reached over tls, wss, nats or ws")
	}
	if strings.HasPrefix(u.Scheme, "ws") {
		return nil
	}
	if u.Port() == "" || strings.Trim(u.Path, "/") != "" {
		return bad(u.Scheme + "://HOST:PORT has a port and no path")
	}
	return nil
}

// Dial connects once. The connection mends itself from then on, for ever; what it says of its
// state goes to the logger. Errors: runner_unavailable with reason unreachable, certificate or
// refused; invalid_arguments.
func Dial(ctx context.Context, r Remote) (*Conn, error) {
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	key, err := nkeys.FromSeed(r.Seed)
	if err != nil {
		return nil, fault.New(fault.InvalidArguments, "the Runner's key is damaged").WithNext("enrol this Runner again with a new code")
	}
	refused := new(atomic.Bool)
	opts, err := r.options(key, wire.InboxPrefix(r.Client), refused)
	if err != nil {
		return nil, err
	}
	opts = append(opts, nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1), nats.CustomReconnectDelay(Pause),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			refused.Store(false) // it was a link, so the server had taken it
			if err != nil {      // else it was closed here
				r.Logger.Warn("the link to the server broke; it is made again, and what runs goes on", "cause", short(err))
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			r.Logger.Debug("the server could not be reached", "cause", short(err))
		}))
	return r.connect(ctx, opts)
}

// Pause is how long to wait before an attempt, counted from 1.
func Pause(attempt int) time.Duration {
	d := retryMax
	if attempt < 8 {
		d = min(retryMax, retryFirst<<max(attempt-1, 0))
	}
	return d/2 + rand.N(d/2)
}

// options are those of every connection. refused tells that a refusal was told of: the attempts go
// on for ever, and who is refused once mostly is at each.
func (r Remote) options(key nkeys.KeyPair, inbox string, refused *atomic.Bool) ([]nats.Option, error) {
	if err := CheckURL(r.URL); err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("the Runner's key: %w", err)
	}
	u, _ := url.Parse(r.URL)
	opts := []nats.Option{nats.Nkey(public, key.Sign), nats.CustomInboxPrefix(inbox), nats.Timeout(dialTime), nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(maxPings), nats.IgnoreDiscoveredServers(), nats.Name("webcodex runner " + string(r.Client)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrAuthorization) {
				if !refused.Swap(true) {
					r.Logger.Warn(refusedText)
				}
				return
			}
			r.Logger.Warn("the link reports an error", "cause", short(err))
		})}
	if path := strings.Trim(u.Path, "/"); path != "" {
		opts = append(opts, nats.ProxyPath(path))
	}
	if u.Scheme == "tls" || u.Scheme == "wss" {
		cfg := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: u.Hostname()}
		if len(r.Pin) > 0 && u.Scheme == "tls" {
			cfg.InsecureSkipVerify = true // the pin says more than any authority could
			cfg.VerifyConnection = pinned(r.Pin)
		}
		if u.Scheme == "wss" {
			cfg.MinVersion = tls.VersionTLS12 // the proxy's choice
		}
		opts = append(opts, nats.Secure(cfg))
	}
	return opts, nil
}

var errPin = errors.New("the certificate is not the one that the enrolment code names")

func pinned(pin []byte) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) > 0 {
			if sum := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo); bytes.Equal(sum[:], pin) {
				return nil
			}
		}
		return errPin
	}
}

const refusedText = "the server does not take this Runner's key: it was revoked or replaced, or the server is another one; with a new code this Runner can enrol again"

// connect makes one attempt and says in words why it failed.
func (r Remote) connect(ctx context.Context, opts []nats.Option) (*Conn, error) {
	u, _ := url.Parse(r.URL)
	dial := *u
	dial.Path = "" // that is the proxy's path
	type made struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan made, 1)
	go func() {
		nc, err := nats.Connect(dial.String(), opts...)
		done <- made{nc, err}
	}()
	var m made
	select {
	case m = <-done:
	case <-ctx.Done():
		go func() {
			if late := <-done; late.nc != nil {
				late.nc.Close()
			}
		}()
		return nil, fault.Wrap(ctx.Err(), fault.Cancelled, "the connection was given up")
	}
	err := m.err
	var cert *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case err == nil:
		return m.nc, nil
	case errors.Is(err, nats.ErrAuthorization):
		return nil, fault.Wrap(err, fault.RunnerUnavailable, refusedText).WithReason("refused")
	case errors.Is(err, errPin), errors.As(err, &cert), errors.As(err, &authority), errors.As(err, &host):
		return nil, fault.Wrap(err, fault.RunnerUnavailable, "the server at this address does not have the certificate that was expected").
			WithReason("certificate").WithNext("check the address; if the server has a new key, enrol this Runner again")
	}
	return nil, fault.Wrap(err, fault.RunnerUnavailable, "the server cannot be reached: %s", short(err)).WithReason("unreachable")
}

// short is one line without addresses of this machine.
func short(err error) string {
	if err == nil {
		return "closed"
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// NewSeed makes a key for a Runner. Its seed is the Runner's secret.
func NewSeed() ([]byte, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key.Seed()
}

// Enrol hands in the public part of the Runner's key. Doing it again with the same code and key
// is as good as once. Errors: enrolment_code_invalid, _expired, _spent, _revoked; those of Dial.
func Enrol(ctx context.Context, code wire.Code, r Remote, build string) error {
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, enrolTime)
	defer cancel()
	raw, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, code.Seed[:])
	if err != nil {
		return fault.Wrap(err, fault.EnrolmentInvalid, "this enrolment code holds no key")
	}
	own, err := nkeys.FromSeed(r.Seed)
	if err != nil {
		return fmt.Errorf("the Runner's key: %w", err)
	}
	opts, err := r.options(raw, wire.EnrolInbox(code.Client), new(atomic.Bool))
	if err != nil {
		return err
	}
	nc, err := r.connect(ctx, append(opts, nats.NoReconnect()))
	if err != nil {
		if f := fault.As(err); f.Reason == "refused" {
			return fault.Wrap(err, fault.EnrolmentInvalid, "the server knows no such code: it was replaced or forged, or is another server's").
				WithNext("ask for a new one: `webcodex token create --kind runner`")
		}
		return err
	}
	defer nc.Close()
	m, err := enrolment(code.Client, raw, own, build)
	if err != nil {
		return err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the enrolment: %w", err)
	}
	msg, err := nc.RequestWithContext(ctx, wire.EnrolSubject(code.Client), body)
	if err != nil {
		return fault.Wrap(err, fault.RunnerUnavailable, "the server did not answer the enrolment").WithReason("unreachable").
			WithNext("do it again with the same code")
	}
	if !wire.VerifyReply(code.Server, code.Client, wire.VerbEnrol, body, msg.Data, signature(msg)) {
		return fault.Wrap(ErrUnsigned, fault.EnrolmentInvalid, "who answers is not the server that made this code").
			WithNext("check the address, and whether somebody stands between")
	}
	var reply wire.EnrolReply
	if err := json.Unmarshal(msg.Data, &reply); err != nil {
		return fmt.Errorf("decode the enrolment's answer: %w", err)
	}
	if reply.Fault != nil {
		return reply.Fault
	}
	if !reply.OK {
		return fault.New(fault.EnrolmentInvalid, "the server did not take the key")
	}
	return nil
}

func enrolment(c event.ClientID, code, own nkeys.KeyPair, build string) (wire.Enrol, error) {
	m := wire.Enrol{Protocol: wire.Protocol, Build: build}
	var errs [4]error
	m.Code, errs[0] = code.PublicKey()
	m.Key, errs[1] = own.PublicKey()
	text := wire.EnrolText(c, m.Code, m.Key)
	m.CodeProof, errs[2] = code.Sign(text)
	m.KeyProof, errs[3] = own.Sign(text)
	if err := errors.Join(errs[:]...); err != nil {
		return m, fmt.Errorf("prove the keys: %w", err)
	}
	return m, nil
}
