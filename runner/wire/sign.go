package wire

import (
	"crypto/ed25519"
	"crypto/sha256"

	"webcodex/eventlog/event"
)

// linkDomain keeps these signatures apart from every other use of the server's key.
const linkDomain = "webcodex.runner-link.v1"

// SignatureHeader is the message header with the server's signature, raw base64url.
const SignatureHeader = "Wc-Sig"

// SignRequest signs what the server asks of one client. The body names the id and the Runner's
// instance (Offer, Fence), so the signature binds them.
func SignRequest(key ed25519.PrivateKey, c event.ClientID, v Verb, body []byte) []byte {
	return ed25519.Sign(key, signed(c, v, nil, body))
}

// VerifyRequest reports that the key's holder asked exactly this of this client.
func VerifyRequest(key ed25519.PublicKey, c event.ClientID, v Verb, body, sig []byte) bool {
	return len(sig) == ed25519.SignatureSize && ed25519.Verify(key, signed(c, v, nil, body), sig)
}

// SignReply signs the server's answer to one request of a client. The request names id, instance
// and a nonce (Claim), so an answer to another one fits nothing.
func SignReply(key ed25519.PrivateKey, c event.ClientID, v Verb, request, reply []byte) []byte {
	return ed25519.Sign(key, signed(c, v, request, reply))
}

// VerifyReply reports that the key's holder answered exactly this to exactly this request.
func VerifyReply(key ed25519.PublicKey, c event.ClientID, v Verb, request, reply, sig []byte) bool {
	return len(sig) == ed25519.SignatureSize && ed25519.Verify(key, signed(c, v, request, reply), sig)
}

// signed is the text under a signature. Client ids and verbs hold no zero byte, and the hashes
// have one length: no two messages give the same text. A body of 1 MiB is hashed once.
func signed(c event.ClientID, v Verb, request, body []byte) []byte {
	b := make([]byte, 0, 192)
	b = append(b, linkDomain...)
	b = append(b, 0)
	b = append(b, c...)
	b = append(b, 0)
	b = append(b, v...)
	b = append(b, 0)
	kind := byte(0)
	if request != nil {
		kind = 1
	}
	b = append(b, kind)
	of, what := sha256.Sum256(request), sha256.Sum256(body)
	return append(append(b, of[:]...), what[:]...)
}
