package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/call"
	"webcodex/internal/fault"
)

// envelope is the structured half of every result (shapes.md 3).
type envelope struct {
	Success bool            `json:"success"`
	Output  json.RawMessage `json:"output"`
	Error   string          `json:"error,omitempty"`
}

// answer is a call that worked, whatever its result says (ruling 9). Text and structure
// hold the same: hosts disagree about which half a model sees.
func answer(resp call.Response) *sdk.CallToolResult {
	body, err := compact(envelope{resp.Success, resp.Output, resp.Error})
	if err != nil {
		return refusal(fault.Wrap(err, fault.Internal, "the result could not be encoded"))
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(body)}}, StructuredContent: body}
}

// refusal is a call that was refused, failed inside or has an unknown outcome. The text
// alone suffices: some hosts drop the structure of errors.
func refusal(err error) *sdk.CallToolResult {
	f := fault.As(err)
	body, merr := refusalBody(f)
	if merr != nil {
		f = fault.New(fault.Internal, "the refusal could not be encoded")
		body, _ = refusalBody(f)
	}
	var text strings.Builder
	text.WriteString("error_kind: " + string(f.Kind) + "\n" + f.Message + "\n")
	if next := nextStep(f); next != "" {
		text.WriteString("next: " + next)
	}
	return &sdk.CallToolResult{IsError: true, StructuredContent: body,
		Content: []sdk.Content{&sdk.TextContent{Text: strings.TrimRight(text.String(), "\n")}}}
}

// refusalBody is the envelope of a refusal; members of the shape win over a tool's details.
func refusalBody(f *fault.Error) (json.RawMessage, error) {
	out := map[string]any{}
	for k, v := range f.Details {
		out[k] = v
	}
	out["error_kind"] = f.Kind
	out["recovery_kind"] = f.Recovery
	if f.Recovery == "" {
		out["recovery_kind"] = fault.None
	}
	out["state_changed"] = f.StateChanged
	out["command_started"] = f.CommandStarted
	for name, v := range map[string]string{"failure_kind": f.FailureKind, "execution_state": f.ExecutionState,
		"field": f.Field, "reason_code": f.Reason} {
		if v != "" {
			out[name] = v
		}
	}
	enc, err := compact(out)
	if err != nil {
		return nil, err
	}
	return compact(envelope{false, enc, f.Message})
}

// nextStep is one step for the model, by recovery where the refusal names none itself.
func nextStep(f *fault.Error) string {
	switch {
	case f.Next != "":
		return f.Next
	case f.Recovery == fault.RetrySame:
		return "call again with the same arguments"
	case f.Recovery == fault.ReRead:
		return "read the current state again, then decide"
	case f.Recovery == fault.FixArguments && f.Field != "":
		return "correct " + f.Field + " and call again"
	case f.Recovery == fault.FixArguments:
		return "correct the arguments and call again"
	}
	return "do not repeat the call; tell the user"
}

// compact encodes without escaping <, > and &: the text goes to a model as it stands.
func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
