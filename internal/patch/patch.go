// Package patch reads unified diffs and applies them to texts. It is strict: what it does not
// understand is refused with the line, what does not fit a text exactly is a conflict, and nothing
// is guessed but where a hunk has moved to as a whole, when there is one such place.
package patch

import "fmt"

// Kinds of a File.
const (
	Edit   = "edit"
	Create = "create"
	Delete = "delete"
	Rename = "rename"
	Copy   = "copy"
)

// Modes that a file may be given.
const (
	ModePlain      = "100644"
	ModeExecutable = "100755"
)

// Bounds of one patch (AUTH-19; 256 KiB as the original had it).
const (
	MaxBytes = 256 << 10
	MaxFiles = 32
	MaxHunks = 500 // of all files together
)

// File is one file's change. Paths are as the patch names them, without a/ and b/; whether they
// stay in a Project is not looked at here.
type File struct {
	Kind   string
	Path   string // of the file as it is; of the new one for Create
	ToPath string // Rename, Copy
	Mode   string // the mode it gets; empty: as it was, or the default for a new one
	Hunks  []Hunk
	At     int // line of the patch where it begins, from 1
}

// Hunk is one place of a file, as the patch states it.
type Hunk struct {
	OldStart, OldLines, NewStart, NewLines int
	Lines                                  []Line
	At                                     int // line of the patch
}

// Line is one line of a hunk: its mark (space, + or -) and its text with the line end, which the
// last line of a file may lack.
type Line struct {
	Mark byte
	Text string
}

// Reasons of an Error.
const (
	Empty        = "empty_patch"
	Malformed    = "malformed_patch"
	HunkCounts   = "hunk_counts"          // a hunk has other lines than its head says
	HunkOrder    = "hunks_out_of_order"   // hunks of a file overlap or go back
	NoContext    = "hunk_without_context" // nothing tells where it belongs
	Binary       = "binary_patch"
	Combined     = "combined_diff"
	Mode         = "unsupported_mode" // a symbolic link, a submodule
	NameMismatch = "name_mismatch"
	TooMany      = "too_many"
	NothingToDo  = "no_change" // a file's header without anything to do
)

// Error is why a text is not a patch that can be applied. It quotes nothing of it.
type Error struct {
	Reason  string
	Line    int // of the patch, from 1
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

func bad(line int, reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Line: line, Message: fmt.Sprintf(format, args...)}
}

// Counts are the lines that the file's hunks add and delete.
func (f File) Counts() (added, deleted int) {
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			switch l.Mark {
			case '+':
				added++
			case '-':
				deleted++
			}
		}
	}
	return added, deleted
}

// Paths are those that the change touches; the source of a copy is only read.
func (f File) Paths() []string {
	switch f.Kind {
	case Rename:
		return []string{f.Path, f.ToPath}
	case Copy:
		return []string{f.ToPath}
	}
	return []string{f.Path}
}
