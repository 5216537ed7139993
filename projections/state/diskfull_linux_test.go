package state

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// When the disk under the file is full, commits go on being applied and read, the error is
// told, and with room again the file has everything and nothing is told any more.
//
// Covers: RES-23
func TestFullDiskHoldsUpNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a small disk needs root")
	}
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("this machine mounts no small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	path := filepath.Join(disk, "state.db")
	k, m := open(t, path, Options{})
	seq := uint64(0)
	apply := func(n int) {
		for range n {
			seq++
			k.Apply(eventlog.Applied{Seq: seq, Hash: fmt.Sprintf("%064x", seq), First: true, Root: seq,
				Commit: event.Commit{Aggregate: event.SessionAggregate(event.SessionID(fmt.Sprintf("wc_sess_%032x", seq))), Version: 1}})
		}
	}
	for k.Status().LastPersistError == "" {
		if seq > 200_000 {
			t.Fatal("the disk never fills")
		}
		apply(500)
		_ = k.Flush(t.Context())
	}
	if why := k.Status().LastPersistError; why != "disk_full" && why != "io_error" {
		t.Fatalf("it says %q", why)
	}
	apply(100)
	for _, at := range []uint64{1, seq} {
		a := event.SessionAggregate(event.SessionID(fmt.Sprintf("wc_sess_%032x", at)))
		if h, ok, err := k.Head(a); err != nil || !ok || h.Seq != at {
			t.Fatalf("head of %d: %+v %v %v", at, h, ok, err)
		}
	}
	if err := unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT, "size=128m"); err != nil {
		t.Fatal(err)
	}
	flush(t, k)
	if s := k.Status(); s.LastPersistError != "" || s.Seq != seq || m.total(t) != seq {
		t.Fatalf("%+v, total %d of %d", s, m.total(t), seq)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k, m = open(t, path, Options{})
	if cp := must(k.Checkpoint())(t); cp.Seq != seq || m.total(t) != seq {
		t.Fatalf("%+v, total %d of %d", cp, m.total(t), seq)
	}
}
