package wire

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
)

// Check says what is wrong with a request without looking at a file: which members each kind
// has and needs, their bounds, the form of the paths, and two changes of one path. The server
// asks before it records a start, the Runner because it trusts nobody. Errors:
// invalid_arguments and invalid_path, both with a field.
func (in EditFilesIn) Check() error {
	if len(in.Changes) == 0 || len(in.Changes) > MaxChanges {
		return badArgument("changes", "changes must have 1 to %d entries", MaxChanges)
	}
	for i, c := range in.Changes {
		if err := checkChange(fmt.Sprintf("changes[%d]", i), c); err != nil {
			return err
		}
	}
	var all []Target
	for i, c := range in.Changes {
		targets, err := targetsOf(i, c)
		if err != nil {
			return err
		}
		all = append(all, targets...)
	}
	return Distinct(all)
}

// Check is that of EditFilesIn for a whole file.
func (in WriteFileIn) Check() error {
	if in.ExpectedSHA256 != "" && !hex64.MatchString(in.ExpectedSHA256) {
		return badArgument("expected_sha256", "expected_sha256 must be 64 hex digits")
	}
	if err := checkText("content", in.Content, MaxWriteBytes); err != nil {
		return err
	}
	_, err := filePath("path", in.Path)
	return err
}

// Check is that of EditFilesIn for files to delete.
func (in DeleteFilesIn) Check() error {
	if len(in.Paths) == 0 || len(in.Paths) > MaxDeletePaths {
		return badArgument("paths", "paths must have 1 to %d entries", MaxDeletePaths)
	}
	for i, p := range in.Paths {
		if _, err := filePath(fmt.Sprintf("paths[%d]", i), p); err != nil {
			return err
		}
	}
	return nil
}

// filePath is a path that names a file, in its shortest spelling.
func filePath(field, path string) (string, error) {
	parts, err := relpath.SplitFile(path)
	if err != nil {
		return "", fault.As(err).WithField(field)
	}
	return strings.TrimSuffix(strings.Join(parts, "/"), "/."), nil
}

// Target is a path that a change touches.
type Target struct {
	Change int
	Path   string // in its shortest spelling
	Field  string // the argument that names it
}

func targetsOf(i int, c Change) ([]Target, error) {
	field := fmt.Sprintf("changes[%d].path", i)
	path, err := filePath(field, c.Path)
	if err != nil {
		return nil, err
	}
	out := []Target{{i, path, field}}
	if c.Kind == ChangeRename {
		field = fmt.Sprintf("changes[%d].to_path", i)
		if path, err = filePath(field, c.ToPath); err != nil {
			return nil, err
		}
		out = append(out, Target{i, path, field})
	}
	return out, nil
}

// Distinct refuses changes of one file, or of a file and something below it: their outcome
// would depend on the order. Error: invalid_arguments with reason duplicate_path.
func Distinct(all []Target) error {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Target) int { return strings.Compare(a.Path+"/", b.Path+"/") })
	for i := 1; i < len(all); i++ {
		if all[i].Change != all[i-1].Change && strings.HasPrefix(all[i].Path+"/", all[i-1].Path+"/") {
			return badArgument(all[i].Field, "two changes of one call touch the same file, or one lies below the other").
				WithReason("duplicate_path").WithNext("put all edits of a file into one change, or make two calls")
		}
	}
	return nil
}

var hex64 = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func checkChange(field string, c Change) error {
	needs := func(name, why string) error { return badArgument(field+"."+name, "%s.%s %s", field, name, why) }
	switch {
	case c.ExpectedSHA256 != "" && !hex64.MatchString(c.ExpectedSHA256):
		return needs("expected_sha256", "must be 64 hex digits")
	case c.Kind != ChangeEdit && len(c.Edits) > 0:
		return needs("edits", "belongs to kind edit only")
	case c.Kind != ChangeRename && c.ToPath != "":
		return needs("to_path", "belongs to kind rename only")
	case c.Kind != ChangeCreate && c.Content != nil:
		return needs("content", "belongs to kind create only")
	}
	switch c.Kind {
	case ChangeEdit:
		if len(c.Edits) == 0 || len(c.Edits) > MaxEdits {
			return needs("edits", fmt.Sprintf("must have 1 to %d entries", MaxEdits))
		}
		for i, e := range c.Edits {
			if err := checkEdit(fmt.Sprintf("%s.edits[%d]", field, i), e); err != nil {
				return err
			}
		}
		return nil
	case ChangeCreate:
		if c.Content == nil {
			return needs("content", "is required for kind create")
		}
		if c.ExpectedSHA256 != "" {
			return needs("expected_sha256", "makes no sense for a file to be created")
		}
		return checkText(field+".content", *c.Content, MaxEditText)
	case ChangeDelete, ChangeRename:
		if c.ExpectedSHA256 == "" {
			return needs("expected_sha256", "is required for kind "+c.Kind)
		}
		if c.Kind == ChangeRename && c.ToPath == "" {
			return needs("to_path", "is required for kind rename")
		}
		return nil
	}
	return needs("kind", "must be one of edit, create, delete, rename")
}

func checkEdit(field string, e TextEdit) error {
	if e.OldText == "" {
		return badArgument(field+".old_text", "%s.old_text must not be empty", field)
	}
	if err := checkText(field+".old_text", e.OldText, MaxEditText); err != nil {
		return err
	}
	if e.Occurrence != nil && (*e.Occurrence < 1 || *e.Occurrence > MaxOccurrence) {
		return badArgument(field+".occurrence", "%s.occurrence must be 1 to %d", field, MaxOccurrence)
	}
	switch e.Kind {
	case DeleteExact:
		if e.NewText != nil && *e.NewText != "" {
			return badArgument(field+".new_text", "%s.new_text makes no sense for delete_exact", field)
		}
		return nil
	case ReplaceExact, InsertBefore, InsertAfter:
		if e.NewText == nil {
			return badArgument(field+".new_text", "%s.new_text is required for %s", field, e.Kind)
		}
		return checkText(field+".new_text", *e.NewText, MaxEditText)
	}
	return badArgument(field+".kind", "%s.kind must be one of replace_exact, delete_exact, insert_before, insert_after", field)
}

// checkText refuses what cannot be text: too long, not UTF-8, or with a NUL.
func checkText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return badArgument(field, "%s must have at most %d bytes", field, limit)
	case !utf8.ValidString(text):
		return badArgument(field, "%s is not valid UTF-8", field)
	case strings.IndexByte(text, 0) >= 0:
		return badArgument(field, "%s holds a NUL character", field)
	}
	return nil
}

func badArgument(field, format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidArguments, format, args...).WithField(field)
}

// CheckCwd refuses a working directory whose text leads out of the Project.
func (in ProcessIn) CheckCwd() error {
	reason, rel := "", path.Clean(in.Cwd)
	switch {
	case strings.IndexByte(rel, 0) >= 0:
		reason = relpath.NUL
	case path.IsAbs(rel):
		reason = relpath.Absolute
	case rel == ".." || strings.HasPrefix(rel, "../"):
		reason = relpath.Outside
	default:
		return nil
	}
	return relpath.Refuse(reason, nil).WithField("cwd")
}
