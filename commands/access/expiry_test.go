package access_test

import (
	"testing"
	"time"

	"webcodex/commands/access"
)

// An expiry joins days with the rest as the settings' durations do; what runs backwards, or only
// looks like one, is none.
func TestExpiryJoinsDaysWithTheRest(t *testing.T) {
	for s, want := range map[string]time.Duration{"1d12h": 36 * time.Hour, "2d0h30m": 48*time.Hour + 30*time.Minute, "90d": 90 * 24 * time.Hour, "36h": 36 * time.Hour} {
		if got, err := access.ParseExpiry(s, noon); err != nil || !got.Equal(noon.Add(want)) {
			t.Errorf("%q: %v %v", s, got, err)
		}
	}
	for _, s := range []string{"1d-3h", "1d12", "12h1d", "1dd", "d12h"} {
		if got, err := access.ParseExpiry(s, noon); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
