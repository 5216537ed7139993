package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The newest ten checkpoints are listed beside how many there are; nobody's word for them is an empty
// list, and in a brief that is too large they make room before the next actions do.
// Covers: HND-05, HND-47
func TestCheckpointsOfABrief(t *testing.T) {
	var all []CheckpointLine
	for i := range MaxBriefCheckpoints + 2 {
		all = append(all, CheckpointLine{ID: fmt.Sprintf("wc_ckpt_%032d", i), Title: strings.Repeat("é", MaxCheckpointTitleChars+1), Kind: "snapshot", CreatedAt: "2026-01-01T00:00:00.000Z"})
	}
	got := newCheckpoints(Snapshot{IncludeCheckpoints: true, Checkpoints: &Checkpoints{Total: 40, Newest: all}})
	if got.Status != statusAvailable || got.Total != 40 || got.Returned != MaxBriefCheckpoints || !got.Truncated || got.Items[0].ID != all[0].ID ||
		len([]rune(got.Items[0].Title)) > MaxCheckpointTitleChars || all[0].Title != strings.Repeat("é", MaxCheckpointTitleChars+1) {
		t.Errorf("%+v %+v", got, got.List)
	}
	for asked, want := range map[bool]string{true: statusUnavailable, false: statusNotRequested} {
		if got := newCheckpoints(Snapshot{IncludeCheckpoints: asked}); got.Status != want || got.List != nil {
			t.Errorf("%+v", got)
		}
	}
	if none := newCheckpoints(Snapshot{IncludeCheckpoints: true, Checkpoints: &Checkpoints{}}); none.Status != statusAvailable || none.Total != 0 || none.Items == nil {
		t.Errorf("%+v", none)
	}
	b := Brief{Checkpoints: got, NextActions: newList([]Action{{Tool: "x"}}, 1), Basis: Basis{ReasonCodes: []string{}}}
	whole := size(b)
	b.reduce(whole - 100)
	if b.Checkpoints.Returned >= MaxBriefCheckpoints || b.Checkpoints.Total != 40 || len(b.NextActions.Items) != 1 || slices.Contains(b.Basis.ReasonCodes, codeCheckpoints) {
		t.Errorf("%+v %+v", b.Checkpoints.List, b.NextActions)
	}
}
