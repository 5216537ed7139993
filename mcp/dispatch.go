package mcp

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// serve sends one authorised request to the handler of its era. Order matters: the version
// comes before the session id, since a modern client behind an old cookie jar or gateway may
// carry a stray session id.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, g grant) {
	r.Header.Del(exchangeHeader)
	version := r.Header.Get("Mcp-Protocol-Version")
	session := r.Header.Get("Mcp-Session-Id")
	if r.Method != http.MethodPost {
		s.serveOther(w, r, g, version, session)
		return
	}
	f, ok := readFrame(w, r)
	if !ok || !s.checkVersion(w, version, f) {
		return
	}
	// Clients that leave a type out read the answer all the same.
	r.Header.Set("Accept", "application/json, text/event-stream")
	if strings.TrimSpace(r.Header.Get("Content-Type")) == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	decodeName(r.Header)
	modern := version >= Modern || f.metaVersion >= Modern
	if done := s.unknownMethod(w, f, modern); done {
		return
	}
	if !modern && session != "" && !s.legacy.mine(session, g) {
		sessionNotFound(w)
		return
	}
	if f.method == listenMethod {
		var done func()
		r, done = s.live.open(r, g)
		defer done()
	}
	e := s.exchanges.open(w, r, modern, g)
	defer s.exchanges.close(e)
	w.Header().Set("X-Accel-Buffering", "no")
	switch {
	case modern:
		s.stateless.ServeHTTP(e.w, r)
	case session != "" || f.method == "initialize":
		s.stateful.ServeHTTP(e.w, r)
	default:
		s.stateless.ServeHTTP(e.w, r)
	}
}

// decodeName undoes the spelling of names that a header cannot carry; the SDK compares the
// header with the message as it stands.
func decodeName(h http.Header) {
	rest, ok := strings.CutPrefix(h.Get("Mcp-Name"), encodedPrefix)
	if rest, tail := strings.CutSuffix(rest, encodedSuffix); ok && tail {
		if name, err := base64.StdEncoding.DecodeString(rest); err == nil {
			h.Set("Mcp-Name", string(name))
		}
	}
}

// The marks of an encoded header value (SEP-2243).
const encodedPrefix, encodedSuffix = "=?base64?", "?="

// serveOther answers GET and DELETE: both belong to sessions of the legacy eras.
func (s *Server) serveOther(w http.ResponseWriter, r *http.Request, g grant, version, session string) {
	if version >= Modern || session == "" || r.Method != http.MethodGet && r.Method != http.MethodDelete {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "send one JSON-RPC message by POST")
		return
	}
	if !s.checkVersion(w, version, frame{}) {
		return
	}
	if !s.legacy.mine(session, g) {
		sessionNotFound(w)
		return
	}
	if r.Method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
		var done func()
		r, done = s.live.open(r, g)
		defer done()
	}
	w.Header().Set("X-Accel-Buffering", "no")
	sw := newStreamWriter(w, writeDeadline)
	defer sw.end()
	s.stateful.ServeHTTP(sw, r)
}

// listenMethod is the modern era's call on which the server speaks until its end.
const listenMethod = "subscriptions/listen"

// sessionNotFound answers for a session that does not exist and for one of somebody else, in
// the words of the SDK: hosts open another one.
func sessionNotFound(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) }

// checkVersion refuses a version header outside of what is served. A header that is served
// but differs from the message is told by the SDK.
func (s *Server) checkVersion(w http.ResponseWriter, version string, f frame) bool {
	switch {
	case version == "" || slices.Contains(versions, version):
		return true
	case f.metaVersion != "" && f.metaVersion != version:
		rpcError(w, http.StatusBadRequest, f.id, codeHeaderMismatch,
			"the MCP-Protocol-Version header and the version in the message differ", nil)
	default:
		rpcError(w, http.StatusBadRequest, f.id, codeUnsupportedVers, "this protocol version is not served",
			map[string]any{"supported": versions, "requested": cut(version, maxIDBytes)})
	}
	return false
}

// unknownMethod answers methods that the SDK would answer with plain text or not at all: a
// call gets -32601, a notification of a later revision is accepted and ignored.
func (s *Server) unknownMethod(w http.ResponseWriter, f frame, modern bool) bool {
	if f.method == "" || s.known[f.method] {
		return false
	}
	if !f.call() {
		w.WriteHeader(http.StatusAccepted)
		return true
	}
	if modern {
		return false // the SDK checks _meta first and then answers 404 with -32601
	}
	rpcError(w, http.StatusOK, f.id, codeMethodNotFound, "this method does not exist here", nil)
	return true
}

// knownMethods are those that the SDK's server handles.
func knownMethods() map[string]bool {
	known := map[string]bool{}
	for _, m := range []string{"completion/complete", "server/discover", "initialize", "ping", "prompts/list", "prompts/get",
		"tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read", "logging/setLevel",
		"resources/subscribe", listenMethod, "resources/unsubscribe", "notifications/cancelled",
		"notifications/initialized", "notifications/roots/list_changed", "notifications/progress"} {
		known[m] = true
	}
	return known
}

// cut shortens a text of the caller to n bytes at most, at a character border.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
