package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"webcodex/internal/fault"
)

// Restore puts tracked files back to their staged content and mode, and reports which were
// changed by that and which were as staged already. All paths are checked before anything is
// written; each must be a tracked file or symlink that is not conflicted, whose content no
// filter makes, and in whose place lies nothing but a file, a symlink, or nothing.
//
// Refusals are invalid_path with field paths and a reason_code: not_tracked, conflicted,
// git_internal, not_regular, content_filter. A failure after the writing began has
// state_changed set.
func (r *Repo) Restore(ctx context.Context, paths []string) (restored, unchanged []string, err error) {
	if err := r.checkRestore(ctx, paths); err != nil {
		return nil, nil, err
	}
	differ := map[string]bool{}
	err = r.Differing(ctx, paths, func(p, change string) error {
		if change == Added {
			return refusePath("not_tracked", "%q is only meant to be added: nothing is staged to restore it from", p)
		}
		differ[p] = true
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, p := range paths {
		switch {
		case seen[p]:
		case differ[p]:
			restored = append(restored, p)
		default:
			unchanged = append(unchanged, p)
		}
		seen[p] = true
	}
	if len(restored) == 0 {
		return restored, unchanged, nil
	}
	return restored, unchanged, r.checkout(ctx, restored)
}

func (r *Repo) checkout(ctx context.Context, paths []string) error {
	args := append([]string{"checkout-index", "--force", "--index", "--"}, paths...)
	if err := r.git(ctx, nothing, args...); err != nil {
		return changed(r.failed(err))
	}
	var left []string
	if err := r.Differing(ctx, paths, func(p, _ string) error { left = append(left, p); return nil }); err != nil {
		return changed(err)
	}
	if len(left) > 0 {
		shown, _ := Show(left[0])
		return changed(fault.New(fault.TransactionFailed, "git did not put every file back to its staged content").
			With("paths", []string{shown}))
	}
	return nil
}

func changed(err error) error {
	f := *fault.As(err)
	f.StateChanged = true
	return &f
}

func refusePath(reason, format, p string) error {
	shown, _ := Show(p)
	return fault.New(fault.InvalidPath, format, shown).WithField("paths").WithReason(reason)
}

func (r *Repo) checkRestore(ctx context.Context, paths []string) error {
	for _, p := range paths {
		if Internal(p) {
			return refusePath("git_internal", "%q is part of the repository itself", p)
		}
		if err := r.placeFree(p); err != nil {
			return err
		}
	}
	index := map[string]Tracked{}
	if err := r.Tracked(ctx, paths, func(t Tracked) error { index[t.Path] = t; return nil }); err != nil {
		return err
	}
	for _, p := range paths {
		t, ok := index[p]
		switch {
		case !ok:
			return refusePath("not_tracked", "%q is not a tracked file: nothing is staged to restore it from", p)
		case t.Stage != 0:
			return refusePath("conflicted", "%q is in a merge conflict: it has no single staged content", p)
		case t.Kind == KindSubmodule:
			return refusePath("not_regular", "%q is a submodule, not a file", p)
		}
	}
	return r.checkFilters(ctx, paths)
}

// placeFree refuses a path where git would have to remove something else to write the file.
func (r *Repo) placeFree(p string) error {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		info, err := r.root.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !info.IsDir() {
			return refusePath("not_regular", "%q lies below something that is not a directory", p)
		}
	}
	info, err := r.root.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return refusePath("not_regular", "%q could not be looked at", p)
	case info.IsDir():
		return refusePath("not_regular", "%q is a directory; name the files in it", p)
	case !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0:
		return refusePath("not_regular", "%q is neither a file nor a symlink", p)
	}
	return nil
}

// checkFilters refuses files whose working tree content a filter makes from the staged one:
// with filters off a stand-in would be written in their place.
func (r *Repo) checkFilters(ctx context.Context, paths []string) error {
	if len(r.filters) == 0 {
		return nil
	}
	configured := map[string]bool{}
	for _, f := range r.filters {
		configured[f] = true
	}
	var rec []string
	return r.failed(r.git(ctx, records(func(b []byte) error {
		if rec = append(rec, string(b)); len(rec) < 3 {
			return nil
		}
		name, filter := rec[0], rec[2]
		rec = rec[:0]
		if configured[filter] {
			return refusePath("content_filter", "%q is under a content filter, which is not run here", strings.TrimSpace(name))
		}
		return nil
	}), append([]string{"check-attr", "-z", "filter", "--"}, paths...)...))
}
