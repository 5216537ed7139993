package wire

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// VerbEnrol is that of an enrolment; its subject is EnrolSubject.
const VerbEnrol Verb = "enrol"

// EnrolSubject is where the holder of a code hands in the Runner's key.
func EnrolSubject(c event.ClientID) string { return "wc.enrol." + string(c) }

// InboxPrefix is the beginning of the subjects on which a Runner gets its answers.
func InboxPrefix(c event.ClientID) string { return "_INBOX_" + string(c) }

// EnrolInbox is that of who enrols. No Runner's begins so.
func EnrolInbox(c event.ClientID) string { return "_ENROL_" + string(c) }

// Enrol asks for the Runner's own key to take the place of the code. Both prove themselves by
// signing EnrolText.
type Enrol struct {
	Protocol  int    `json:"protocol"`
	Build     string `json:"build"`
	Code      string `json:"code"` // public key of the code, as nkeys write one
	Key       string `json:"key"`  // public key of the Runner
	CodeProof []byte `json:"code_proof"`
	KeyProof  []byte `json:"key_proof"`
}

// EnrolText is what both keys of an enrolment sign.
func EnrolText(c event.ClientID, code, key string) []byte {
	return []byte("webcodex.enrol.v1\x00" + string(c) + "\x00" + code + "\x00" + key)
}

// EnrolReply tells that the key was taken, or why not. It is signed like every answer.
type EnrolReply struct {
	OK    bool         `json:"ok"`
	Fault *fault.Error `json:"fault,omitempty"`
}

// Code is an enrolment code: all that a Runner needs to find its server and to know it again.
// It is a secret until it is spent.
type Code struct {
	Client event.ClientID
	// Seed of the code's key; only its public part is kept by the server.
	Seed [ed25519.SeedSize]byte
	// Server is the key that signs what the server sends.
	Server ed25519.PublicKey
	// Pin is the SHA-256 of the public key in the server's certificate; empty: the certificate is
	// one that the Runner's machine trusts.
	Pin []byte
	// URL of the server; empty: the Runner's operator names it.
	URL string
}

// CodePrefix of a written enrolment code.
const CodePrefix = "wcr1_"

const (
	maxCodeURL = 200
	codeSum    = 4
)

// String writes the code.
func (c Code) String() string {
	var b bytes.Buffer
	for _, part := range [][]byte{[]byte(c.Client), c.Seed[:], c.Server, c.Pin, []byte(c.URL)} {
		b.WriteByte(byte(len(part)))
		b.Write(part)
	}
	sum := sha256.Sum256(b.Bytes())
	b.Write(sum[:codeSum])
	return CodePrefix + base64.RawURLEncoding.EncodeToString(b.Bytes())
}

// ParseCode reads a written code. Error: enrolment_code_invalid where it is none, or a piece of
// one.
func ParseCode(s string) (Code, error) {
	bad := fault.New(fault.EnrolmentInvalid, "this is no enrolment code, or a part of it is missing").
		WithNext("copy the whole code that `webcodex token create --kind runner` printed")
	text, ok := strings.CutPrefix(strings.TrimSpace(s), CodePrefix)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(b) < codeSum {
		return Code{}, bad
	}
	b, tail := b[:len(b)-codeSum], b[len(b)-codeSum:]
	if sum := sha256.Sum256(b); !bytes.Equal(sum[:codeSum], tail) {
		return Code{}, bad
	}
	var parts [5][]byte
	for i := range parts {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return Code{}, bad
		}
		parts[i], b = b[1:1+int(b[0])], b[1+int(b[0]):]
	}
	c := Code{Client: event.ClientID(parts[0]), Server: parts[2], Pin: parts[3], URL: string(parts[4])}
	if len(b) != 0 || !c.Client.Valid() || copy(c.Seed[:], parts[1]) != len(c.Seed) || len(parts[1]) != len(c.Seed) ||
		len(c.Server) != ed25519.PublicKeySize || len(c.Pin) != 0 && len(c.Pin) != sha256.Size || len(c.URL) > maxCodeURL {
		return Code{}, bad
	}
	return c, nil
}
