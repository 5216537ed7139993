package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// given a whole backup, when the data directory named for it lies in the backup or in one of its
// Projects, or is a link, then nothing is made; beside them it is.
func TestRestorePlaces(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	w := newWorld(t, "process")
	w.work(args{})
	from := filepath.Join(base, "backup")
	if _, err := backup(t.Context(), w.dir, from); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(base, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": empty, "dangling": filepath.Join(base, "nowhere"), "through": from} {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, base, w.repo)
	for what, c := range map[string]struct{ to, says string }{
		"in the backup":               {filepath.Join(from, "data"), "lie in the backup"},
		"deep in it, through a link":  {filepath.Join(base, "through", "deep", "data"), "lie in the backup"},
		"in a Project":                {filepath.Join(w.repo, "data"), "lie in a Project"},
		"in the other one":            {filepath.Join(w.otherDir, "deep", "data"), "lie in a Project"},
		"a link to an empty one":      {filepath.Join(base, "link"), "is a symbolic link"},
		"a link that leads nowhere":   {filepath.Join(base, "dangling"), "is a symbolic link"},
		"the backup itself":           {from, "is not empty"},
		"the Project's own directory": {w.repo, "is not empty"},
	} {
		if _, err := restore(t.Context(), from, c.to); codeOf(err) != exitUsage || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := names(t, base, w.repo); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if _, err := restore(t.Context(), from, empty); err != nil {
		t.Error(err)
	}
}

// names are all paths below some directories.
func names(t *testing.T, dirs ...string) (out []string) {
	t.Helper()
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			out = append(out, path)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// given an empty directory that another account owns, then even root makes no backup there, and
// leaves it as it was.
func TestBackupIntoADirectoryOfAnotherAccount(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a directory of another account needs root")
	}
	w := newWorld(t, "process")
	to := filepath.Join(t.TempDir(), "theirs")
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(to, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := backup(t.Context(), w.dir, to); codeOf(err) != exitAccess || !strings.Contains(err.Error(), "another account") {
		t.Errorf("%v", err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o755 || len(names(t, to)) != 1 {
		t.Errorf("%v %v", info, err)
	}
}
