package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Bounds of a backup.
const (
	// backupReserve stays free on the disk of the backup: where that is the log's own, the
	// server goes on.
	backupReserve = 64 << 20
	// backupLook is how many bytes are written between two looks at the free space.
	backupLook = 4 << 20
	// maxBackupLine bounds one line of the copy: a commit, or what the server says around them.
	maxBackupLine = event.MaxCommitBytes + 1
)

func backupCommand() command {
	return command{
		name: "backup", args: "DIR", min: 1, max: 1, short: "copy the log while it is used",
		long: `Writes a copy of every commit acknowledged so far to DIR, which must not exist or be empty, and
checks what it wrote. The server goes on meanwhile; without one the log itself is read. restore
makes a data directory of it.

Not in the copy: the owner's token (a restored server makes another one), the keys that digests
are made with, and the Runner's journal. The copy is as private as the data directory: keep it so.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				m, err := backup(ctx, dir, args[0])
				if err != nil {
					return err
				}
				if *asJSON {
					return printJSON(s.out, m)
				}
				_, err = fmt.Fprintf(s.out, "%d commits, %s, copied and checked; the token and keys are not in it\n", m.Commits, size(uint64(m.bytes())))
				return err
			}
		},
	}
}

// backup copies the log of a data directory to a new directory. On an error nothing is left
// there that could be taken for a backup.
func backup(ctx context.Context, dir, to string) (_ manifest, err error) {
	to, err = filepath.Abs(to)
	if err != nil {
		return manifest{}, err
	}
	if err := backupApart(dir, to); err != nil {
		return manifest{}, err
	}
	from, err := openSource(ctx, dir)
	if err != nil {
		return manifest{}, err
	}
	defer from.Close()
	made, err := emptyDir(to)
	if err != nil {
		return manifest{}, err
	}
	w := backupWriter{dir: to, data: dir}
	m, err := w.write(from)
	if err != nil {
		w.undo(made)
		return manifest{}, backupError(err)
	}
	return m, nil
}

// backupError says in one sentence what a disk error means here.
func backupError(err error) error {
	switch {
	case fullDisk(err):
		return failf(exitStorage, "the disk of the backup is full: nothing was kept, the server is as it was; free some space or name another disk")
	case errors.Is(err, context.Canceled):
		return err
	}
	var f *fault.Error
	var x *exitError
	if errors.As(err, &f) || errors.As(err, &x) {
		return err
	}
	return failf(exitFailed, "the backup cannot be written, nothing was kept: %v", short(err))
}

// backupApart refuses a place that the server or its tools write to or show.
func backupApart(dir, to string) error {
	inside, err := within(dir, to)
	if err != nil {
		return err
	}
	if inside {
		return usagef("the backup would lie in the data directory: name another place")
	}
	roots, err := projectRoots(dir)
	if err != nil {
		return err
	}
	for _, root := range roots {
		if inside, err := within(root, to); err != nil {
			return err
		} else if inside {
			return usagef("the backup would lie in a Project, where its tools could read it: name another place")
		}
	}
	return nil
}

// projectRoots are the directories of every Project that the data directory knows.
func projectRoots(dir string) ([]string, error) {
	body, err := os.ReadFile(filepath.Join(dir, projectsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var roots []string
	if err == nil {
		roots, err = rootsIn(body)
	}
	if err != nil {
		return nil, failf(exitFailed, "%s in the data directory cannot be read: `webcodex doctor` tells more", projectsFile)
	}
	return roots, nil
}

// rootsIn are the directories that a Runner's list of Projects names.
func rootsIn(body []byte) (out []string, err error) {
	var list []struct {
		Path string `json:"path"`
	}
	err = json.Unmarshal(body, &list)
	for _, p := range list {
		out = append(out, p.Path)
	}
	return out, err
}

// emptyDir makes the directory 0700, or takes an empty one that is ours alone. Made is the
// highest directory that it created.
func emptyDir(to string) (made string, err error) {
	for p := to; ; p = filepath.Dir(p) {
		if _, err := os.Lstat(p); err == nil || p == filepath.Dir(p) {
			break
		}
		made = p
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", failf(exitFailed, "the directory cannot be created: %w", short(err))
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		return "", failf(exitFailed, "the directory cannot be read: %w", short(err))
	}
	if len(entries) > 0 {
		return "", usagef("the directory is not empty: name one that does not exist")
	}
	// Its owner could open it again, also where we could close it for others.
	if info, err := os.Stat(to); err != nil || !ours(info) {
		return "", failf(exitAccess, "the directory belongs to another account: name one that does not exist")
	}
	if err := os.Chmod(to, 0o700); err != nil {
		return "", failf(exitAccess, "the directory cannot be made private: %v", short(err))
	}
	return made, nil
}

// backupWriter writes one backup.
type backupWriter struct {
	dir, data string
	files     []copiedFile
	first     uint64 // sequence of the copy
	unlooked  int    // bytes since the last look at the free space
}

func (w *backupWriter) write(from io.Reader) (manifest, error) {
	if err := w.room(0); err != nil {
		return manifest{}, err
	}
	if err := w.file(copyLog, func(out io.Writer) error { return w.lines(out, from) }); err != nil {
		return manifest{}, err
	}
	// After the log: a Project that it names stands in the list by now.
	for _, f := range smallFiles {
		body, err := os.ReadFile(filepath.Join(w.data, f.path))
		if errors.Is(err, fs.ErrNotExist) && !f.required {
			continue
		}
		if err != nil {
			return manifest{}, failf(exitFailed, "%s in the data directory cannot be read: %v", f.path, short(err))
		}
		if err := w.file(f.copy, func(out io.Writer) error { _, err := out.Write(body); return err }); err != nil {
			return manifest{}, err
		}
	}
	// What is on the disk is read again: a copy nobody looked at is a hope.
	span, err := w.reread()
	if err != nil {
		return manifest{}, err
	}
	m := manifest{Format: backupFormat, Program: thisBuild().Version, At: event.FormatTime(time.Now()), Span: span,
		Commits: span.Last - span.First + 1, Files: w.files}
	m.Sum = m.sum()
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return manifest{}, err
	}
	if err := syncDir(w.dir); err != nil {
		return manifest{}, err
	}
	return m, errors.Join(writeDurably(filepath.Join(w.dir, manifestFile), append(body, '\n')), syncDir(filepath.Dir(w.dir)))
}

// lines copies the commits from what the server says, and nothing else.
func (w *backupWriter) lines(out io.Writer, from io.Reader) error {
	r := bufio.NewReaderSize(from, 1<<20)
	head, err := backupLine(r)
	if err != nil {
		return err
	}
	var h backupHead
	if json.Unmarshal(head, &h) != nil || h.First == 0 || h.Last < h.First {
		return failf(exitFailed, "the server is of another version: restart it with this one")
	}
	if err := w.room(h.Bytes); err != nil {
		return err
	}
	w.first = h.First
	for range h.Last - h.First + 1 {
		line, err := backupLine(r)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte(`{"error":`)) {
			return backupFault(line)
		}
		if w.unlooked += len(line); w.unlooked > backupLook {
			w.unlooked = 0
			if err := w.room(0); err != nil {
				return err
			}
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// backupLine reads a line without its end.
func backupLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	switch {
	case err == nil && len(line) <= maxBackupLine:
		return line[:len(line)-1], nil
	case errors.Is(err, context.Canceled), fullDisk(err):
		return nil, err
	}
	return nil, failf(exitNoServer, "the server ended before the copy was complete: nothing was kept")
}

// room refuses to fill the disk: there may be others on it, the log among them.
func (w *backupWriter) room(bytes int64) error {
	var st syscall.Statfs_t
	if syscall.Statfs(w.dir, &st) == nil && int64(st.Bavail)*int64(st.Bsize)-bytes < backupReserve {
		return fmt.Errorf("room for the backup: %w", syscall.ENOSPC)
	}
	return nil
}

// file writes one file durably, 0600, and notes its hash.
func (w *backupWriter) file(name string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(f, 1<<20)
	sum := newSummer(buf)
	if err = fill(sum); err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	w.files = append(w.files, sum.file(name))
	return nil
}

// reread checks the files that were written as a restore would.
func (w *backupWriter) reread() (span eventlog.Span, err error) {
	for _, f := range w.files {
		err := readCopy(w.dir, f, func(r io.Reader) error {
			if f.Name != copyLog {
				return nil
			}
			check, next := eventlog.NewCheck(w.first), copyLines(r)
			for {
				line, err := next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err == nil {
					_, err = check.Add(line)
				}
				if err != nil {
					return err
				}
			}
			var err error
			span, err = check.End()
			return err
		})
		if err != nil {
			return span, err
		}
	}
	return span, nil
}

// undo takes away what was begun. Without its manifest it is no backup anyway.
func (w *backupWriter) undo(made string) {
	for _, f := range append([]string{copyLog, manifestFile}, smallNames()...) {
		os.Remove(filepath.Join(w.dir, f))
	}
	for p := w.dir; made != ""; p = filepath.Dir(p) {
		if os.Remove(p) != nil || p == made {
			return
		}
	}
}
