package server

import (
	"crypto/ed25519"
	"encoding/base64"

	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// Seal says what of the server's messages is signed. The zero value signs nothing.
type Seal struct {
	Key ed25519.PrivateKey
	// Local is the client id of the Runner in this process: nobody stands between it and us, so
	// nothing is signed for it (decision 27).
	Local event.ClientID
}

func (s Seal) on(c event.ClientID) bool { return s.Key != nil && c != s.Local }

// request makes the message that asks a client.
func (s Seal) request(c event.ClientID, v wire.Verb, body []byte) *nats.Msg {
	m := &nats.Msg{Subject: wire.Subject(c, v), Data: body}
	if s.on(c) {
		m.Header = header(wire.SignRequest(s.Key, c, v, body))
	}
	return m
}

// reply makes the message that answers one.
func (s Seal) reply(c event.ClientID, v wire.Verb, to *nats.Msg, body []byte) *nats.Msg {
	m := &nats.Msg{Subject: to.Reply, Data: body}
	if s.on(c) {
		m.Header = header(wire.SignReply(s.Key, c, v, to.Data, body))
	}
	return m
}

func header(sig []byte) nats.Header {
	return nats.Header{wire.SignatureHeader: []string{base64.RawURLEncoding.EncodeToString(sig)}}
}
