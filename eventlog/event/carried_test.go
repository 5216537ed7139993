package event

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// noise is bytes that do not compress.
func noise(seed uint64, n int) []byte {
	out := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	_, _ = r.Read(out)
	return out
}

func partCommit(version uint64, p CarriedPart) Commit {
	return Commit{Format: Format, ID: "wc_cmd_00000000000000000000000000000001", Version: version,
		Prev: Hash(nil), Aggregate: SessionAggregate("wc_sess_00000000000000000000000000000001"),
		At: time.Unix(0, 0).UTC(), Actor: Actor{Authority: Hash(nil), Principal: Hash(nil), Credential: "system"},
		Server: "wc_inst_00000000000000000000000000000001", Events: []Event{SessionCarried{p}}}
}

func gather(commits []Commit) *CarriedState {
	var g Gather
	var got *CarriedState
	for _, c := range commits {
		var s *CarriedState
		if g, s = g.Next(c); s != nil {
			got = s
		}
	}
	return got
}

func commitsOf(from uint64, parts []CarriedPart) []Commit {
	out := make([]Commit, len(parts))
	for i, p := range parts {
		out[i] = partCommit(from+uint64(i), p)
	}
	return out
}

// A state of any size comes back from its parts, each of which is a commit that the log takes,
// also when the gathering was interrupted by a restart.
//
// Covers: RES-19
func TestStateInPartsComesBack(t *testing.T) {
	for _, n := range []int{0, 1, CarriedPartBytes, CarriedPartBytes + 1, 3*CarriedPartBytes + 7} {
		state := noise(uint64(n), n)
		parts, err := SplitState(3, state)
		if err != nil {
			t.Fatal(err)
		}
		var g Gather
		for i, c := range commitsOf(40, parts) {
			body, err := c.Encode()
			if err != nil || len(body) > MaxCommitBytes {
				t.Fatalf("a part of %d bytes: %v", len(body), err)
			}
			if c, err = Decode(body); err != nil {
				t.Fatal(err)
			}
			g = GatherOf(g.Parts()) // as a restart between the parts would
			var got *CarriedState
			g, got = g.Next(c)
			if last := i == len(parts)-1; last != (got != nil) {
				t.Fatalf("part %d of %d counts: %v", i+1, len(parts), got != nil)
			}
			if got != nil && (got.Form != 3 || !bytes.Equal(got.State, state)) {
				t.Fatal("another state came back")
			}
		}
	}
	if _, err := SplitState(1, make([]byte, MaxCarriedState+1)); !errors.Is(err, ErrStateTooBig) {
		t.Fatal("a state beyond the bound was split")
	}
	if _, err := splitState(1, noise(1, 2*CarriedPartBytes+1), MaxCarriedState, 2); !errors.Is(err, ErrStateTooBig) {
		t.Fatal("a state of too many parts was split")
	}
}

// Parts that are missing, doubled, reordered, changed, of two states, or with another commit
// between them never give a state, unless all of one state stand there in a row.
func TestBrokenPartsNeverRestore(t *testing.T) {
	pool := map[uint64][]CarriedPart{}
	for _, seed := range []uint64{1, 2} {
		parts, err := SplitState(1, noise(seed, 3*CarriedPartBytes+int(seed)))
		if err != nil {
			t.Fatal(err)
		}
		pool[seed] = parts
	}
	rapid.Check(t, func(t *rapid.T) {
		var commits []Commit
		version := uint64(rapid.IntRange(1, 9).Draw(t, "first"))
		var run []CarriedPart // of seed 1, in a row and whole
		whole := false
		for range rapid.IntRange(1, 12).Draw(t, "commits") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0: // a commit of something else
				commits = append(commits, Commit{Version: version, Events: []Event{SessionClosed{}}})
				run = nil
			case 1: // a part damaged in one character
				p := rapid.SampledFrom(pool[1]).Draw(t, "part")
				i := rapid.IntRange(0, len(p.Data)-5).Draw(t, "at")
				c := byte('A')
				if p.Data[i] == c {
					c = 'B'
				}
				p.Data = p.Data[:i] + string(c) + p.Data[i+1:]
				commits = append(commits, partCommit(version, p))
				run = nil
			case 2: // a part of another state
				commits = append(commits, partCommit(version, rapid.SampledFrom(pool[2][:3]).Draw(t, "part")))
				run = nil
			case 3: // a version is missing before it
				version++
				run = nil
				fallthrough
			default:
				i := rapid.IntRange(0, 3).Draw(t, "part")
				if len(run) < 4 && rapid.IntRange(0, 3).Draw(t, "follow") > 0 {
					i = len(run)
				}
				p := pool[1][i]
				if p.Part == len(run)+1 {
					run = append(run, p)
				} else if run = nil; p.Part == 1 {
					run = append(run, p)
				}
				whole = whole || len(run) == 4
				if len(run) == 4 {
					run = nil
				}
				commits = append(commits, partCommit(version, p))
			}
			version++
		}
		if got := gather(commits) != nil; got != whole {
			t.Fatalf("restored: %v, all parts in a row: %v", got, whole)
		}
	})
}

// Whatever the parts hold, gathering ends, keeps its bounds and gives nothing that was not
// put in.
func FuzzGather(f *testing.F) {
	parts, err := SplitState(2, []byte("a state"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(parts[0].Data, parts[0].Hash, 1, 1, 2)
	f.Add("", "", 1, 2, 2)
	f.Add("KLUv/QQA", "00", 2, 2, 2)
	f.Add("(garbage)", "", -1, 1<<40, -7)
	f.Fuzz(func(t *testing.T, data, hash string, part, of, form int) {
		g := Gather{}
		for v := range uint64(3) {
			var s *CarriedState
			g, s = g.Next(partCommit(v+1, CarriedPart{State: form, Part: part, Parts: of, Data: data, Hash: hash}))
			if s != nil && (part != 1 || of != 1) {
				t.Fatal("one part of several was enough")
			}
			if s != nil {
				again, err := SplitState(form, s.State)
				if err != nil || len(s.State) > MaxCarriedState {
					t.Fatalf("a state of %d bytes came back: %v", len(s.State), err)
				}
				if got := gather(commitsOf(1, again)); got == nil || !bytes.Equal(got.State, s.State) {
					t.Fatal("what came back does not go in again")
				}
			}
			if kept, _ := g.Parts(); len(kept) > MaxCarriedParts {
				t.Fatal("too many parts are held")
			}
		}
	})
}

// A small piece of data that unfolds into more than the bound is refused before it does.
func TestUnfoldingIsBounded(t *testing.T) {
	packed := packer.EncodeAll(make([]byte, MaxCarriedState+1), nil)
	if len(packed) > CarriedPartBytes {
		t.Fatalf("%d bytes are no small piece", len(packed))
	}
	p := CarriedPart{State: 1, Part: 1, Parts: 1, Data: base64.StdEncoding.EncodeToString(packed), Hash: Hash(packed)}
	if gather([]Commit{partCommit(1, p)}) != nil {
		t.Fatal("it was unfolded")
	}
	p.Data = base64.StdEncoding.EncodeToString(packer.EncodeAll([]byte("x"), nil))
	if gather([]Commit{partCommit(1, p)}) != nil {
		t.Fatal("the hash of something else was taken")
	}
}

func TestCarriedEventOfEachDomain(t *testing.T) {
	p := CarriedPart{Part: 1, Parts: 1}
	for _, d := range []Domain{DomainSession, DomainProject, DomainAccess, DomainRetention} {
		e := CarriedEvent(d, p)
		if got, ok := Carried(e); !ok || got != p {
			t.Errorf("%s carries %v", d, got)
		}
		name, _ := NameOf(e)
		if !slices.Contains(Names(), name) || name != string(d)+".carried" {
			t.Errorf("%s is stored as %q", d, name)
		}
	}
	if CarriedEvent(DomainLog, p) != nil {
		t.Error("the log carries itself")
	}
}
