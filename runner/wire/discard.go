package wire

import (
	"fmt"

	"webcodex/internal/fault"
)

// Ops that are about untracked files; both take DiscardIn and give DiscardOut. OpPreviewDiscard
// changes nothing.
const (
	OpDiscardUntracked Op = "discard_untracked"
	OpPreviewDiscard   Op = "preview_discard"
)

// Bounds of a discard.
const (
	MaxDiscardPaths = 32  // named
	MaxDiscardFiles = 128 // that they stand for
)

// DiscardIn names untracked files, or directories for all untracked files in them; none stands
// for all of the Project.
type DiscardIn struct {
	Paths []string `json:"paths,omitempty"`
	// IncludeIgnored also takes files that a rule of the repository ignores.
	IncludeIgnored bool `json:"include_ignored,omitempty"`
	// Digest is that of a preview: the files must be the same still. It is needed where files are
	// discarded that were not named one by one.
	Digest string `json:"expected_digest,omitempty"`
}

// DiscardOut tells what is gone; of a preview, what would be.
type DiscardOut struct {
	Files  []DiscardFile `json:"files"`
	Count  int           `json:"count"`
	Bytes  int64         `json:"bytes"`
	Digest string        `json:"digest"` // of names, sizes and times
	// Discarded are the paths that are gone, Directories those that became empty and went too.
	Discarded   []string `json:"discarded_untracked_paths"`
	Directories []string `json:"removed_directories"`
}

// DiscardFile is one untracked file.
type DiscardFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Link  bool   `json:"symlink,omitempty"`
}

// Check is that of EditFilesIn for untracked files.
func (in DiscardIn) Check() error {
	if len(in.Paths) > MaxDiscardPaths {
		return badArgument("paths", "paths must have at most %d entries", MaxDiscardPaths)
	}
	if in.Digest != "" && !hex64.MatchString(in.Digest) {
		return badArgument("expected_digest", "expected_digest is the digest of a preview, 64 hex digits")
	}
	var all []Target
	for i, p := range in.Paths {
		field := fmt.Sprintf("paths[%d]", i)
		short, err := filePath(field, p)
		if err != nil {
			return err
		}
		all = append(all, Target{Change: i, Path: short, Field: field})
	}
	if err := Distinct(all); err != nil {
		return fault.As(err).WithNext("name each file or directory once")
	}
	return nil
}

func init() {
	addOp[DiscardIn, DiscardOut](OpDiscardUntracked, true)
	addOp[DiscardIn, DiscardOut](OpPreviewDiscard, false)
}
