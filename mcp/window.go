package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/eventlog/event"
	"webcodex/internal/token"
)

// windowSource is the member of _meta in which a host names its conversation, request by
// request. It is the domain of what it says, too: another source's equal value is another window.
const windowSource = "openai/session"

// windowDomain is of the hash that stands for a window.
const windowDomain = "webcodex.client-window.v1"

// windowOf is the window that a request came from, as a hash: what the host said ends here
// (WIN-02). Missing or malformed, there is none, and nothing takes its place (WIN-03).
func windowOf(meta sdk.Meta) event.WindowID {
	name, ok := meta[windowSource].(string)
	if !ok || name == "" || len(name) > maxWindowName {
		return ""
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return ""
		}
	}
	return windowHash(windowSource, name)
}

func windowHash(source, name string) event.WindowID {
	return event.WindowID(token.Digest(windowDomain, source, name))
}
