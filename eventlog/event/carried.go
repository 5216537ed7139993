package event

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Bounds of carried state (faults.md 2.7).
const (
	// CarriedPartBytes of compressed state lie in one part: base64 and the envelope around it
	// stay within MaxCommitBytes.
	CarriedPartBytes = 184 << 10
	// MaxCarriedParts of one state; a state that needs more cannot be carried, so what it was
	// folded from stays in the log.
	MaxCarriedParts = 512
	// MaxCarriedState bounds a state before it is compressed, so that a few bytes never unfold
	// into all of the memory.
	MaxCarriedState = 128 << 20
)

// CarriedPart is a piece of an aggregate's state, brought forward so that the commits it was
// folded from may leave the log. Parts are commits of consecutive versions; the last one
// holds the hash of all and alone makes them count.
type CarriedPart struct {
	// State is the version of the form that Data has once it is put together.
	State int `json:"state"`
	Part  int `json:"part"` // from 1
	Parts int `json:"parts"`
	// Data is base64 of this part of the compressed state.
	Data string `json:"data"`
	// Of is the version of the aggregate at which the state stands: the first part is the commit
	// after it, or the parts count for nothing. 0: written before this was said.
	Of uint64 `json:"of,omitempty"`
	// Hash is the hex SHA-256 of the whole compressed state, in the last part only.
	Hash string `json:"hash,omitempty"`
}

// SessionCarried carries a Session's core and tail.
type SessionCarried struct {
	Part CarriedPart `json:"part"`
}

// ProjectCarried carries a Project's registration.
type ProjectCarried struct {
	Part CarriedPart `json:"part"`
}

// AccessCarried carries principals and tokens, or a page of refs.
type AccessCarried struct {
	Part CarriedPart `json:"part"`
}

// RetentionCarried carries the tombstones.
type RetentionCarried struct {
	Part CarriedPart `json:"part"`
}

// Carried gives the part that an event carries, if it is one that does.
func Carried(e Event) (CarriedPart, bool) {
	switch e := e.(type) {
	case SessionCarried:
		return e.Part, true
	case ProjectCarried:
		return e.Part, true
	case AccessCarried:
		return e.Part, true
	case RetentionCarried:
		return e.Part, true
	case ExternalCarried:
		return e.Part, true
	case WindowCarried:
		return e.Part, true
	default: // carries nothing
		return CarriedPart{}, false
	}
}

// CarriedIn gives the part that a commit carries. A part is a commit of its own.
func CarriedIn(c Commit) (CarriedPart, bool) {
	if len(c.Events) != 1 {
		return CarriedPart{}, false
	}
	return Carried(c.Events[0])
}

// CarriedEvent is a part as an event of the domain; nil for one that carries nothing.
func CarriedEvent(d Domain, p CarriedPart) Event {
	switch d {
	case DomainSession:
		return SessionCarried{p}
	case DomainProject:
		return ProjectCarried{p}
	case DomainAccess:
		return AccessCarried{p}
	case DomainRetention:
		return RetentionCarried{p}
	case DomainExternal:
		return ExternalCarried{p}
	case DomainWindow:
		return WindowCarried{p}
	case DomainLog: // log.pruned repeats what a log needs to know of itself
	}
	return nil
}

// ErrStateTooBig tells that a state cannot be carried: what it was folded from has to stay.
var ErrStateTooBig = errors.New("the state is too big to be carried")

// SplitState compresses an aggregate's state of a form and cuts it into parts, each of which
// fits a commit. Errors: ErrStateTooBig.
func SplitState(form int, state []byte) ([]CarriedPart, error) {
	return splitState(form, state, MaxCarriedState, MaxCarriedParts)
}

func splitState(form int, state []byte, maxState, maxParts int) ([]CarriedPart, error) {
	if len(state) > maxState {
		return nil, ErrStateTooBig
	}
	packed := packer.EncodeAll(state, nil)
	n := (len(packed) + CarriedPartBytes - 1) / CarriedPartBytes // a frame is never empty
	if n > maxParts {
		return nil, ErrStateTooBig
	}
	parts := make([]CarriedPart, 0, n)
	for chunk := range slices.Chunk(packed, CarriedPartBytes) {
		parts = append(parts, CarriedPart{State: form, Part: len(parts) + 1, Parts: n,
			Data: base64.StdEncoding.EncodeToString(chunk)})
	}
	h := sha256.Sum256(packed)
	parts[n-1].Hash = hex.EncodeToString(h[:])
	return parts, nil
}

// CarriedState is a state put together again, and the form it has.
type CarriedState struct {
	Form  int
	State []byte
}

// Gather collects the parts of one aggregate's state from its commits, in their order. It is
// a value: Next gives a new one. The zero Gather has seen nothing.
type Gather struct {
	parts []CarriedPart
	next  uint64 // version that the next part must have
}

// Empty reports whether no part waits for others.
func (g Gather) Empty() bool { return len(g.parts) == 0 }

// Parts are those gathered so far, for whoever has to keep them over a restart, and the
// version that the next one must have.
func (g Gather) Parts() ([]CarriedPart, uint64) { return g.parts, g.next }

// GatherOf is the Gather that Parts told of. What is not a beginning gathers nothing.
func GatherOf(parts []CarriedPart, next uint64) Gather {
	g := Gather{}
	for i, p := range parts {
		if !g.follows(next-uint64(len(parts)-i), p) || p.Part == p.Parts {
			return Gather{}
		}
		g = Gather{parts: append(slices.Clone(g.parts), p), next: next - uint64(len(parts)-i) + 1}
	}
	return g
}

// Next takes the aggregate's next commit. It gives the state when that commit was the last of
// all its parts and they hold what their hash says; a commit that does not follow begins anew.
func (g Gather) Next(c Commit) (Gather, *CarriedState) {
	p, ok := CarriedIn(c)
	if !ok {
		return Gather{}, nil
	}
	if !g.follows(c.Version, p) {
		if g = (Gather{}); !g.follows(c.Version, p) {
			return Gather{}, nil
		}
	}
	if p.Part < p.Parts {
		return Gather{parts: append(slices.Clone(g.parts), p), next: c.Version + 1}, nil
	}
	return Gather{}, join(append(slices.Clone(g.parts), p))
}

// follows reports whether a part at a version is the one that comes next.
func (g Gather) follows(version uint64, p CarriedPart) bool {
	n := len(g.parts)
	if p.Part != n+1 || p.Parts < p.Part || p.Parts > MaxCarriedParts || (p.Hash != "") != (p.Part == p.Parts) ||
		len(p.Data) > base64.StdEncoding.EncodedLen(CarriedPartBytes) || p.Of != 0 && p.Of+uint64(p.Part) != version {
		return false
	}
	return n == 0 || g.next == version && g.parts[0].Parts == p.Parts && g.parts[0].State == p.State && g.parts[0].Of == p.Of
}

// join puts the parts together and checks them; nil: they are not what the hash says.
func join(parts []CarriedPart) *CarriedState {
	var all strings.Builder
	for _, p := range parts {
		b, err := base64.StdEncoding.Strict().DecodeString(p.Data)
		if err != nil {
			return nil
		}
		all.Write(b)
	}
	packed := []byte(all.String())
	h := sha256.Sum256(packed)
	last := parts[len(parts)-1]
	if hex.EncodeToString(h[:]) != last.Hash {
		return nil
	}
	state, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return nil
	}
	return &CarriedState{Form: last.State, State: state}
}

// packer and unpacker are safe for use by several goroutines; each use takes one core.
var (
	packer = func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
		if err != nil {
			panic(fmt.Sprintf("zstd: %v", err))
		}
		return e
	}()
	unpacker = func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxCarriedState))
		if err != nil {
			panic(fmt.Sprintf("zstd: %v", err))
		}
		return d
	}()
)

func (SessionCarried) isEvent()   {}
func (SessionCarried) isSession() {}
func (ProjectCarried) isEvent()   {}
func (AccessCarried) isEvent()    {}
func (RetentionCarried) isEvent() {}
