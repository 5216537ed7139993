package session

import (
	"regexp"
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
	"webcodex/runner/wire"
)

// Statuses of the instruction files, of each and of all together.
const (
	FilesLoaded      = "loaded"      // first seen by this Session
	FilesReused      = "reused"      // as the Session saw it last
	FilesChanged     = "changed"     // another content than the Session saw last
	FilesNotFound    = "not_found"   // looked for, and not there
	FilesUnavailable = "unavailable" // nobody could tell, or it cannot be read
)

// InstructionsOut names the Project's instruction files, never their text (STA-14). What a
// model still knows of them nobody can tell, so the statuses speak of this Session alone
// (STA-15).
type InstructionsOut struct {
	Status  string              `json:"status"`
	Sources []InstructionSource `json:"sources"`
}

// InstructionSource is one instruction file and how it compares with what the Session saw last.
type InstructionSource struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of the whole file; empty where it is not there or cannot be read
	Bytes  int64  `json:"bytes"`
	Status string `json:"status"`
	Reason string `json:"reason_code,omitempty"` // of unavailable
}

// Compare holds what a Runner sees against what the Session saw last, and gives what the
// Session knows from now on. Nil: no Runner could tell; then nothing is forgotten, as it is
// not for a file that is there and cannot be read.
func Compare(last []event.InstructionFile, seen *wire.InstructionSources) (InstructionsOut, []event.InstructionFile) {
	out, now := InstructionsOut{Sources: []InstructionSource{}}, []event.InstructionFile(nil)
	var looked []wire.InstructionSource
	if seen != nil {
		looked = seen.Sources[:min(len(seen.Sources), MaxInstructionFiles)]
	}
	done := map[string]bool{}
	for _, s := range looked {
		if path, ok := redact.Path(s.Path); !ok || path != s.Path || len(path) > maxInstructionPath || done[path] {
			continue
		}
		done[s.Path] = true
		src, known := compareOne(s, lastOf(last, s.Path))
		out.Sources = append(out.Sources, src)
		if known != nil {
			now = append(now, *known)
		}
	}
	for _, f := range last {
		if done[f.Path] {
			continue
		}
		src := InstructionSource{Path: f.Path, Status: FilesNotFound}
		if seen == nil {
			src.Status, src.Reason = FilesUnavailable, "not_observed"
			now = append(now, f)
		}
		out.Sources = append(out.Sources, src)
	}
	slices.SortFunc(now, func(a, b event.InstructionFile) int { return strings.Compare(a.Path, b.Path) })
	out.Status = together(out.Sources, last, seen != nil)
	return out, now
}

var hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// compareOne gives the source as shown and what is known of it from now on, nil for nothing.
func compareOne(s wire.InstructionSource, last *event.InstructionFile) (InstructionSource, *event.InstructionFile) {
	out := InstructionSource{Path: s.Path, Status: FilesUnavailable, Reason: wire.SourceUnreadable}
	switch s.Status {
	case wire.SourceNotFound:
		out.Status, out.Reason = FilesNotFound, ""
		return out, nil
	case wire.SourceTooLarge, wire.SourceNotRegular, wire.SourceOutside:
		out.Reason = s.Status
		return out, last
	case wire.SourceLoaded:
	default:
		return out, last
	}
	if !hex64.MatchString(s.SHA256) || s.Bytes < 0 {
		return out, last
	}
	out.SHA256, out.Bytes, out.Reason = s.SHA256, s.Bytes, ""
	switch {
	case last == nil:
		out.Status = FilesLoaded
	case last.SHA256 == s.SHA256:
		out.Status = FilesReused
	default:
		out.Status = FilesChanged
	}
	return out, &event.InstructionFile{Path: s.Path, SHA256: s.SHA256, Bytes: s.Bytes}
}

func lastOf(files []event.InstructionFile, path string) *event.InstructionFile {
	i := slices.IndexFunc(files, func(f event.InstructionFile) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return &files[i]
}

// together is the status of all: changed where anything differs from what the Session saw
// last, else what the files that can be read are.
func together(sources []InstructionSource, last []event.InstructionFile, observed bool) string {
	has := map[string]bool{}
	gone := false
	for _, s := range sources {
		has[s.Status] = true
		gone = gone || s.Status == FilesNotFound && lastOf(last, s.Path) != nil
	}
	there := has[FilesLoaded] || has[FilesReused] || has[FilesChanged]
	switch {
	case !observed:
		return FilesUnavailable
	case has[FilesChanged], there && gone, has[FilesLoaded] && len(last) > 0:
		return FilesChanged
	case has[FilesLoaded]:
		return FilesLoaded
	case has[FilesReused]:
		return FilesReused
	case has[FilesUnavailable]:
		return FilesUnavailable
	default:
		return FilesNotFound
	}
}
