package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// scopeOf checks a scope and gives it in git's terms and in one word.
func scopeOf(s wire.DiffScope) (git.Scope, string, error) {
	paths, err := relpath.Clean("paths", s.Paths, maxPaths)
	if err != nil {
		return git.Scope{}, "", err
	}
	bad := func(field, message string) (git.Scope, string, error) {
		return git.Scope{}, "", fault.New(fault.InvalidArguments, "%s", message).WithField(field)
	}
	switch {
	case s.Base == "" && s.Head == "":
		if s.Cached {
			return git.Scope{Paths: paths, Cached: true}, "staged", nil
		}
		return git.Scope{Paths: paths}, "working_tree", nil
	case s.Cached:
		return bad("cached", "cached and two commits exclude each other")
	case s.Base == "":
		return bad("base_commit", "base_commit and head_commit are given together")
	case s.Head == "":
		return bad("head_commit", "base_commit and head_commit are given together")
	case !git.ValidID(s.Base):
		return bad("base_commit", "base_commit is a full commit id of 40 or 64 lowercase hex digits")
	case !git.ValidID(s.Head):
		return bad("head_commit", "head_commit is a full commit id of 40 or 64 lowercase hex digits")
	}
	return git.Scope{Paths: paths, Base: s.Base, Head: s.Head}, "committed", nil
}

func gitDiff(ctx context.Context, p *runner.Project, in wire.GitDiffIn) (wire.GitDiffOut, error) {
	scope, word, err := scopeOf(in.DiffScope)
	if err != nil {
		return wire.GitDiffOut{}, err
	}
	at, err := readCursor(in.Continuation, cursorDiff, in.DiffScope)
	if err != nil {
		return wire.GitDiffOut{}, err
	}
	return with(ctx, p, func(repo *git.Repo) (wire.GitDiffOut, error) {
		out := wire.GitDiffOut{Scope: word, Files: []wire.DiffFile{}, FiltersDisabled: repo.FiltersDisabled()}
		page := pager{limit: maxDiffFiles, room: filesChars}
		files := map[string]int{} // place in out.Files, -1 for one beyond the page
		err := repo.Stat(ctx, scope, func(f git.FileStat) error {
			if i, again := files[f.Path]; again {
				if i >= 0 { // of a conflicted path one of the two has the counts
					w := &out.Files[i]
					w.Additions, w.Deletions = max(w.Additions, f.Additions), max(w.Deletions, f.Deletions)
				}
				return nil
			}
			files[f.Path] = -1
			w := wire.DiffFile{Additions: f.Additions, Deletions: f.Deletions, Binary: f.Binary}
			w.Path, w.OrigPath, w.Lossy = names(f.Path, f.Orig)
			if at.At == 0 && page.take(chars(w.Path)+chars(w.OrigPath)+entryFrame) {
				files[f.Path] = len(out.Files)
				out.Files = append(out.Files, w)
			}
			return nil
		})
		if err != nil {
			return out, err
		}
		out.FileCount = len(files)
		return out, readDiff(ctx, repo, scope, at, &out)
	})
}

func readDiff(ctx context.Context, repo *git.Repo, scope git.Scope, at cursor, out *wire.GitDiffOut) error {
	return repo.Patch(ctx, scope, func(in io.Reader) error {
		sum := sha256.New()
		if err := skip(in, sum, at); err != nil {
			return err
		}
		raw := make([]byte, maxPageRaw)
		n, err := io.ReadFull(in, raw)
		whole := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !whole {
			return err
		}
		kept, text := cutPage(raw[:n], diffChars, whole)
		out.Diff = text
		if kept == n && whole {
			return nil
		}
		sum.Write(raw[:kept])
		at.At, at.Before = at.At+int64(kept), hex.EncodeToString(sum.Sum(nil))
		out.Truncated, out.NextContinuation = true, at.String()
		return git.Enough
	})
}

// skip passes over what earlier pages showed and checks that it is unchanged.
func skip(in io.Reader, sum hash.Hash, at cursor) error {
	if at.At == 0 {
		return nil
	}
	_, err := io.CopyN(sum, in, at.At)
	if errors.Is(err, io.EOF) || err == nil && hex.EncodeToString(sum.Sum(nil)) != at.Before {
		return stale()
	}
	return err
}

// cutPage keeps whole lines of raw up to room characters; a line that alone is too long is cut
// between characters. Whole says that nothing follows raw.
func cutPage(raw []byte, room int, whole bool) (kept int, text string) {
	line := 0 // end of the last line kept
	for kept < len(raw) {
		if !whole && !utf8.FullRune(raw[kept:]) {
			break
		}
		r, size := utf8.DecodeRune(raw[kept:])
		if room -= charLen(r); room < 0 {
			whole = false
			break
		}
		kept += size
		if r == '\n' {
			line = kept
		}
	}
	if (kept < len(raw) || !whole) && line > 0 {
		kept = line
	}
	return kept, strings.ToValidUTF8(string(raw[:kept]), "\uFFFD")
}
