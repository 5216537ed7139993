package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk runs the program in a mount namespace where DISK is a disk of a few MiB, and gives
// its exit status, what it said, and what is left on the disk.
func smallDisk(t *testing.T, mib string, args ...string) (code int, said, left string) {
	t.Helper()
	if out, err := exec.Command("unshare", "-Urm", "true").CombinedOutput(); err != nil {
		t.Skipf("a small disk needs a mount namespace: %v: %s", err, out)
	}
	disk := t.TempDir()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DISK", disk)
	}
	script := `mount -t tmpfs -o size=` + mib + `m none "$0" || exit 99; webcodex "$@" >&2; code=$?; find "$0" -mindepth 1; exit $code`
	cmd := exec.Command("unshare", append([]string{"-Urm", "sh", "-c", script, disk}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), errs.String(), out.String()
}

// TestBackupOnAFullDisk: neither a backup nor a restore leaves anything on a disk that has no
// room for it; both say so with the disk's exit status, and the server goes on.
func TestBackupOnAFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "always")
	w.work(args{})
	if code, said, left := smallDisk(t, "40", "backup", "DISK/a/b", "--data", w.dir); code != exitStorage || left != "" || !strings.Contains(said, "full") {
		t.Errorf("exit status %d: %s; left %q", code, said, left)
	}
	before := w.srv.log.Status().Seq
	w.work(args{})
	if st := w.srv.log.Status(); !st.Writing || st.Seq == before || w.srv.log.Admit() != nil {
		t.Errorf("%+v", st)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if _, err := backup(t.Context(), w.dir, copied); err != nil {
		t.Fatal(err)
	}
	if code, said, left := smallDisk(t, "8", "restore", copied, "--data", "DISK/data"); code != exitStorage || left != "" || !strings.Contains(said, "no room") {
		t.Errorf("exit status %d: %s; left %q", code, said, left)
	}
	// The disk fills in the middle of a file.
	to := filepath.Join(t.TempDir(), "copy")
	made, err := emptyDir(to)
	if err != nil {
		t.Fatal(err)
	}
	b := backupWriter{dir: to, data: w.dir}
	_, err = b.write(failingReader{})
	b.undo(made)
	if err = backupError(err); codeOf(err) != exitStorage || !strings.Contains(err.Error(), "full") {
		t.Errorf("%v", err)
	}
}

// failingReader stands for a disk that fills while the copy is written.
type failingReader struct{}

// Read gives what a full disk says.
func (failingReader) Read([]byte) (int, error) { return 0, syscall.ENOSPC }
