package main

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type object = map[string]any

// addClientRequests are the fixtures that ask the client for something in the legacy eras.
// The SDK marks these APIs as old, as the protocol does; they are tested while served.
func addClientRequests(s *sdk.Server) {
	type prompt struct {
		Prompt string `json:"prompt"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "test_sampling", Description: "Asks for a completion"},
		func(ctx context.Context, r *sdk.CallToolRequest, in prompt) (*sdk.CallToolResult, any, error) {
			res, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 100,
				Messages: []*sdk.SamplingMessage{{Role: "user", Content: words("%s", in.Prompt)}}})
			if err != nil {
				return nil, nil, fmt.Errorf("sampling failed: %w", err)
			}
			said := "(not text)"
			if t, ok := res.Content.(*sdk.TextContent); ok {
				said = t.Text
			}
			return text("LLM response: %s", said), nil, nil
		})
	type message struct {
		Message string `json:"message"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "test_elicitation", Description: "Asks the user"},
		func(ctx context.Context, r *sdk.CallToolRequest, in message) (*sdk.CallToolResult, any, error) {
			res, err := elicit(ctx, r, in.Message, object{"username": object{"type": "string", "description": "Your preferred username"}}, "username")
			return res, nil, err
		})
	add(s, "test_elicitation_sep1034_defaults", "Elicitation with defaults", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, "Test defaults for primitives", object{
			"name":     object{"type": "string", "description": "User name", "default": "John Doe"},
			"age":      object{"type": "integer", "description": "User age", "default": 30},
			"score":    object{"type": "number", "description": "User score", "default": 95.5},
			"status":   object{"type": "string", "description": "User status", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
			"verified": object{"type": "boolean", "description": "Verification status", "default": true},
		})
	})
	add(s, "test_elicitation_sep1330_enums", "Elicitation with enums", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, "Test enum schemas", enums())
	})
}

func enums() object {
	untitled := []string{"option1", "option2", "option3"}
	titled := []object{{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"},
		{"const": "value3", "title": "Third Option"}}
	return object{
		"untitledSingle": object{"type": "string", "enum": untitled},
		"titledSingle":   object{"type": "string", "oneOf": titled},
		"legacyEnum": object{"type": "string", "enum": []string{"opt1", "opt2", "opt3"},
			"enumNames": []string{"Option One", "Option Two", "Option Three"}},
		"untitledMulti": object{"type": "array", "minItems": 1, "maxItems": 3, "items": object{"type": "string", "enum": untitled}},
		"titledMulti":   object{"type": "array", "minItems": 1, "maxItems": 3, "items": object{"type": "string", "anyOf": titled}},
	}
}

func elicit(ctx context.Context, r *sdk.CallToolRequest, message string, props object, required ...string) (*sdk.CallToolResult, error) {
	form := object{"type": "object", "properties": props}
	if len(required) > 0 {
		form["required"] = required
	}
	res, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: message, RequestedSchema: form})
	if err != nil {
		return nil, fmt.Errorf("elicitation failed: %w", err)
	}
	return text("Elicitation result: action=%s, content=%v", res.Action, res.Content), nil
}
