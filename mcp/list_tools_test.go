package mcp

import (
	"encoding/json"
	"slices"
	"testing"
)

// list_tools names every tool once, page by page, and its filters only take away.
func TestListTools(t *testing.T) {
	whole := listed(Catalogue(), listToolsIn{Limit: new(int)})
	if whole.Limit != 1 || whole.Returned != 1 || whole.NextOffset == nil || *whole.NextOffset != 1 || !whole.Truncated || whole.Total != len(Catalogue()) {
		t.Errorf("%+v", whole)
	}
	var names []string
	offset, limit := 0, 7
	for {
		page := listed(Catalogue(), listToolsIn{Offset: &offset, Limit: &limit})
		if page.Returned != len(page.Tools) || page.Returned != len(page.Names) || page.Filtered != page.Total {
			t.Fatalf("%+v", page)
		}
		names = append(names, page.Names...)
		if page.NextOffset == nil {
			break
		}
		offset = *page.NextOffset
	}
	for i, tool := range Catalogue() {
		if i >= len(names) || names[i] != tool.Spec.Name {
			t.Fatalf("%v", names)
		}
	}
	counted := 0
	for _, c := range whole.Categories {
		counted += c.Tools
	}
	if counted != whole.Total {
		t.Errorf("the categories count %d of %d", counted, whole.Total)
	}
	most := maxToolsLimit + 1
	if big := listed(Catalogue(), listToolsIn{Limit: &most, SummaryOnly: true}); big.Limit != maxToolsLimit || big.Tools != nil || len(big.Names) == 0 {
		t.Errorf("%+v", big)
	}
	if b, _ := json.Marshal(listed(Catalogue(), listToolsIn{Limit: &most})); len(b) > 40_000 {
		t.Errorf("%d characters", len(b))
	}
	for _, name := range featureNames() {
		got := listed(Catalogue(), listToolsIn{Features: []string{name}, Limit: &most})
		if got.Filtered == 0 || got.Filtered == got.Total {
			t.Errorf("%s picks %d of %d", name, got.Filtered, got.Total)
		}
	}
	direct := listed(Catalogue(), listToolsIn{Features: []string{"direct", "read_only"}, Category: "git", Query: "DIFF", Limit: &most})
	if !slices.Contains(direct.Names, "read_git_diff_hunks") || slices.Contains(direct.Names, "read_git_diff") {
		t.Errorf("%v", direct.Names)
	}
	if none := listed(Catalogue(), listToolsIn{Features: []string{"direct", "indirect"}}); none.Filtered != 0 || none.Names == nil {
		t.Errorf("%+v", none)
	}
}
