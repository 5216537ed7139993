package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // asked for its version: read models will need a recent one

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/sandbox"
	kept "webcodex/projections/history"
)

// check is one line of doctor (shapes.md 5). Only a fail makes doctor's exit code 1.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warn, fail
	Detail string `json:"detail"`
	Fix    string `json:"fix"` // what to do; empty where there is nothing
}

const (
	statusOK   = "ok"
	statusWarn = "warn"
	statusFail = "fail"
)

// Thresholds of doctor.
const (
	lowSpace      = 1 << 30   // warn below
	noSpace       = 128 << 20 // fail below: the log keeps its reserve for finishing
	doctorTimeout = 5 * time.Second
	clockSkew     = 2 * time.Second
)

// sqliteMin has the write-ahead-log reset fix (architecture.md 10).
var sqliteMin = [3]int{3, 51, 3}

func doctorCommand() command {
	return command{
		name: "doctor", short: "check what WebCodex needs, and say what to do",
		long: `Checks git, ripgrep, the sandbox of helpers, rights, free space, SQLite, the file system, the log, the
files beside it and the clock. Where a log is damaged it changes nothing; a sound one it opens
as a start does, which after an unclean stop makes JetStream's index and meta files again and
cuts a half written record, copied aside first. webcodex verify reads the files alone. Exit
status 1 where a check failed.
With --repair it first does what loses nothing: it makes the block ledger and lost meta files
again, puts a state.db aside that cannot be read and removes half written files. Damage that it
may not repair is named with the only way out.`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			mend := fs.Bool("repair", false, "first do what loses nothing; no server may run")
			return func(ctx context.Context, s streams, _ []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				var first []check
				if *mend {
					first = repair(ctx, dir)
				}
				return doctor(ctx, s, dir, *asJSON, first...)
			}
		},
	}
}

func doctor(ctx context.Context, s streams, dir string, asJSON bool, first ...check) error {
	ctx, cancel := context.WithTimeout(ctx, 10*doctorTimeout)
	defer cancel()
	logChecks, told := checkLog(ctx, dir)
	checks := append(first, checkGit(ctx), checkRipgrep(ctx), checkSandbox(sandbox.Enforced()), checkRights(dir), checkSpace(dir), checkSQLite(ctx), checkFileSystem(dir))
	checks = append(append(checks, logChecks...), checkClock(told, time.Now()))
	checks = append(checks, checkFiles(dir)...)
	ok := true
	for _, c := range checks {
		ok = ok && c.Status != statusFail
	}
	if err := showChecks(s, ok, checks, asJSON); err != nil {
		return err
	}
	if !ok {
		return quietly(exitFailed)
	}
	return nil
}

func showChecks(s streams, ok bool, checks []check, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, struct {
			OK     bool    `json:"ok"`
			Checks []check `json:"checks"`
		}{ok, checks})
	}
	t := newTable(s.out)
	for _, c := range checks {
		t.row(c.Status, c.Name, c.Detail)
		if c.Fix != "" {
			t.row("", "", "→ "+c.Fix)
		}
	}
	t.flush()
	return nil
}

func checkGit(ctx context.Context) check {
	c := check{Name: "git", Status: statusOK}
	out, err := firstLine(ctx, "git", "--version")
	if err != nil {
		c.Status, c.Detail, c.Fix = statusFail, "git was not found", "install git 2.39 or newer and put it on the PATH"
		return c
	}
	c.Detail = out
	if v := versionIn(out); v[0] < 2 || v[0] == 2 && v[1] < 39 {
		c.Status, c.Fix = statusWarn, "git older than 2.39 is not tested: update it"
	}
	return c
}

func checkRipgrep(ctx context.Context) check {
	out, err := firstLine(ctx, "rg", "--version")
	if err != nil {
		return check{"ripgrep", statusWarn, "ripgrep was not found; the built-in engine searches instead, slower on big repositories",
			"install ripgrep for fast search"}
	}
	return check{"ripgrep", statusOK, out, ""}
}

// checkSandbox tells what holds the helpers that read: git, ripgrep, language servers.
func checkSandbox(e sandbox.Enforcement) check {
	c := check{Name: "sandbox", Status: statusOK}
	switch {
	case e.Files() && e.Network():
		c.Detail = fmt.Sprintf("helpers that read can write nothing, see no data directory and open no connection (Landlock %d)", e.Landlock)
		return c
	case e.Files():
		c.Detail = fmt.Sprintf("helpers that read can write nothing and see no data directory (Landlock %d); their connections are not cut", e.Landlock)
	case e.Network():
		c.Detail = "helpers that read can open no connection; nothing keeps them from writing"
	default:
		c.Detail = "nothing keeps helpers that read from writing or from the network"
	}
	c.Status, c.Fix = statusWarn, "run the Runner on Linux 5.13 or newer with Landlock, which a container may have to allow"
	return c
}

func firstLine(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return shorten(line, 80), err
}

// versionIn finds the first dotted number in a text.
func versionIn(s string) (v [3]int) {
	for _, word := range strings.Fields(s) {
		parts := strings.SplitN(word, ".", 4)
		if len(parts) < 2 {
			continue
		}
		for i, p := range parts[:min(3, len(parts))] {
			n, err := strconv.Atoi(p)
			if err != nil && i == 0 {
				return v
			}
			v[i] = n
		}
		return v
	}
	return v
}

// checkRights looks at the directory and at what lies directly in it.
func checkRights(dir string) check {
	c := check{Name: "rights", Status: statusOK, Detail: "the data directory and its files are yours alone"}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		c.Detail = "there is no data directory yet; `webcodex up` creates it"
		if !writable(nearest(dir)) {
			c.Status, c.Detail, c.Fix = statusFail, "the data directory cannot be created", "name another with --data"
		}
		return c
	}
	if err := ownDataDir(dir); err != nil {
		c.Status, c.Detail, c.Fix = statusFail, err.Error(), "put the rights right or name another directory with --data"
		return c
	}
	entries, err := os.ReadDir(dir)
	if err != nil || !writable(dir) {
		c.Status, c.Detail, c.Fix = statusFail, "the data directory cannot be written", "chmod u+rwx it, or mount its file system writable"
		return c
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode()&0o077 != 0 {
			c.Status, c.Detail, c.Fix = statusFail, "others may read "+e.Name(), "chmod go= the files in the data directory"
			return c
		}
	}
	return c
}

// nearest is the closest existing ancestor.
func nearest(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func checkSpace(dir string) check {
	free, total, err := diskSpace(nearest(dir))
	if err != nil {
		return check{"space", statusWarn, "free space cannot be told", ""}
	}
	c := check{"space", statusOK, fmt.Sprintf("%s free of %s", size(free), size(total)), ""}
	switch {
	case free < noSpace:
		c.Status, c.Fix = statusFail, "free some space: new work is refused to keep room for what is running"
	case free < lowSpace:
		c.Status, c.Fix = statusWarn, "free some space soon"
	}
	return c
}

func size(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 3; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGT"[i])
}

func checkSQLite(ctx context.Context) check {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return check{"sqlite", statusFail, "SQLite does not start", "use another build of webcodex"}
	}
	defer db.Close()
	var v string
	if err := db.QueryRowContext(ctx, "select sqlite_version()").Scan(&v); err != nil {
		return check{"sqlite", statusFail, "SQLite does not answer", "use another build of webcodex"}
	}
	c := check{"sqlite", statusOK, "SQLite " + v + " (built in)", ""}
	got := versionIn(v)
	for i := range got {
		if got[i] != sqliteMin[i] {
			if got[i] < sqliteMin[i] {
				c.Status, c.Fix = statusFail, "this SQLite can damage its journal: use a newer build of webcodex"
			}
			break
		}
	}
	return c
}

func checkFileSystem(dir string) check {
	switch name := eventlog.FileSystem(nearest(dir)); {
	case name == "unknown":
		return check{"file_system", statusWarn, "the file system cannot be told: not tested for power cuts", ""}
	case eventlog.Tested(name):
		return check{"file_system", statusOK, name, ""}
	default:
		return check{"file_system", statusWarn, name + ": not tested for power cuts",
			"put the data directory on ext4 or XFS where a power cut must lose nothing"}
	}
}

// checkClock compares the clock with the newest commit, and tells of a step that nobody confirmed.
func checkClock(f kept.Facts, now time.Time) check {
	c := check{"clock", statusOK, now.UTC().Format(time.RFC3339), ""}
	switch {
	case f.Newest.After(now.Add(clockSkew)):
		c.Status = statusWarn
		c.Detail += fmt.Sprintf(": %s behind the newest commit", f.Newest.Sub(now).Round(time.Second))
		c.Fix = "set the clock (time synchronisation on): times in the log go backwards otherwise"
	case now.Year() < 2025:
		c.Status, c.Fix = statusFail, "set the clock"
	case f.Step != nil:
		c.Status = statusWarn
		c.Detail += fmt.Sprintf(": the log's times stepped from %s to %s at commit %d, and nothing leaves for its age until somebody looked",
			localTime(event.FormatTime(f.Step.Before)), localTime(event.FormatTime(f.Step.After)), f.Step.Seq)
		c.Fix = "set the clock if it is wrong; if it is right: webcodex history --confirm-clock"
	}
	return c
}

func writable(dir string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil
}
