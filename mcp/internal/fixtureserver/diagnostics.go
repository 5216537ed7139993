package main

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addDiagnostics are the fixtures of the modern era's rules for streams, capabilities, logs
// and list changes.
func addDiagnostics(s *sdk.Server) {
	add(s, "test_missing_capability", "Needs sampling", needsSampling)
	add(s, "test_streaming_elicitation", "Streams results only", always(text("stream observed: result frames only")))
	add(s, "test_logging_tool", "Logs where the client asked for it", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "test_logging_tool executed"})
		return text("Log attempted."), nil
	})
	add(s, "test_trigger_tool_change", "Changes the tool list", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		add(s, "__transient_tool_for_list_changed", "Comes and goes", always(&sdk.CallToolResult{}))
		return text("tools_list_changed published"), nil
	})
	add(s, "test_trigger_prompt_change", "Changes the prompt list", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.AddPrompt(&sdk.Prompt{Name: "__transient_prompt_for_list_changed", Description: "Comes and goes"},
			func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
				return &sdk.GetPromptResult{}, nil
			})
		return text("prompts_list_changed published"), nil
	})
}

func needsSampling(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
		return text("Client declared the sampling capability; tool executed."), nil
	}
	data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities,
		Message: "sampling capability required but not declared by client", Data: data}
}
