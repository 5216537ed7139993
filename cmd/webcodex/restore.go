package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

func restoreCommand() command {
	return command{
		name: "restore", args: "BACKUP", min: 1, max: 1, short: "make a data directory out of a backup",
		long: `Checks every byte of the backup, and makes the data directory (--data) of it, which must not
exist or be empty. Until all is there and checked, nothing is: a restore that is interrupted is
done again. Sessions, their histories and refs are as they were at the backup; what came after
it is not known there, so it is another history: observation tokens of before say history_lost.

The owner's token is made anew at the next up. Tokens of others are suspended, since one that was
revoked after the backup would be good again: webcodex token rotate ID brings one back.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				m, err := restore(ctx, args[0], dir)
				if err != nil {
					return err
				}
				if *asJSON {
					return printJSON(s.out, m)
				}
				_, err = fmt.Fprintf(s.out, "%d commits restored, as of %s; `webcodex up` goes on from there\n", m.Commits, localTime(m.At))
				return err
			}
		},
	}
}

// restore makes a data directory out of a backup, or nothing.
func restore(ctx context.Context, from, dir string) (manifest, error) {
	m, err := readManifest(from)
	if err != nil {
		return m, err
	}
	if err := freshDataDir(dir); err != nil {
		return m, err
	}
	if err := restoreApart(from, dir, m); err != nil {
		return m, err
	}
	parent, prefix := filepath.Dir(dir), "."+filepath.Base(dir)+".restoring-"
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return m, failf(exitFailed, "the data directory cannot be created: %w", short(err))
	}
	sweepRestores(parent, prefix)
	tmp, err := os.MkdirTemp(parent, prefix+"*") // 0700
	if err != nil {
		return m, failf(exitFailed, "the data directory cannot be created: %w", short(err))
	}
	if err := restoreInto(ctx, from, tmp, m); err != nil {
		os.RemoveAll(tmp)
		return m, restoreError(err)
	}
	// The name comes last: before it there is no data directory, after it a whole one.
	// The system call replaces an empty directory in one step, which os.Rename does not try.
	if err := unix.Rename(tmp, dir); err != nil {
		os.RemoveAll(tmp)
		return m, failf(exitFailed, "the data directory cannot be put in its place: %v", short(err))
	}
	if err := syncDir(parent); err != nil {
		return m, failf(exitStorage, "the disk did not confirm the new data directory: %v", short(err))
	}
	return m, nil
}

func restoreError(err error) error {
	if fullDisk(err) || fault.KindOf(err) == fault.StorageFull {
		return failf(exitStorage, "there is no room for the restored log: nothing was made; free some space or name another disk with --data")
	}
	return err
}

// restoreApart refuses a place in the backup, which would not be one any more, and one in a
// Project of it, where its tools could read the token.
func restoreApart(from, dir string, m manifest) error {
	inside, err := within(from, dir)
	if err != nil {
		return err
	}
	if inside {
		return usagef("the data directory would lie in the backup: name another one with --data")
	}
	f, ok := m.file(projectsCopy)
	if !ok {
		return nil
	}
	var body []byte
	if err := readCopy(from, f, func(r io.Reader) (err error) {
		body, err = io.ReadAll(io.LimitReader(r, maxSmallFile))
		return err
	}); err != nil {
		return err
	}
	roots, err := rootsIn(body)
	if err != nil {
		return damagedBackup(projectsCopy)
	}
	for _, root := range roots {
		if inside, err := within(root, dir); err != nil {
			return err
		} else if inside {
			return usagef("the data directory would lie in a Project, where its tools could read it: name another one with --data")
		}
	}
	return nil
}

// freshDataDir refuses a directory that holds anything, and a link: its name cannot be given to
// the directory that is made.
func freshDataDir(dir string) error {
	if info, err := os.Lstat(dir); err == nil && info.Mode().Type() == fs.ModeSymlink {
		return usagef("the data directory is a symbolic link: name the directory itself with --data")
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return failf(exitAccess, "the data directory cannot be read: %v", short(err))
	case len(entries) > 0:
		return usagef("the data directory is not empty: name one that does not exist with --data, or move this one away")
	}
	return nil
}

// sweepRestores takes away what killed restores left. A directory whose lock is held is being
// filled; one without a lock file may be about to be.
func sweepRestores(parent, prefix string) {
	left, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, p := range left {
		f, err := os.OpenFile(filepath.Join(p, "lock"), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(p)
		}
		f.Close()
	}
}

func restoreInto(ctx context.Context, from, tmp string, m manifest) error {
	f, _ := m.file(copyLog)
	err := readCopy(from, f, func(r io.Reader) error {
		next := copyLines(r)
		return eventlog.Import(ctx, eventlog.ImportOptions{Dir: tmp, Server: event.NewInstanceID(), Want: m.Span, Bytes: f.Bytes},
			func() ([]byte, error) {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return next()
			})
	})
	if err != nil {
		return err
	}
	for _, small := range smallFiles {
		f, ok := m.file(small.copy)
		if !ok {
			continue
		}
		var body []byte
		if err := readCopy(from, f, func(r io.Reader) (err error) {
			body, err = io.ReadAll(io.LimitReader(r, maxSmallFile))
			return err
		}); err != nil {
			return err
		}
		to := filepath.Join(tmp, small.path)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := writeDurably(to, body); err != nil { // its directory too
			return err
		}
	}
	return syncDir(tmp)
}
