package runner

import (
	"maps"
	"slices"
	"testing"

	"webcodex/runner/wire"
)

func TestEveryLanguageHasAnInterpreter(t *testing.T) {
	t.Parallel()
	have, want := slices.Sorted(maps.Keys(interpreters)), slices.Sorted(slices.Values(wire.Languages))
	if !slices.Equal(have, want) {
		t.Errorf("interpreters of %q, languages %q", have, want)
	}
}
