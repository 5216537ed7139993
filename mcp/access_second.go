package mcp

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/access"
)

// Second is where the principals besides the owner come from. All members are required.
type Second struct {
	Tokens *access.Tokens
	// Intact is nil while the record of the tokens can be trusted. Where its chain is broken, a
	// revocation may be what is missing: then nobody but the owner comes in.
	Intact func() error
	// Now is the server's clock, by which tokens expire.
	Now func() time.Time
}

// Admit lets second principals in, from the next request on. It is called before the server
// answers anybody.
func (a *Access) Admit(s Second) { a.second = &s }

// grant is a caller that was let in, and by which credential.
type grant struct {
	principal call.Principal
	// token and hash name the credential; both are empty for the owner.
	token event.TokenID
	hash  string
}

// authenticate gives the caller that a presented token stands for. The owner's token is always
// compared, and the others by their hashes: the time tells nothing about any of them.
func (a *Access) authenticate(presented string) (grant, bool) {
	if a.check(presented) {
		return grant{principal: a.principal}, true
	}
	hash := access.HashToken(presented)
	if a.second == nil || !access.IsToken(presented) {
		return grant{}, false
	}
	k, ok := a.second.Tokens.Find(hash)
	if !ok || !a.good(k) {
		return grant{}, false
	}
	return grant{principal: principalOf(k), token: k.ID, hash: hash}, true
}

// holds reports whether a grant would be given again now.
func (a *Access) holds(g grant) bool {
	if g.token == "" {
		return true
	}
	k, ok := a.second.Tokens.Find(g.hash)
	return ok && k.ID == g.token && a.good(k)
}

func (a *Access) good(k access.Token) bool {
	return k.Status(a.second.Now()) == access.StatusActive && a.second.Intact() == nil
}

// principalOf is the caller that a token stands for. Nothing of it is taken from the request.
func principalOf(k access.Token) call.Principal {
	p := call.Principal{Actor: event.Actor{Authority: k.Authority, Principal: k.Principal, Credential: string(k.Kind)},
		Scopes: make(map[call.Scope]bool, len(k.Scopes))}
	for _, s := range k.Scopes {
		if call.Scope(s).Valid() {
			p.Scopes[call.Scope(s)] = true
		}
	}
	if !k.AllProjects {
		p.Only = call.NewProjectSet(k.Projects)
	}
	return p
}

// bearer reads the token of a request: one header of the scheme, and nothing but one word after
// it. What it gives need not be a token.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "" && !strings.ContainsAny(token, " \t,")
}

// credentialKeys are query members that hosts and people use for tokens.
var credentialKeys = []string{"token", "access_token", "api_key", "apikey", "key", "auth", "authorization", "bearer", "password"}

// tokenInURL looks for what may be a token: ours by its form, whoever holds it, others by the
// name they are given.
func tokenInURL(u *url.URL) bool {
	if u.User != nil || access.HoldsToken(u.Path) || access.HoldsToken(u.RawQuery) {
		return true
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return true
	}
	for k, vs := range q {
		for _, name := range credentialKeys {
			if strings.EqualFold(k, name) {
				return true
			}
		}
		for _, v := range append(vs, k) {
			if access.HoldsToken(v) {
				return true
			}
		}
	}
	return false
}
