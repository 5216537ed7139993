package mcp

import (
	"strings"
	"testing"
)

// A refusal of a text that the server made says where there is a good one, in the text that every
// host shows.
//
// Covers: MSG-13, MSG-31
func TestRefusalsOfOpaqueTextsSayWhereTheyComeFrom(t *testing.T) {
	r := catalogueRig(t)
	c := r.connect(Modern)
	id := started(t, c)
	for _, length := range []int{0, 3, 48, 193} {
		text := strings.Repeat("A", length)
		for tool, want := range map[string]struct{ field, next, kind string }{
			"observe_session_messages": {"after_observation_token", "call observe_session_messages without a token", "invalid_observation_token"},
			"complete_session_message": {"expected_assignment_fence", "call get_session_assignment", "invalid_assignment_fence"},
		} {
			args := map[string]any{"session_id": id, want.field: text}
			if tool == "complete_session_message" {
				args["message_id"], args["answer"], args["completion_key"] = "m", "a", "k"
			}
			res := callTool(t, c, tool, args)
			refusedAt(t, res, want.kind, want.field)
			if !strings.Contains(res.Text, "next: "+want.next) {
				t.Errorf("%s, %d characters: %s", tool, length, res.Text)
			}
		}
	}
}
