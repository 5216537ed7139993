package mcp

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/call"
)

// catalogue is tools, set at start-up: tools that describe the catalogue itself would
// otherwise be part of their own initialiser.
var catalogue []Tool

func init() { catalogue = tools }

// Catalogue lists every tool, in the order shown. Callers must not change it.
func Catalogue() []Tool { return catalogue }

// find looks a tool up by name.
func find(list []Tool, name string) (Tool, bool) {
	i := slices.IndexFunc(list, func(t Tool) bool { return t.Spec.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return list[i], true
}

// Annotations are the four hints, all explicit.
type Annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// Annotations of the tool. A read is never destructive and may always be repeated.
func (t Tool) Annotations() Annotations {
	if t.ReadOnly() {
		return Annotations{ReadOnly: true, Idempotent: true, OpenWorld: t.OpenWorld}
	}
	return Annotations{Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld}
}

// Effect is the word of the manifest for what the tool does.
func (t Tool) Effect() string {
	switch t.Spec.Class {
	case call.Observe:
		return "observe"
	case call.Write:
		return "write"
	case call.Execute:
		return "execute"
	default:
		return "mutate"
	}
}

// wire is the tool as tools/list shows it.
func (t Tool) wire() (*sdk.Tool, error) {
	in, err := json.Marshal(t.Input)
	if err != nil {
		return nil, err
	}
	a := t.Annotations()
	return &sdk.Tool{Name: t.Spec.Name, Title: t.shownTitle(), Description: t.Description, InputSchema: json.RawMessage(in),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: a.ReadOnly, DestructiveHint: &a.Destructive,
			IdempotentHint: a.Idempotent, OpenWorldHint: &a.OpenWorld}}, nil
}

// shownTitle is empty where the title only repeats the name: a host makes the same words of it,
// and each byte is in every list (ruling 4).
func (t Tool) shownTitle() string {
	words := slices.DeleteFunc(strings.Fields(strings.ToLower(t.Title)), func(w string) bool { return w == "a" || w == "the" })
	if strings.Join(words, "_") == t.Spec.Name {
		return ""
	}
	return t.Title
}
