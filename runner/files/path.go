package files

import (
	"webcodex/internal/fault"
	"webcodex/internal/relpath"
)

// Reason codes of invalid_path (shapes.md 3).
const (
	reasonAbsolute       = relpath.Absolute
	reasonOutside        = relpath.Outside
	reasonSymlinkOutside = "symlink_outside"
	reasonGitInternal    = relpath.GitInternal
	reasonNotRegular     = "not_regular"
	reasonNotFound       = "not_found"
	reasonNotDirectory   = "not_a_directory"
	reasonEmpty          = relpath.Empty
	reasonNUL            = relpath.NUL
	reasonTooLong        = relpath.TooLong
	reasonNotUTF8        = relpath.NotUTF8
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

// sentences say what is wrong with a path besides its text (relpath); the path itself is not
// quoted.
var sentences = map[string]string{
	reasonSymlinkOutside: "the path goes through a symbolic link that leads out of the Project",
	reasonNotRegular:     "the path does not name a regular file",
	reasonNotFound:       "there is no such file in the Project",
	reasonNotDirectory:   "a part of the path that must be a directory is not one",
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
	reasonNotFound:     "find the right path with list_project_files or search_project_texts",
	reasonNotDirectory: "find the right path with list_project_files",
	reasonExists:       "read it first, then edit or overwrite it with its sha256",
	reasonChanged:      "look again and repeat the call",
}

// badPath is the refusal of a path. The caller adds the field.
func badPath(reason string, cause error) *fault.Error {
	if e := relpath.Refuse(reason, cause); e != nil {
		return e
	}
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

// at adds the argument's name to a path's refusal.
func at(err error, field string) error {
	if e := fault.As(err); e != nil {
		return e.WithField(field)
	}
	return nil
}
