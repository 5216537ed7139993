package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

func sum(digit string) string { return strings.Repeat(digit, 64) }

func fileOf(path, digit string) event.InstructionFile {
	return event.InstructionFile{Path: path, SHA256: sum(digit), Bytes: 7}
}

func sourceOf(path, digit string) wire.InstructionSource {
	return wire.InstructionSource{Path: path, SHA256: sum(digit), Bytes: 7, Status: wire.SourceLoaded}
}

func absent(path string) wire.InstructionSource {
	return wire.InstructionSource{Path: path, Status: wire.SourceNotFound}
}

// The status of each file and of all, and what is known from then on.
//
// Covers: STA-16
func TestCompare(t *testing.T) {
	const a, c = "AGENTS.md", "CLAUDE.md"
	none := []event.InstructionFile(nil)
	for name, tc := range map[string]struct {
		last   []event.InstructionFile
		seen   []wire.InstructionSource
		status string
		each   string
		now    []event.InstructionFile
	}{
		"nothing there": {none, []wire.InstructionSource{absent(a), absent(c)}, FilesNotFound, "not_found not_found", none},
		"first seen":    {none, []wire.InstructionSource{sourceOf(a, "1"), absent(c)}, FilesLoaded, "loaded not_found", []event.InstructionFile{fileOf(a, "1")}},
		"as before": {[]event.InstructionFile{fileOf(a, "1")}, []wire.InstructionSource{sourceOf(a, "1"), absent(c)}, FilesReused, "reused not_found",
			[]event.InstructionFile{fileOf(a, "1")}},
		"another content": {[]event.InstructionFile{fileOf(a, "1")}, []wire.InstructionSource{sourceOf(a, "2"), absent(c)}, FilesChanged, "changed not_found",
			[]event.InstructionFile{fileOf(a, "2")}},
		"one is new": {[]event.InstructionFile{fileOf(a, "1")}, []wire.InstructionSource{sourceOf(a, "1"), sourceOf(c, "2")}, FilesChanged, "reused loaded",
			[]event.InstructionFile{fileOf(a, "1"), fileOf(c, "2")}},
		"one is gone": {[]event.InstructionFile{fileOf(a, "1"), fileOf(c, "2")}, []wire.InstructionSource{absent(a), sourceOf(c, "2")}, FilesChanged, "not_found reused",
			[]event.InstructionFile{fileOf(c, "2")}},
		"all are gone": {[]event.InstructionFile{fileOf(a, "1")}, []wire.InstructionSource{absent(a), absent(c)}, FilesNotFound, "not_found not_found", none},
		"unreadable keeps what was known": {[]event.InstructionFile{fileOf(a, "1")}, []wire.InstructionSource{{Path: a, Status: wire.SourceTooLarge, Bytes: 1 << 30}},
			FilesUnavailable, "unavailable:too_large", []event.InstructionFile{fileOf(a, "1")}},
		"one of two cannot be read": {none, []wire.InstructionSource{sourceOf(a, "1"), {Path: c, Status: wire.SourceOutside}}, FilesLoaded,
			"loaded unavailable:outside_project", []event.InstructionFile{fileOf(a, "1")}},
		"no longer looked for": {[]event.InstructionFile{fileOf("OLD.md", "1")}, []wire.InstructionSource{absent(a)}, FilesNotFound, "not_found not_found", none},
		"a Runner that lies": {none, []wire.InstructionSource{{Path: "/etc/passwd", Status: wire.SourceLoaded, SHA256: sum("1")},
			{Path: a, Status: wire.SourceLoaded, SHA256: "short"}, {Path: c, Status: "whatever"}, sourceOf(c, "1")},
			FilesUnavailable, "unavailable:unreadable unavailable:unreadable", none},
	} {
		out, now := Compare(tc.last, &wire.InstructionSources{Sources: tc.seen})
		var each []string
		for _, s := range out.Sources {
			st := s.Status
			if s.Reason != "" {
				st += ":" + s.Reason
			}
			each = append(each, st)
			if loaded := s.Status == FilesLoaded || s.Status == FilesReused || s.Status == FilesChanged; loaded != (s.SHA256 != "") {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if out.Status != tc.status || strings.Join(each, " ") != tc.each {
			t.Errorf("%s: %s, %q", name, out.Status, each)
		}
		if d := cmp.Diff(tc.now, now); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	last := []event.InstructionFile{fileOf(a, "1")}
	out, now := Compare(last, nil)
	if out.Status != FilesUnavailable || len(out.Sources) != 1 || out.Sources[0].Status != FilesUnavailable || !slices.Equal(now, last) {
		t.Errorf("no Runner: %+v, %+v", out, now)
	}
}

// Whatever a Runner says, what is kept is bounded and well formed; the same again is reused
// and changes nothing.
func TestCompareIsBoundedAndIdempotent(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) wire.InstructionSource {
		return wire.InstructionSource{
			Path:   rapid.OneOf(rapid.SampledFrom([]string{"AGENTS.md", "CLAUDE.md", "../x", ""}), rapid.String()).Draw(t, "path"),
			SHA256: rapid.OneOf(rapid.StringMatching(`[0-9a-f]{64}`), rapid.String()).Draw(t, "sha256"),
			Bytes:  rapid.Int64().Draw(t, "bytes"),
			Status: rapid.OneOf(rapid.SampledFrom([]string{wire.SourceLoaded, wire.SourceNotFound, wire.SourceTooLarge}), rapid.String()).Draw(t, "status")}
	})
	rapid.Check(t, func(t *rapid.T) {
		seen := &wire.InstructionSources{Sources: rapid.SliceOfN(draw, 0, 12).Draw(t, "seen")}
		var last []event.InstructionFile
		for range 3 {
			_, last = Compare(last, &wire.InstructionSources{Sources: rapid.SliceOfN(draw, 0, 12).Draw(t, "before")})
		}
		_, now := Compare(last, seen)
		out, again := Compare(now, seen)
		if !slices.Equal(now, again) || len(now) > MaxInstructionFiles || len(out.Sources) > 2*MaxInstructionFiles {
			t.Fatalf("%+v, then %+v", now, again)
		}
		for _, f := range now {
			if !hex64.MatchString(f.SHA256) || f.Bytes < 0 || f.Path == "" {
				t.Fatalf("%+v", f)
			}
		}
		for _, s := range out.Sources {
			if s.Status == FilesLoaded || s.Status == FilesChanged {
				t.Fatalf("the same again is %s", fmt.Sprintf("%+v", s))
			}
		}
	})
}
