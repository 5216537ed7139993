package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// WriteIn is the input of write_project_file.
type WriteIn struct {
	Project        string  `json:"project"`
	SessionID      string  `json:"session_id,omitempty"`
	Path           string  `json:"path"`
	Content        string  `json:"content"`
	Overwrite      bool    `json:"overwrite,omitempty"`
	ExpectedSHA256 string  `json:"expected_sha256,omitempty"`
	ExpectedPrefix *string `json:"expected_content_prefix,omitempty"`
}

// Write writes a whole file.
var Write = call.Spec{
	Name: "write_project_file", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: WriteIn{}, Evidence: writeEvidence, Run: write,
}

func writeEvidence(args json.RawMessage) event.Input {
	var in WriteIn
	_ = json.Unmarshal(args, &in)
	e := onePath(in.Path)
	e.ChangeCount = 1
	return e
}

func write(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[WriteIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, facts, err := change(ctx, c, wire.OpWriteFile, wire.WriteFileIn{Path: in.Path, Content: in.Content, Overwrite: in.Overwrite,
		ExpectedSHA256: in.ExpectedSHA256, ExpectedPrefix: in.ExpectedPrefix}, func(o wire.WriteFileOut) []string {
		if o.Changed {
			return []string{o.Path}
		}
		return nil
	})
	if err != nil {
		return call.Result{Facts: facts}, err
	}
	return call.Result{Output: out, Facts: facts}, nil
}
