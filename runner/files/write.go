package files

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// write answers write_project_file: the content byte for byte.
func (s *service) write(ctx context.Context, p *runner.Project, in wire.WriteFileIn) (wire.WriteFileOut, error) {
	if err := in.Check(); err != nil {
		return wire.WriteFileOut{}, err
	}
	defer s.exclusive(p.Root, p.Fingerprint)()
	pl := &plan{p: p}
	defer pl.close()
	parts, err := relpath.SplitFile(in.Path)
	if err != nil {
		return wire.WriteFileOut{}, at(err, "path")
	}
	t := pl.tree()
	where, err := t.find(parts, finding{follow: true, create: true})
	if err != nil {
		return wire.WriteFileOut{}, at(err, "path")
	}
	content := []byte(in.Content)
	out := wire.WriteFileOut{Path: where.path, BytesWritten: int64(len(content)), SHA256: hashOf(content)}
	if where.info == nil {
		if in.ExpectedSHA256 != "" || in.ExpectedPrefix != nil {
			return wire.WriteFileOut{}, at(badPath(reasonNotFound, nil), "path")
		}
		out.Created, out.Changed = true, true
		return out, s.transact(ctx, p, []step{{&create{tree: t, at: where, content: content}, 0, "path"}})
	}
	before, sum, err := pl.existing(&where, in)
	if err != nil {
		return wire.WriteFileOut{}, err
	}
	out.Overwritten, out.SHA256Before = true, sum
	if bytes.Equal(before, content) {
		return out, nil
	}
	out.Changed = true
	return out, s.transact(ctx, p, []step{{&replace{at: where, before: before, after: content}, 0, "path"}})
}

// existing checks that an existing file may be overwritten: the caller must show to know it.
func (pl *plan) existing(where *place, in wire.WriteFileIn) ([]byte, string, error) {
	if where.info.Mode().IsRegular() && !in.Overwrite {
		return nil, "", at(badPath(reasonExists, nil), "path")
	}
	before, sum, err := pl.load(where, true)
	if err != nil {
		return nil, "", at(err, "path")
	}
	if in.ExpectedSHA256 == "" && in.ExpectedPrefix == nil {
		return nil, "", fault.New(fault.InvalidArguments, "overwriting a file needs expected_sha256 or expected_content_prefix").
			WithField("expected_sha256").WithNext("read the file first and pass its sha256")
	}
	if in.ExpectedSHA256 != "" && !strings.EqualFold(in.ExpectedSHA256, sum) {
		return nil, "", conflicted([]wire.EditConflict{{Path: where.path, Kind: wire.SHA256Mismatch, ActualSHA256: sum}})
	}
	if in.ExpectedPrefix != nil && !bytes.HasPrefix(before, []byte(*in.ExpectedPrefix)) {
		return nil, "", conflicted([]wire.EditConflict{{Path: where.path, Kind: wire.MatchNotFound, ActualSHA256: sum}})
	}
	return before, sum, nil
}

// remove answers delete_project_files: files and symbolic links themselves; what is not
// there is fine. One refused path refuses all.
func (s *service) remove(ctx context.Context, p *runner.Project, in wire.DeleteFilesIn) (wire.DeleteFilesOut, error) {
	if err := in.Check(); err != nil {
		return wire.DeleteFilesOut{}, err
	}
	defer s.exclusive(p.Root, p.Fingerprint)()
	pl := &plan{p: p}
	defer pl.close()
	out := wire.DeleteFilesOut{Deleted: []string{}, Missing: []string{}}
	seen := map[string]bool{}
	for i, path := range in.Paths {
		field := fmt.Sprintf("paths[%d]", i)
		parts, err := relpath.SplitFile(path)
		if err != nil {
			return wire.DeleteFilesOut{}, at(err, field)
		}
		where, err := pl.tree().find(parts, finding{})
		if f := fault.As(err); f != nil && f.Reason == reasonNotFound {
			out.Missing = append(out.Missing, strings.TrimSuffix(strings.Join(parts, "/"), "/."))
			continue
		}
		if err != nil {
			return wire.DeleteFilesOut{}, at(err, field)
		}
		if m := where.info.Mode(); !m.IsRegular() && m&fs.ModeSymlink == 0 {
			return wire.DeleteFilesOut{}, at(badPath(reasonNotRegular, nil), field)
		}
		if !seen[where.path] {
			seen[where.path] = true
			pl.steps = append(pl.steps, step{&remove{at: where}, i, field})
			out.Deleted = append(out.Deleted, where.path)
		}
	}
	if err := s.transact(ctx, p, pl.steps); err != nil {
		return wire.DeleteFilesOut{}, err
	}
	return out, nil
}
