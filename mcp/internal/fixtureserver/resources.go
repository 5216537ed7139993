package main

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const watched = "test://watched-resource"

func addResources(s *sdk.Server) {
	add := func(name, uri, mime string, body sdk.ResourceContents) {
		s.AddResource(&sdk.Resource{Name: name, URI: uri, MIMEType: mime, Description: name},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				c := body
				c.URI, c.MIMEType = uri, mime
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
			})
	}
	add("static-text", "test://static-text", "text/plain", sdk.ResourceContents{Text: "This is the content of the static text resource."})
	add("static-binary", "test://static-binary", "image/png", sdk.ResourceContents{Blob: decoded(pixel)})
	add("watched-resource", watched, "text/plain", sdk.ResourceContents{Text: "Watched resource content"})
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json",
		Description: "A template with one parameter"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json",
				Text: fmt.Sprintf(`{"id": %q, "templateTest": true, "data": "Data for ID: %s"}`, id, id)}}}, nil
		})
}

func addPrompts(s *sdk.Server) {
	says := func(c ...sdk.Content) (*sdk.GetPromptResult, error) {
		res := &sdk.GetPromptResult{Description: "A test prompt"}
		for _, one := range c {
			res.Messages = append(res.Messages, &sdk.PromptMessage{Role: "user", Content: one})
		}
		return res, nil
	}
	type request = sdk.GetPromptRequest
	s.AddPrompt(&sdk.Prompt{Name: "test_simple_prompt", Description: "Without arguments"},
		func(context.Context, *request) (*sdk.GetPromptResult, error) {
			return says(words("This is a simple prompt for testing."))
		})
	s.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_arguments", Description: "With two arguments", Arguments: []*sdk.PromptArgument{
		{Name: "arg1", Description: "First", Required: true}, {Name: "arg2", Description: "Second", Required: true}}},
		func(_ context.Context, r *request) (*sdk.GetPromptResult, error) {
			return says(words("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"]))
		})
	s.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_embedded_resource", Description: "With a resource", Arguments: []*sdk.PromptArgument{
		{Name: "resourceUri", Description: "URI to embed", Required: true}}},
		func(_ context.Context, r *request) (*sdk.GetPromptResult, error) {
			return says(embedded(r.Params.Arguments["resourceUri"], "Embedded resource content for testing."),
				words("Please process the embedded resource above."))
		})
	s.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_image", Description: "With an image"},
		func(context.Context, *request) (*sdk.GetPromptResult, error) {
			return says(&sdk.ImageContent{Data: decoded(pixel), MIMEType: "image/png"}, words("Please analyze the image above."))
		})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "Asks before it answers"},
		func(_ context.Context, r *request) (*sdk.GetPromptResult, error) {
			if c := acceptedString(r.Params.InputResponses, "user_context", "context"); c != "" {
				return says(words("Context: %s", c))
			}
			return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{
				"user_context": form("Please provide context for the prompt", "context", "string")}}, nil
		})
}
