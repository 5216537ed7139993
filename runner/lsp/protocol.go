package lsp

import (
	"bytes"
	"encoding/json"
)

// The part of the protocol's types that is read. Members as the specification (3.17) names them.

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type textRange struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string    `json:"uri"`
	Range textRange `json:"range"`
	// Of a LocationLink.
	TargetURI   string     `json:"targetUri"`
	TargetRange *textRange `json:"targetSelectionRange"`
}

func (l location) at() (string, textRange) {
	if l.TargetURI != "" && l.TargetRange != nil {
		return l.TargetURI, *l.TargetRange
	}
	return l.URI, l.Range
}

type documentID struct {
	URI string `json:"uri"`
}

type place struct {
	Document documentID `json:"textDocument"`
	Position position   `json:"position"`
}

// symbol is a DocumentSymbol, a SymbolInformation or a WorkspaceSymbol.
type symbol struct {
	Name           string     `json:"name"`
	Detail         string     `json:"detail"`
	Kind           int        `json:"kind"`
	Container      string     `json:"containerName"`
	SelectionRange *textRange `json:"selectionRange"`
	Range          *textRange `json:"range"`
	Children       []symbol   `json:"children"`
	Location       *location  `json:"location"`
}

type hover struct {
	Contents json.RawMessage `json:"contents"`
	Range    *textRange      `json:"range"`
}

type diagnostic struct {
	Range    textRange       `json:"range"`
	Severity int             `json:"severity"`
	Code     json.RawMessage `json:"code"`
	Source   string          `json:"source"`
	Message  string          `json:"message"`
}

type published struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type pulled struct {
	Kind  string       `json:"kind"`
	Items []diagnostic `json:"items"`
}

// callItem keeps the raw form beside what is read: it is given back to the server as it came.
type callItem struct {
	Name           string    `json:"name"`
	Kind           int       `json:"kind"`
	Detail         string    `json:"detail"`
	URI            string    `json:"uri"`
	SelectionRange textRange `json:"selectionRange"`
	raw            json.RawMessage
}

// UnmarshalJSON reads an item and keeps its raw form.
func (c *callItem) UnmarshalJSON(b []byte) error {
	type plain callItem
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return err
	}
	c.raw = bytes.Clone(b)
	return nil
}

type callEdge struct {
	From   *callItem   `json:"from"`
	To     *callItem   `json:"to"`
	Ranges []textRange `json:"fromRanges"`
}

type capabilities struct {
	Encoding    string          `json:"positionEncoding"`
	Symbols     json.RawMessage `json:"documentSymbolProvider"`
	Workspace   json.RawMessage `json:"workspaceSymbolProvider"`
	Definition  json.RawMessage `json:"definitionProvider"`
	References  json.RawMessage `json:"referencesProvider"`
	Hover       json.RawMessage `json:"hoverProvider"`
	Hierarchy   json.RawMessage `json:"callHierarchyProvider"`
	Diagnostics json.RawMessage `json:"diagnosticProvider"`
}

// has reports that a capability is there: true, or an object.
func has(raw json.RawMessage) bool {
	s := string(bytes.TrimSpace(raw))
	return s != "" && s != "false" && s != "null"
}

type initialized struct {
	Capabilities capabilities `json:"capabilities"`
	Server       struct {
		Version string `json:"version"`
	} `json:"serverInfo"`
}

// shortVersion is a version for people; gopls gives the whole of its build.
func shortVersion(v string) string {
	var build struct {
		Main struct {
			Version string `json:"Version"`
		} `json:"Main"`
	}
	if json.Unmarshal([]byte(v), &build) == nil && build.Main.Version != "" {
		v = build.Main.Version
	}
	return clip(v, maxVersion)
}

var symbolKinds = []string{"unknown", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor",
	"enum", "interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null",
	"enum_member", "struct", "event", "operator", "type_parameter"}

func kindName(k int) string {
	if k < 0 || k >= len(symbolKinds) {
		k = 0
	}
	return symbolKinds[k]
}

var severities = []string{"error", "error", "warning", "information", "hint"}

func severityName(s int) string {
	if s < 0 || s >= len(severities) {
		s = 0
	}
	return severities[s]
}
