package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"webcodex/eventlog"
	"webcodex/internal/fault"
)

// repair does what loses nothing (faults.md 2.12) and says what it did; what it may not do is
// a failed line that names the class of damage and the only way out.
func repair(ctx context.Context, dir string) []check {
	if err := mayOpen(dir); err != nil {
		return []check{{"repair", statusFail, oneLine(err), ""}}
	}
	done, err := eventlog.Repair(ctx, eventlog.Options{Dir: dir, Witness: witness(ctx, dir)}, func() ([]string, error) { return dropReadModels(ctx, dir) })
	var out []check
	for _, what := range done {
		out = append(out, check{"repair", statusOK, what, ""})
	}
	switch {
	case errors.Is(err, eventlog.ErrLocked):
		out = append(out, check{"repair", statusFail, "a server has the data directory open", "end it first: webcodex doctor --repair works on files that nobody uses"})
	case err != nil:
		out = append(out, damageChecks("repair", err)...)
	case len(done) == 0:
		out = append(out, check{"repair", statusOK, "there was nothing to repair", ""})
	}
	return out
}

// dropReadModels puts a state.db aside that cannot be read: it is made again from the log. It
// is called when the log was held against what the file had seen of it.
func dropReadModels(ctx context.Context, dir string) ([]string, error) {
	path := filepath.Join(dir, stateFile)
	if _, err := os.Stat(path); err != nil || soundFile(ctx, path) {
		return nil, nil
	}
	for _, suffix := range []string{"-wal", ""} {
		if err := os.Rename(path+suffix, path+".damaged"+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, failf(exitFailed, "%s cannot be put aside: %v", stateFile, short(err))
		}
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, failf(exitFailed, "%s cannot be put aside: %v", stateFile, short(err))
	}
	return []string{stateFile + ", which could not be read, was put aside as " + stateFile + ".damaged; the next start makes it again from the log"}, nil
}

// soundFile asks SQLite whether a file is whole.
func soundFile(ctx context.Context, path string) bool {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro")
	if err != nil {
		return false
	}
	defer db.Close()
	var said string
	return db.QueryRowContext(ctx, "pragma quick_check(1)").Scan(&said) == nil && said == "ok"
}

func blockChecks(name string, blocks []eventlog.BlockDamage) (out []check) {
	for _, b := range blocks {
		c, _ := eventlog.ClassOf(b.Reason)
		out = append(out, check{name, statusFail, "damage " + b.Reason + ", " + b.String(), c.Repair})
	}
	return out
}

// damageChecks are the lines for an error of opening the log: one for each damaged block, with
// the repair that its class allows.
func damageChecks(name string, err error) []check {
	f := fault.As(err)
	if blocks, ok := f.Details["blocks"].([]eventlog.BlockDamage); ok && len(blocks) > 0 {
		return blockChecks(name, blocks)
	}
	c := check{name, statusFail, oneLine(err), f.Next}
	if class, ok := eventlog.ClassOf(f.Reason); ok {
		c.Detail, c.Fix = "damage "+class.Reason+": "+c.Detail, class.Repair
	}
	return []check{c}
}
