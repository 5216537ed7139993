package execution

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"regexp"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/runner/link/server"
	"webcodex/runner/wire"
)

// Remotes are the Runners of other processes: who they are, and who this server is to them. The
// zero value admits every client that the bus lets speak and takes no key.
type Remotes struct {
	// Local is the client of the Runner in this process. Nobody stands between it and the server,
	// so nothing is signed for it and none of its rates is bounded (decision 27).
	Local event.ClientID
	// Admit tells whether a client may be a Runner now, and of which Projects; nil: any, of all.
	Admit func(event.ClientID) (serves func(event.ProjectID, string) bool, ok bool)
	// Enrolled lists the clients that may be Runners; nil: there are none.
	Enrolled func() []event.ClientID
	// Enrol takes a Runner's key in the place of its code; nil: none is taken.
	Enrol func(event.ClientID, wire.Enrol) wire.EnrolReply
	// Build is this program's version, for people.
	Build string
}

const linkKeyDomain = "webcodex.runner-link.v1"

// signingKey signs what goes to Runners in other processes. It is the same in every life, until
// digest.key is lost: then they have to be enrolled again.
func (f *Fleet) signingKey() (ed25519.PrivateKey, error) {
	seed, err := f.Derive(linkKeyDomain)
	if err != nil {
		return nil, fmt.Errorf("the key of the Runner link: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// ServerKey is the public part of the key that signs what goes to Runners.
func (f *Fleet) ServerKey() (ed25519.PublicKey, error) {
	key, err := f.signingKey()
	if err != nil {
		return nil, err
	}
	return key.Public().(ed25519.PublicKey), nil
}

func (f *Fleet) listen() (*server.Server, error) {
	key, err := f.signingKey()
	if err != nil {
		return nil, err
	}
	return server.New(f.o.Bus, server.Handlers{Hello: f.hello, Claim: f.claim, Start: f.started, Result: f.result, Enrol: f.o.Remotes.Enrol},
		server.Seal{Key: key, Local: f.o.Remotes.Local})
}

// admitted takes what a hello may not say out of it. reason tells why it is refused; empty: it
// is not.
func (f *Fleet) admitted(c event.ClientID, h *wire.Hello) (reason string) {
	if h.Client != c || !sound(*h) {
		return wire.RefusedMalformed
	}
	r := f.o.Remotes
	if r.Admit == nil || c == r.Local {
		return ""
	}
	serves, ok := r.Admit(c)
	if !ok {
		return wire.RefusedRevoked
	}
	// Its arrays are this message's own.
	kept := h.Projects[:0]
	for _, p := range h.Projects {
		if serves(p.ID, p.Name) {
			kept = append(kept, p)
		}
	}
	h.Projects = kept
	if !serves("", "") {
		// A worktree is a Project under a name of its own, which a list of names never has: it would be
		// made and could not be served.
		h.Capabilities = slices.DeleteFunc(h.Capabilities, func(c string) bool { return c == string(wire.OpCreateWorktree) })
	}
	return ""
}

// answer is what a Runner is told of this server, with the refusal in words.
func (f *Fleet) answer(h wire.Hello, reason string) wire.HelloReply {
	reply := wire.HelloReply{OK: reason == "", Reason: reason, Server: f.o.Server, Protocol: wire.Protocol, Build: f.o.Remotes.Build}
	switch reason {
	case "":
	case wire.RefusedProtocol:
		reply.Text = fmt.Sprintf("the Runner (%s) speaks protocol %d, the server (%s) protocol %d: update the older of the two",
			named(h.Build), h.Protocol, named(f.o.Remotes.Build), wire.Protocol)
	case wire.RefusedSecond:
		reply.Text = "another Runner with this client id is connected, and one alone may be: end it, or enrol this one with a code of its own"
	case wire.RefusedRevoked:
		reply.Text = "this Runner's credential was revoked; with a new code it can enrol again"
	default:
		reply.Text = "the Runner's hello is malformed"
	}
	return reply
}

func named(build string) string {
	if build == "" {
		return "unknown build"
	}
	return clip(build)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9._:+-]{0,128}$`)

// Bounds of what a hello says of a Runner (faults.md 4).
const (
	maxCapabilities = 128
	maxCapability   = 64
)

// sound reports that what a hello says has the form of what it is: all but names for people.
func sound(h wire.Hello) bool {
	if h.Instance == "" || len(h.Projects) > wire.MaxProjects || len(h.Jobs) > wire.MaxInventory || len(h.Capabilities) > maxCapabilities {
		return false
	}
	for _, s := range []string{string(h.Instance), h.Generation, h.Boot, h.StartedAt, h.OS, h.Arch} {
		if !plainWord.MatchString(s) {
			return false
		}
	}
	for _, s := range h.Capabilities {
		if len(s) > maxCapability || !plainWord.MatchString(s) {
			return false
		}
	}
	for _, j := range h.Jobs {
		if !j.ID.Valid() || !plainWord.MatchString(string(j.State)) {
			return false
		}
	}
	for _, p := range h.Projects {
		if !event.ValidFingerprint(p.Root) {
			return false
		}
	}
	return true
}

// comeback is how long after its start the server waits for a Runner that it asks of what the
// last life left open: one that lives is back by then.
const comeback = 5 * time.Second

// returned waits until a Runner of another process that is admitted has come back, within
// comeback of the start.
func (f *Fleet) returned(ctx context.Context, c event.ClientID) bool {
	r := f.o.Remotes
	if r.Admit == nil || c == r.Local {
		return false
	}
	if _, ok := r.Admit(c); !ok {
		return false
	}
	ctx, cancel := context.WithDeadline(ctx, f.born.Add(comeback))
	defer cancel()
	return f.WaitRunner(ctx, c) == nil
}

// Revoked ends the lease of a client whose credential is none any more.
func (f *Fleet) Revoked(c event.ClientID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.leases[c]; l != nil {
		l.timer.Stop()
		delete(f.leases, c)
		f.signal()
	}
}
