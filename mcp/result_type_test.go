package mcp

import (
	"strings"
	"testing"
)

// The modern revision requires resultType in every result, of a failed or refused call and of
// a panic too; the earlier ones do not know it.
func TestResultTypeFollowsTheEra(t *testing.T) {
	r := newRig(t)
	id := r.initialize(legacy2)
	for _, tool := range []string{"echo", "failed", "refused", "tool_panic", "edge_panic"} {
		const member = `"resultType":"complete"`
		if got := r.send(modernCall(tool, `{}`, "")); !strings.Contains(got.body, member) {
			t.Errorf("%s, modern: %s", tool, got.body)
		}
		for name, header := range map[string]map[string]string{"session": legacyHeader(legacy2, id), "no session": {"Mcp-Protocol-Version": legacy1}} {
			if got := r.send(legacyCall(tool, `{}`, header)); got.status != 200 || strings.Contains(got.body, "resultType") {
				t.Errorf("%s, legacy, %s: %s", tool, name, got.body)
			}
		}
	}
}
