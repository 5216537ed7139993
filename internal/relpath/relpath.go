// Package relpath is what can be said about a caller's path without looking at a file: the
// form of a project-relative path (faults.md 4, Files). The server refuses by it before
// anything is recorded, the Runner before it walks; what it accepts still has to be walked.
package relpath

import (
	"path"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
)

// Bounds of a path (AUTH-19).
const (
	// MaxBytes is the bytes of one path (PATH_MAX without its NUL), MaxName of one name.
	MaxBytes = 4095
	MaxName  = 255
	// MaxDepth is the names of one path.
	MaxDepth = 256
)

// Reason codes of invalid_path that a path's text alone can give (shapes.md 3).
const (
	Absolute    = "absolute"
	Outside     = "outside_project"
	GitInternal = "git_internal"
	Empty       = "empty"
	NUL         = "nul"
	TooLong     = "too_long"
	NotUTF8     = "not_utf8"
	Malformed   = "malformed" // of a path in a list for git
)

// sentences say what is wrong; the path itself is the caller's text and is not quoted (it may
// hold a secret).
var sentences = map[string]string{
	Absolute:    "the path is absolute; paths are relative to the Project's root",
	Outside:     "the path leads out of the Project",
	GitInternal: "the path leads into git's own files, which the file tools leave alone",
	Empty:       "the path is empty",
	NUL:         "the path holds a NUL character",
	TooLong:     "the path or one of its names is too long",
	NotUTF8:     "the path is not valid UTF-8",
}

var nextSteps = map[string]string{
	Absolute:    "give the path relative to the Project's root",
	GitInternal: "use the git tools",
}

// Refuse is the refusal (invalid_path) for one of the reasons; nil for a reason that a
// path's text cannot give. The caller adds the field.
func Refuse(reason string, cause error) *fault.Error {
	sentence, ok := sentences[reason]
	if !ok {
		return nil
	}
	e := fault.Wrap(cause, fault.InvalidPath, "%s", sentence).WithReason(reason)
	e.Next = nextSteps[reason]
	return e
}

// Split gives the names of a path; none for the root. Errors: invalid_path with a reason.
func Split(p string) ([]string, error) {
	switch {
	case !utf8.ValidString(p):
		return nil, Refuse(NotUTF8, nil)
	case strings.IndexByte(p, 0) >= 0:
		return nil, Refuse(NUL, nil)
	case len(p) > MaxBytes:
		return nil, Refuse(TooLong, nil)
	case strings.HasPrefix(p, "/"):
		return nil, Refuse(Absolute, nil)
	}
	var out []string
	for name := range strings.SplitSeq(p, "/") {
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			return nil, Refuse(Outside, nil)
		case len(name) > MaxName:
			return nil, Refuse(TooLong, nil)
		case IsGit(name):
			return nil, Refuse(GitInternal, nil)
		}
		out = append(out, name)
	}
	if len(out) > MaxDepth {
		return nil, Refuse(TooLong, nil)
	}
	return out, nil
}

// SplitFile is Split for a path that must name something below the root. A path that ends
// like a directory's ("a/", "a/.") ends in the name ".".
func SplitFile(p string) ([]string, error) {
	parts, err := Split(p)
	switch {
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, Refuse(Empty, nil)
	case strings.HasSuffix(p, "/"), strings.HasSuffix(p, "/."):
		parts = append(parts, ".")
	}
	return parts, nil
}

// Clean checks the paths of a list that goes to git and gives them in their shortest
// spelling, at most so many. Errors: invalid_arguments for too many, invalid_path with reason
// absolute, outside_project or malformed; both name the field.
func Clean(field string, paths []string, most int) ([]string, error) {
	if len(paths) > most {
		return nil, fault.New(fault.InvalidArguments, "%s has more than %d entries", field, most).WithField(field)
	}
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		reason := ""
		switch {
		case p == "" || len(p) > MaxBytes || strings.ContainsRune(p, 0) || !utf8.ValidString(p):
			reason = Malformed
		case strings.HasPrefix(p, "/"):
			reason = Absolute
		default:
			if p = path.Clean(p); p == ".." || strings.HasPrefix(p, "../") {
				reason = Outside
			}
		}
		if reason != "" {
			return nil, fault.New(fault.InvalidPath, "a path must be project-relative, at most %d bytes of UTF-8, and not lead out of the Project",
				MaxBytes).WithField(field).WithReason(reason)
		}
		out = append(out, p)
	}
	return out, nil
}
