package server

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/nats-io/nkeys"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// enrol checks that both keys of an enrolment were proven, and hands it on. The bus has admitted
// the sender by the code's key; what it hands in is checked all the same.
func enrol(do func(event.ClientID, wire.Enrol) wire.EnrolReply) func(event.ClientID, wire.Enrol) wire.EnrolReply {
	return func(c event.ClientID, m wire.Enrol) wire.EnrolReply {
		text := wire.EnrolText(c, m.Code, m.Key)
		if do == nil || m.Code == m.Key || !proven(m.Code, text, m.CodeProof) || !proven(m.Key, text, m.KeyProof) {
			return wire.EnrolReply{Fault: fault.New(fault.EnrolmentInvalid, "the enrolment does not prove its keys")}
		}
		return do(c, m)
	}
}

func proven(public string, text, proof []byte) bool {
	if !nkeys.IsValidPublicUserKey(public) {
		return false
	}
	key, err := nkeys.FromPublicKey(public)
	return err == nil && key.Verify(text, proof) == nil
}

// NewCode makes the key of an enrolment code: its seed, which goes into the code alone, and its
// public part as nkeys write one.
func NewCode() (seed [ed25519.SeedSize]byte, public string, err error) {
	rand.Read(seed[:])
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, seed[:])
	if err != nil {
		return seed, "", fmt.Errorf("make a code: %w", err)
	}
	public, err = key.PublicKey()
	return seed, public, err
}
