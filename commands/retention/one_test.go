package retention_test

import (
	"slices"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/retention"
)

// given as many tombstones as a server may keep, when an operator removes one Session more by
// hand, whose program knows another limit, then no tombstone of another Session is dropped.
//
// Covers: SES-36
func TestRemovalByHandDropsNoOtherTombstone(t *testing.T) {
	e := bounded(t, 3)
	done := finished(e, 6)
	before := e.Tombstones.All()
	if len(before) != 3 {
		t.Fatalf("%d tombstones", len(before))
	}
	r := retention.New(retention.Options{Writer: aggregate.NewWriter(e.Log, time.Now), Sessions: e.Store, Tombstones: e.Tombstones, Limit: 1})
	for range 2 { // again is no error
		if err := r.Remove(t.Context(), done[5].SessionID); err != nil {
			t.Fatal(err)
		}
	}
	after := e.Tombstones.All()
	if len(after) != 4 || !slices.Equal(after[:3], before) || after[3].Session != done[5].SessionID {
		t.Errorf("%v\n%v", before, after)
	}
	r.Run(t.Context()) // a server's own limit
	if n := len(e.Tombstones.All()); n != 1 {
		t.Errorf("%d tombstones are left", n)
	}
}
