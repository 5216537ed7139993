package eventlog

import (
	"strings"
	"testing"
	"time"

	"webcodex/internal/fault"
)

// A log without room takes work again as soon as there is some, in the same life, and the refusal
// says so: it asks for no restart that nothing needs.
func TestStorageFullEndsByItselfAndSaysSo(t *testing.T) {
	s := newSpace(t.TempDir(), 1000, 950, time.Now)
	err := s.admit()
	if f := fault.As(err); f.Kind != fault.StorageFull || !strings.Contains(f.Next, "by itself") || strings.Contains(f.Next, "then restart") {
		t.Errorf("%v: %q", err, f.Next)
	}
	s.add(-500)
	if err := s.admit(); err != nil {
		t.Error(err)
	}
}
