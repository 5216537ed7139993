package mcp

import (
	"encoding/json"
	"net/http"
)

// Handler serves TCP: Host, Origin, preflight, token, body, in this order.
func (s *Server) Handler() http.Handler { return s.edge(true) }

// SocketHandler serves the unix socket of the data directory, behind a PeerListener: no
// page of a browser gets there, so Host is free and any Origin is refused. The token is
// asked for all the same: there is no open mode.
func (s *Server) SocketHandler() http.Handler { return s.edge(false) }

func (s *Server) edge(tcp bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if tcp && !s.hosts.host(r) {
			refuse(w, http.StatusForbidden, "forbidden_host", "this Host is not served here; a tunnel's name is given with --public-url")
			return
		}
		if tcp && !s.hosts.origin(r) || !tcp && r.Header.Get("Origin") != "" {
			refuse(w, http.StatusForbidden, "forbidden_origin", "pages of this Origin may not call this server")
			return
		}
		if allowOrigin(w, r) && r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight(w)
			return
		}
		g, ok := s.authorised(w, r)
		if !ok {
			return
		}
		if r.URL.Path != "/mcp" {
			refuse(w, http.StatusNotFound, "not_found", "MCP is served at /mcp")
			return
		}
		defer s.answering.enter(r)()
		s.serve(w, r, g)
	})
}

// authorised lets a caller in by the bearer token, or answers 401. A token in the URL is
// refused even when the header is right: URLs end in logs and histories. The answer is the
// same for a token that never was, one that was revoked and one that expired.
func (s *Server) authorised(w http.ResponseWriter, r *http.Request) (grant, bool) {
	challenge := `Bearer realm="webcodex"`
	token, ok := bearer(r.Header)
	g := grant{}
	if ok {
		g, ok = s.cfg.Access.authenticate(token)
	}
	if len(r.Header.Values("Authorization")) > 0 {
		challenge += `, error="invalid_token"`
	}
	if tokenInURL(r.URL) {
		ok, challenge = false, `Bearer realm="webcodex", error="invalid_token", error_description="no token in a URL"`
	}
	if ok {
		return g, true
	}
	w.Header().Set("WWW-Authenticate", challenge)
	hangUp(w)
	writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
	return grant{}, false
}

const (
	allowHeaders = "Authorization, Content-Type, Accept, Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID"
	allowMethods = "GET, POST, DELETE, OPTIONS"
)

// allowOrigin adds what a permitted page needs to read answers; false without an Origin.
func allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	o := r.Header.Get("Origin")
	if o == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", o)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	return true
}

func preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", allowMethods)
	h.Set("Access-Control-Allow-Headers", allowHeaders)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// hangUp ends the connection after the answer. Otherwise the server would first read the
// body that it has no interest in, at the caller's pace.
func hangUp(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

func refuse(w http.ResponseWriter, status int, kind, sentence string) {
	hangUp(w)
	writeJSON(w, status, map[string]string{"error": kind, "error_description": sentence})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
