package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Smallest files of their kinds: a red pixel, and silence.
const (
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

type handler = func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)

// add registers a fixture without arguments that matter.
func add(s *sdk.Server, name, about string, h handler) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: about},
		func(ctx context.Context, r *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
			res, err := h(ctx, r)
			return res, nil, err
		})
}

func text(format string, args ...any) *sdk.CallToolResult { return content(words(format, args...)) }

func words(format string, args ...any) *sdk.TextContent {
	return &sdk.TextContent{Text: fmt.Sprintf(format, args...)}
}

func content(c ...sdk.Content) *sdk.CallToolResult { return &sdk.CallToolResult{Content: c} }

// always gives the same result.
func always(res *sdk.CallToolResult) handler {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return res, nil }
}

func embedded(uri, body string) sdk.Content {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: body}}
}

func addContent(s *sdk.Server) {
	image := &sdk.ImageContent{Data: decoded(pixel), MIMEType: "image/png"}
	add(s, "test_simple_text", "Text", always(text("This is a simple text response for testing.")))
	add(s, "test_image_content", "An image", always(content(image)))
	add(s, "test_audio_content", "Audio", always(content(&sdk.AudioContent{Data: decoded(silence), MIMEType: "audio/wav"})))
	add(s, "test_embedded_resource", "An embedded resource", always(content(embedded("test://embedded-resource", "This is an embedded resource"))))
	add(s, "test_multiple_content_types", "Text, image and resource", always(content(words("This is text content"), image,
		embedded("test://embedded-in-multiple", "This is an embedded resource"))))
	add(s, "test_error_handling", "Always fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("this tool intentionally returns an error for testing")
	})
	add(s, "test_tool_with_logging", "Logs while it runs", logging)
	add(s, "test_tool_with_progress", "Reports progress", progress)
	add(s, "test_reconnection", "Closes its stream and answers later", reconnection)
	addSchemas(s)
}

func logging(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	for _, m := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: m})
		time.Sleep(50 * time.Millisecond)
	}
	return text("Tool with logging executed successfully"), nil
}

func progress(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	token := r.Params.GetProgressToken()
	for _, p := range []float64{0, 50, 100} {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: p, Total: 100,
			Message: fmt.Sprintf("Completed step %.0f of 100", p)})
		time.Sleep(50 * time.Millisecond)
	}
	return text("%v", token), nil
}

func reconnection(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if r.Extra != nil && r.Extra.CloseSSEStream != nil {
		r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
	}
	time.Sleep(100 * time.Millisecond)
	return text("Reconnection test completed successfully."), nil
}

// The vocabulary of 2020-12 must survive tools/list as it stands.
const schema202012 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object",
		"properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"}, "email": {"type": "string"}},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

const schemaHeader = `{"type": "object", "properties": {
	"region": {"type": "string", "description": "mirrored into Mcp-Param-Region", "x-mcp-header": "Region"},
	"level": {"type": "integer", "description": "not mirrored"}}}`

func addSchemas(s *sdk.Server) {
	sdk.AddTool(s, &sdk.Tool{Name: "json_schema_2020_12_tool", Description: "JSON Schema 2020-12", InputSchema: json.RawMessage(schema202012)},
		func(_ context.Context, _ *sdk.CallToolRequest, in json.RawMessage) (*sdk.CallToolResult, any, error) {
			return text("called with %s", in), nil, nil
		})
	type headed struct {
		Region string `json:"region,omitempty"`
		Level  int    `json:"level,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "test_x_mcp_header", Description: "Mcp-Param-* headers", InputSchema: json.RawMessage(schemaHeader)},
		func(_ context.Context, _ *sdk.CallToolRequest, in headed) (*sdk.CallToolResult, any, error) {
			return text("region=%s", in.Region), nil, nil
		})
}
