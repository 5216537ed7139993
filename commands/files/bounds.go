// Package files holds the tools that read, search and change the files of a Project, one file
// each. The Runner that owns the Project does the work and checks it again; of a call only
// paths and counts are stored, never a pattern or a content (ruling 5).
package files

import (
	"time"

	"webcodex/runner/wire"
)

// Bounds of the file tools (tools.md); those of wire hold on the Runner too.
const (
	MaxPathBytes = wire.MaxFilePath

	MaxReadItems = wire.MaxReadItems
	MaxReadLines = wire.MaxReadLines

	DefaultListLimit = wire.ListFilesLimit
	MaxListLimit     = wire.MaxListFiles

	DefaultTrackedLimit = 200
	MaxTrackedLimit     = 1000
	MaxTrackedDepth     = 16
	MaxTrackedGlobs     = 20

	MaxQueries       = wire.MaxSearchQueries
	MaxPatternChars  = wire.MaxPatternChars
	MaxContextLines  = wire.MaxSearchContext
	MaxGlobs         = wire.MaxGlobs
	MaxGlobChars     = wire.MaxGlobChars
	MaxSearchLimit   = wire.MaxSearchLimit
	MaxSearchTimeout = wire.MaxSearchTimeoutSecs

	MaxChanges     = wire.MaxChanges
	MaxEdits       = wire.MaxEdits
	MaxEditText    = wire.MaxEditText
	MaxOccurrence  = wire.MaxOccurrence
	MaxWriteBytes  = wire.MaxWriteBytes
	MaxPrefixChars = wire.MaxPrefixChars
	MaxDeletePaths = wire.MaxDeletePaths
	MaxPatchBytes  = wire.MaxPatchBytes
	MaxPatchFences = wire.MaxPatchFiles

	// effectTimeout of a change on the Runner; the largest takes far less.
	effectTimeout = 60 * time.Second
	// searchMargin is the time an answer may take beyond the search itself.
	searchMargin = 5 * time.Second
)

// Modes of search_project_texts and kinds of edit_project_files.
var (
	SearchModes = []string{wire.ModeMatches, wire.ModeFiles, wire.ModeCount}
	ChangeKinds = []string{wire.ChangeEdit, wire.ChangeCreate, wire.ChangeDelete, wire.ChangeRename}
	EditKinds   = []string{wire.ReplaceExact, wire.DeleteExact, wire.InsertBefore, wire.InsertAfter}
)

// clamp gives a knob its default and its bounds (ruling 8).
func clamp(n, absent, least, most int) int {
	if n == 0 {
		n = absent
	}
	return min(max(n, least), most)
}
