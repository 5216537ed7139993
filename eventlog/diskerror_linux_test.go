package eventlog

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// failingDisk is an ext4 on a device that can no longer write once its backing is full: a
// write reaches the page cache as ever, and only the sync tells. fail does that, heal undoes it.
func failingDisk(t *testing.T) (d *disk, fail, heal func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a disk that fails needs a file system of its own, so root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("a disk that fails needs a loop device, and this machine has none")
	}
	back := filepath.Join(t.TempDir(), "back")
	d = &disk{t: t, kind: "ext4", image: filepath.Join(back, "image"), mount: filepath.Join(t.TempDir(), "disk")}
	for _, p := range []string{back, d.mount} {
		if err := os.Mkdir(p, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("none", back, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("this machine mounts no small disk: %v", err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(d.mount, unix.MNT_DETACH)
		_ = exec.Command("losetup", "-d", d.device).Run()
		_ = unix.Unmount(back, unix.MNT_DETACH)
	})
	for _, args := range [][]string{{"truncate", "-s", "256M", d.image}, {"mkfs.ext4", "-q", "-F", "-J", "size=4", d.image}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", args[0], err, out)
		}
	}
	d.on()
	fill := filepath.Join(back, "fill")
	fail = func() { _ = exec.Command("sh", "-c", `cat /dev/zero > "$0"`, fill).Run() }
	return d, fail, func() { _ = os.Remove(fill) }
}

// When the disk cannot write what the page cache took, the sync says so once. From then on no
// append succeeds in this life, also after the disk works again; the next life has every
// acknowledged commit.
func TestSyncErrorOfARealDisk(t *testing.T) {
	for _, mode := range []Durability{Always, Group} {
		t.Run(string(mode), func(t *testing.T) {
			d, fail, heal := failingDisk(t)
			dir := filepath.Join(d.mount, "data")
			l := open(t, dir, func(o *Options) { o.Durability = mode })
			a := event.SessionAggregate("writer-0")
			var acked []said
			appends := func(n int) error {
				for i := range n {
					head, err := l.Head(a)
					if err != nil {
						return err
					}
					c := Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(), Events: threeEvents(i)}
					r, err := l.Append(context.Background(), c)
					if err != nil {
						return err
					}
					acked = append(acked, said{Agg: a.ID, Ver: r.Commit.Version, ID: c.ID, Seq: r.Seq})
				}
				return nil
			}
			if err := appends(20); err != nil {
				t.Fatal(err)
			}
			fail()
			if err := appends(5000); fault.KindOf(err) != fault.PersistenceUncertain {
				t.Fatalf("on a disk that cannot write, after %d commits: %v", len(acked), err)
			}
			heal()
			if err := appends(1); fault.KindOf(err) != fault.PersistenceUncertain {
				t.Errorf("after the error: %v", err)
			}
			if s := l.Status(); s.Writing || s.Seq != s.SyncedSeq {
				t.Errorf("status %+v", s)
			}
			if err := l.Close(); fault.KindOf(err) != fault.PersistenceUncertain {
				t.Errorf("close: %v", err)
			}
			d.off()
			d.on()
			l = open(t, dir, func(o *Options) { o.Durability = mode })
			checkWhole(t, l, acked)
			t.Logf("%d acknowledged, all there", len(acked))
			mustAppend(t, l, a)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			d.off()
		})
	}
}
