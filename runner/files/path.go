package files

import (
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner/wire"
)

// Reason codes of invalid_path (shapes.md 3).
const (
	reasonAbsolute       = "absolute"
	reasonOutside        = "outside_project"
	reasonSymlinkOutside = "symlink_outside"
	reasonGitInternal    = "git_internal"
	reasonNotRegular     = "not_regular"
	reasonNotFound       = "not_found"
	reasonNotDirectory   = "not_a_directory"
	reasonEmpty          = "empty"
	reasonNUL            = "nul"
	reasonTooLong        = "too_long"
	reasonNotUTF8        = "not_utf8"
	reasonExists         = "already_exists"
	reasonHardLink       = "hard_link"
	reasonSymlink        = "symlink"
	reasonSymlinkLoop    = "symlink_loop"
	reasonReadOnly       = "read_only"
	reasonTooLarge       = "too_large"
	reasonBinary         = "binary"
	reasonChanged        = "changed_meanwhile"
	reasonUnreadable     = "unreadable"
)

// sentences say what is wrong with a path; the path itself is the caller's text and is not
// quoted (it may hold a secret).
var sentences = map[string]string{
	reasonAbsolute:       "the path is absolute; paths are relative to the Project's root",
	reasonOutside:        "the path leads out of the Project",
	reasonSymlinkOutside: "the path goes through a symbolic link that leads out of the Project",
	reasonGitInternal:    "the path leads into git's own files, which the file tools leave alone",
	reasonNotRegular:     "the path does not name a regular file",
	reasonNotFound:       "there is no such file in the Project",
	reasonNotDirectory:   "a part of the path that must be a directory is not one",
	reasonEmpty:          "the path is empty",
	reasonNUL:            "the path holds a NUL character",
	reasonTooLong:        "the path or one of its names is too long",
	reasonNotUTF8:        "the path is not valid UTF-8",
	reasonExists:         "something exists already at the path",
	reasonHardLink:       "the file has more than one name (hard link); writing it could change a file outside the Project",
	reasonSymlink:        "the path names a symbolic link; name the file it leads to",
	reasonSymlinkLoop:    "the path goes through too many symbolic links",
	reasonReadOnly:       "the file is write-protected",
	reasonTooLarge:       "the file is too large for this tool",
	reasonBinary:         "the file is not text",
	reasonChanged:        "the path was changed by someone else meanwhile",
	reasonUnreadable:     "the path could not be read",
}

var nextSteps = map[string]string{
	reasonAbsolute:     "give the path relative to the Project's root",
	reasonNotFound:     "find the right path with list_project_files or search_project_texts",
	reasonNotDirectory: "find the right path with list_project_files",
	reasonExists:       "read it first, then edit or overwrite it with its sha256",
	reasonGitInternal:  "use the git tools",
	reasonChanged:      "look again and repeat the call",
}

// badPath is the refusal of a path. The caller adds the field.
func badPath(reason string, cause error) *fault.Error {
	e := fault.Wrap(cause, fault.InvalidPath, "%s", sentences[reason]).WithReason(reason)
	if next := nextSteps[reason]; next != "" {
		e.Next = next
	}
	switch reason {
	case reasonChanged:
		e.Recovery = fault.RetrySame
	case reasonExists:
		e.Recovery = fault.ReRead
	}
	return e
}

// split checks a caller's path as text and gives its components; none for the root. What it
// accepts still has to be walked.
func split(p string) ([]string, error) {
	switch {
	case !utf8.ValidString(p):
		return nil, badPath(reasonNotUTF8, nil)
	case strings.IndexByte(p, 0) >= 0:
		return nil, badPath(reasonNUL, nil)
	case len(p) > wire.MaxFilePath:
		return nil, badPath(reasonTooLong, nil)
	case strings.HasPrefix(p, "/"):
		return nil, badPath(reasonAbsolute, nil)
	}
	return components(p, reasonOutside)
}

// components splits a slash-separated path that may not lead upwards.
func components(p, upwards string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			return nil, badPath(upwards, nil)
		case len(part) > wire.MaxFileName:
			return nil, badPath(reasonTooLong, nil)
		case git.Internal(part):
			return nil, badPath(reasonGitInternal, nil)
		}
		out = append(out, part)
	}
	if len(out) > maxDepth {
		return nil, badPath(reasonTooLong, nil)
	}
	return out, nil
}

// splitFile is split for a path that must name something below the root.
func splitFile(p string) ([]string, error) {
	parts, err := split(p)
	if err == nil && len(parts) == 0 {
		return nil, badPath(reasonEmpty, nil)
	}
	return parts, err
}

// at adds the argument's name to a path's refusal.
func at(err error, field string) error {
	if e := fault.As(err); e != nil {
		return e.WithField(field)
	}
	return nil
}
