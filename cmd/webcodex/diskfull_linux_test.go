package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/eventlog"
)

// fullDiskScript mounts a small file system that only this process and its children see,
// fills it, and becomes the program.
const fullDiskScript = `mount -t tmpfs -o size=96m none "$0" || exit 99
cat /dev/zero > "$0/fill" 2>/dev/null
exec webcodex "$@"`

// upOnFullDisk is `up` with its data directory on a full disk that is mounted at dir.
func upOnFullDisk(t *testing.T, dir, repo string, env ...string) (*exec.Cmd, *lastBytes) {
	t.Helper()
	if out, err := exec.Command("unshare", "-Urm", "true").CombinedOutput(); err != nil {
		t.Skipf("a small disk needs a mount namespace: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", "-Urm", "sh", "-c", fullDiskScript, dir,
		"up", "--json", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--", repo)
	cmd.Env = append(os.Environ(), env...)
	said := &lastBytes{}
	cmd.Stderr = said
	return cmd, said
}

// A first start on a full disk ends with the disk's own exit status and says what to do.
func TestFirstStartOnFullDisk(t *testing.T) {
	t.Parallel()
	repo, _ := scratch(t)
	cmd, said := upOnFullDisk(t, t.TempDir(), repo)
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitStorage || !strings.Contains(said.String(), "the disk is full: free some space") {
		t.Errorf("exit status %d (%v): %s", code, err, said)
	}
}

// A server that comes back after its disk filled waits until there is room, and then serves
// without anybody's help.
func TestServiceReturnsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	repo, _ := scratch(t)
	dir := t.TempDir()
	cmd, said := upOnFullDisk(t, dir, repo, restartEnv+`={"Full":1}`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	await := func(what string, done func() bool) {
		t.Helper()
		for range 1200 {
			if done() {
				return
			}
			select {
			case <-ended:
				t.Fatalf("the server ended before %s: %s", what, said)
			case <-time.After(50 * time.Millisecond):
			}
		}
		t.Fatalf("not in time: %s: %s", what, said)
	}
	await("it waits", func() bool { return strings.Contains(said.String(), "waiting for free space") })
	seen := filepath.Join(fmt.Sprintf("/proc/%d/root", cmd.Process.Pid), dir)
	if err := os.Remove(filepath.Join(seen, "fill")); err != nil {
		t.Fatal(err)
	}
	await("it serves", func() bool {
		st, err := askStatus(t.Context(), filepath.Join(seen, "data"))
		return err == nil && st.Log.Writing && len(st.Projects) == 1
	})
	if n := strings.Count(said.String(), "waiting for free space"); n != 1 {
		t.Errorf("it said so %d times: %s", n, said)
	}
}

// The disk fills while calls are in flight. The server ends the life whose log it could not
// write, waits, and comes back by itself once there is room; every acknowledged call is there,
// none ran twice, and what is recorded agrees with the marks.
func TestDiskFillsUnderLoad(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a small disk of our own needs root")
	}
	h := newKillTest(t)
	data := filepath.Join(h.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", data, "tmpfs", 0, "size=96m,mode=0700"); err != nil {
		t.Skipf("this machine mounts no small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(data, unix.MNT_DETACH) })
	await := func(what string, done func() bool) {
		t.Helper()
		for range 1200 {
			if done() {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("not in time: %s: %s", what, h.server.said)
	}
	fill := filepath.Join(data, "fill")
	h.end = func() {
		// All but nothing first: what is open may finish from the reserve. Then the last byte.
		if err := exec.Command("sh", "-c", `cat /dev/zero > "$0"; true`, fill).Run(); err != nil {
			t.Error(err)
		}
	}
	h.round(0)
	st, err := askStatus(t.Context(), data)
	if err == nil && st.Log.Writing && st.Log.Space != eventlog.SpaceReserve {
		t.Errorf("on a full disk the log says %+v", st.Log)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	await("it serves again", func() bool {
		st, err := askStatus(t.Context(), data)
		return err == nil && st.Log.Writing && st.Log.Space == eventlog.SpaceOK && len(st.Projects) == 1
	})
	// Where none was named too, hosts find it under the port they know.
	if st, err := askStatus(t.Context(), data); err != nil || st.MCPURL != h.server.ready.MCPURL {
		t.Errorf("it was at %s and came back at %s (%v)", h.server.ready.MCPURL, st.MCPURL, err)
	}
	if err := h.server.stop(); err != nil {
		t.Fatal(err)
	}
	h.verify("a full disk", 1)
}
