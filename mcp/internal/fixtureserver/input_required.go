package main

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tampered is what the suite appends to a state that it has been given.
const tampered = "-TAMPERED"

// form asks the user for one member.
func form(message, member, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: message, RequestedSchema: object{"type": "object",
		"properties": object{member: object{"type": kind}}, "required": []string{member}}}
}

func question(q string, tokens int64) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{Messages: []*sdk.SamplingMessage{{Role: "user", Content: words("%s", q)}}, MaxTokens: tokens}
}

func ask(state string, requests sdk.InputRequestMap) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{InputRequests: requests, RequestState: state}, nil
}

// accepted is what the user filled in under the key, nil where they did not.
func accepted(m sdk.InputResponseMap, key string) object {
	if r, ok := m[key].(*sdk.ElicitResult); ok && r != nil && r.Action == "accept" {
		return r.Content
	}
	return nil
}

func acceptedString(m sdk.InputResponseMap, key, member string) string {
	s, _ := accepted(m, key)[member].(string)
	return s
}

// sampled is the text of a completion under the key.
func sampled(m sdk.InputResponseMap, key string) (string, bool) {
	r, ok := m[key].(*sdk.CreateMessageWithToolsResult)
	if !ok || r == nil {
		return "", false
	}
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			return t.Text, true
		}
	}
	return "(not text)", true
}

func addInputRequired(s *sdk.Server) {
	const p = "test_input_required_result_"
	add(s, p+"elicitation", "Asks for a name", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if name := acceptedString(r.Params.InputResponses, "user_name", "name"); name != "" {
			return text("Hello, %s!", name), nil
		}
		return ask("", sdk.InputRequestMap{"user_name": form("What is your name?", "name", "string")})
	})
	add(s, p+"sampling", "Asks for a completion", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if said, ok := sampled(r.Params.InputResponses, "capital_question"); ok {
			return text("Sampling response: %s", said), nil
		}
		return ask("", sdk.InputRequestMap{"capital_question": question("What is the capital of France?", 100)})
	})
	add(s, p+"list_roots", "Asks for roots", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if roots, ok := r.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok && roots != nil {
			return text("Client exposed %d root(s)", len(roots.Roots)), nil
		}
		return ask("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})
	})
	add(s, p+"request_state", "Carries a state", stateful("request_state"))
	add(s, p+"tampered_state", "Refuses a changed state", stateful("tampered_state"))
	add(s, p+"multiple_inputs", "Asks for three things", multipleInputs)
	add(s, p+"multi_round", "Asks twice", multiRound)
	add(s, p+"capabilities", "Asks for what the client can give", byCapabilities)
}

// stateful asks once and takes the answer only with the state it gave out.
func stateful(state string) handler {
	return func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		got := r.Params.RequestState
		confirmed := accepted(r.Params.InputResponses, "confirm") != nil
		if strings.HasSuffix(got, tampered) || confirmed && got == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState"}
		}
		if confirmed {
			return text("state-ok: requestState received and confirmation accepted"), nil
		}
		return ask(state, sdk.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")})
	}
}

func multipleInputs(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	in := r.Params.InputResponses
	name := acceptedString(in, "user_name", "name")
	said, spoke := sampled(in, "greeting")
	roots, listed := in["client_roots"].(*sdk.ListRootsResult)
	if name != "" && spoke && listed && roots != nil {
		return text("%s %s, %d root(s) visible", said, name, len(roots.Roots)), nil
	}
	return ask("multiple_inputs", sdk.InputRequestMap{"user_name": form("What is your name?", "name", "string"),
		"greeting": question("Generate a greeting", 50), "client_roots": &sdk.ListRootsParams{}})
}

// multiRound keeps the round and the name in the state: the era has no other memory.
func multiRound(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	const second = "round=2;name="
	switch state := r.Params.RequestState; {
	case state == "":
		return ask("round=1", sdk.InputRequestMap{"step1": form("Step 1: What is your name?", "name", "string")})
	case state == "round=1":
		return ask(second+acceptedString(r.Params.InputResponses, "step1", "name"),
			sdk.InputRequestMap{"step2": form("Step 2: What is your favorite color?", "color", "string")})
	default:
		return text("Multi-round complete: %s likes %s", strings.TrimPrefix(state, second),
			acceptedString(r.Params.InputResponses, "step2", "color")), nil
	}
}

func byCapabilities(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if len(r.Params.InputResponses) > 0 {
		return text("Capability-aware input requests fulfilled"), nil
	}
	want := sdk.InputRequestMap{}
	if c := r.ClientCapabilities(); c != nil {
		if c.Elicitation != nil {
			want["user_name"] = form("What is your name?", "name", "string")
		}
		if c.Sampling != nil {
			want["greeting"] = question("Generate a short greeting", 50)
		}
		if c.RootsV2 != nil {
			want["client_roots"] = &sdk.ListRootsParams{}
		}
	}
	if len(want) == 0 {
		return text("No declared client capability supports an in-band input request"), nil
	}
	return ask("", want)
}
