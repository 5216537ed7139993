package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"webcodex/mcp/schema"
)

// JSON-RPC error codes that the edge itself answers with.
const (
	codeParse           = -32700
	codeInvalidRequest  = -32600
	codeMethodNotFound  = -32601
	codeInvalidParams   = -32602
	codeInternal        = -32603
	codeHeaderMismatch  = -32020
	codeUnsupportedVers = -32022
)

// frame is what the dispatcher must know of a message before it reaches the SDK.
type frame struct {
	body        []byte
	id          json.RawMessage // nil for a notification or a response
	method      string          // empty for a response
	metaVersion string          // _meta protocolVersion; empty in the legacy eras
}

const metaVersionKey = "io.modelcontextprotocol/protocolVersion"

// readFrame reads and checks the body of a POST; it has answered where ok is false.
func readFrame(w http.ResponseWriter, r *http.Request) (f frame, ok bool) {
	// A client that sends its body a byte a minute must not hold the connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(writeDeadline))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		var large *http.MaxBytesError
		hangUp(w)
		if errors.As(err, &large) {
			rpcError(w, http.StatusRequestEntityTooLarge, nil, codeInvalidRequest, "the request body is larger than 4 MiB", nil)
			return f, false
		}
		rpcError(w, http.StatusBadRequest, nil, codeParse, "the request body could not be read", nil)
		return f, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	f.body = bytes.TrimSpace(body)
	code, sentence := f.parse()
	if code != 0 {
		rpcError(w, http.StatusBadRequest, f.id, code, sentence, nil)
		return f, false
	}
	r.Body = io.NopCloser(bytes.NewReader(f.body))
	r.ContentLength = int64(len(f.body))
	return f, true
}

// parse checks the outer form: one JSON-RPC message, not too deep, with an id that can be
// repeated exactly. It gives an error code and a sentence, or 0.
func (f *frame) parse() (int, string) {
	switch {
	case len(f.body) == 0:
		return codeInvalidRequest, "the request body is empty"
	case f.body[0] == '[':
		return codeInvalidRequest, "batches are not supported; send one message a request"
	case schema.Depth(f.body) > schema.MaxDepth:
		return codeInvalidRequest, "the message is nested deeper than 64 levels"
	case !utf8.Valid(f.body) || !json.Valid(f.body):
		return codeParse, "the message is not valid JSON"
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(f.body, &m); err != nil {
		return codeInvalidRequest, "the message is not a JSON-RPC object"
	}
	if id, given := m["id"]; given {
		if !validID(id) {
			return codeInvalidRequest, "the id must be a string or an integer"
		}
		f.id = id
	}
	if raw, given := m["method"]; given {
		if err := json.Unmarshal(raw, &f.method); err != nil || f.method == "" {
			return codeInvalidRequest, "the method must be a string"
		}
	}
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if len(m["params"]) > 0 && json.Unmarshal(m["params"], &p) == nil {
		_ = json.Unmarshal(p.Meta[metaVersionKey], &f.metaVersion)
	}
	return 0, ""
}

// validID allows what every client can match again: decoders round fractions and large
// exponents, and an answer under another id is never found.
func validID(id json.RawMessage) bool {
	if len(id) > maxIDBytes {
		return false
	}
	if id[0] == '"' {
		return true
	}
	digits := strings.TrimPrefix(string(id), "-")
	return digits != "" && len(digits) < 16 && strings.Trim(digits, "0123456789") == ""
}

// call reports whether the message wants an answer.
func (f frame) call() bool { return f.method != "" && f.id != nil }

// rpcError answers with one JSON-RPC error outside of any stream.
func rpcError(w http.ResponseWriter, status int, id json.RawMessage, code int, sentence string, data any) {
	writeJSON(w, status, rpcErrorBody(id, code, sentence, data))
}

type rpcFailure struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   rpcErrorObject  `json:"error"`
}

type rpcErrorObject struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func rpcErrorBody(id json.RawMessage, code int, sentence string, data any) rpcFailure {
	if id == nil {
		id = json.RawMessage("null")
	}
	return rpcFailure{"2.0", id, rpcErrorObject{code, sentence, data}}
}
