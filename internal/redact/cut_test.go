package redact

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// What a person sees as one character is kept whole or left out, where that costs little.
func TestCutKeepsGraphemes(t *testing.T) {
	const family, flags, thai, devanagari = "👩‍👩‍👧‍👦", "🇩🇪🇫🇷🇯🇵", "กำ", "का"
	for name, tc := range map[string]struct {
		in   string
		max  int
		want string
	}{
		"plain":              {"abcdef", 3, "abc"},
		"all":                {"abc", 3, "abc"},
		"han":                {"漢字仮名", 2, "漢字"},
		"before a family":    {"ab" + family, 2, "ab"},
		"in a family":        {"ab" + family, 4, "ab"},
		"at its last joiner": {"ab" + family, 8, "ab"},
		"after it":           {"ab" + family + "c", 9, "ab" + family},
		"skin tone":          {"a👍🏽", 2, "a"},
		"between flags":      {flags, 2, "🇩🇪"},
		"in a flag":          {flags, 3, "🇩🇪"},
		"first half":         {"x" + flags, 2, "x"},
		"accent":             {"ae\u0301", 2, "a"},
		"keycap":             {"a1\ufe0f\u20e3", 3, "a"},
		"subdivision flag":   {"a🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", 5, "a"},
		"hangul in parts":    {"a\u1112\u1161\u11ab", 3, "a"},
		"thai":               {"a" + thai, 2, "aก"}, // a vowel of its own
		"devanagari":         {"a" + devanagari, 2, "a"},
		"line end":           {"a\r\nb", 2, "a"},
		"a pile of marks":    {"a" + strings.Repeat("\u0300", 500), 100, "a" + strings.Repeat("\u0300", 99)},
		"only marks":         {strings.Repeat("\u0300", 40), 4, strings.Repeat("\u0300", 4)},
		"broken bytes":       {"a\xff\xfeb", 2, "a\ufffd"},
		"none":               {"abc", 0, ""},
	} {
		got, cut := Cut(tc.in, tc.max)
		if got != tc.want || cut != (got != strings.ToValidUTF8(tc.in, "\ufffd")) {
			t.Errorf("%s: %+q (%v), want %+q", name, got, cut, tc.want)
		}
	}
}

func TestCutIsABoundAndAPrefix(t *testing.T) {
	unit := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", "\u200d", "\xff", "漢", "\u0300", "a"}))
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(unit, 0, 40).Draw(t, "s"), "")
		n := rapid.IntRange(0, 60).Draw(t, "n")
		got, cut := Cut(s, n)
		valid := strings.ToValidUTF8(s, "\ufffd")
		have, all := utf8.RuneCountInString(got), utf8.RuneCountInString(valid)
		if !strings.HasPrefix(valid, got) || have > n || cut != (have < all) || cut && have < n-maxGrapheme || !cut && all > n {
			t.Fatalf("Cut(%+q, %d) = %+q, %v", s, n, got, cut)
		}
		if again, _ := Cut(got, n); again != got {
			t.Fatalf("%+q is cut again to %+q", got, again)
		}
	})
}
