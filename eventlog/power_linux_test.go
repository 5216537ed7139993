package eventlog

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
)

// shutdownNoFlush is FS_IOC_SHUTDOWN: the file system stops at once, with neither the page
// cache nor the journal written. What is mounted again is what a power cut leaves, but for
// torn sectors.
const (
	shutdownRequest        = 0x8004587d
	shutdownNoFlush uint32 = 2
)

// disk is a file system of its own on a loop device.
type disk struct {
	t      *testing.T
	image  string
	mount  string
	device string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Getenv("WEBCODEX_SOAK") == "" {
		t.Skip("set WEBCODEX_SOAK=1 to cut the power")
	}
	if os.Getuid() != 0 {
		t.Skip("cutting the power needs a loop device, so root")
	}
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"truncate", "-s", "1G", image}, {"mkfs.ext4", "-q", "-F", image}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v: %s", args[0], err, out)
		}
	}
	d := &disk{t: t, image: image, mount: mount}
	t.Cleanup(func() {
		_ = unix.Unmount(mount, unix.MNT_DETACH)
		_ = exec.Command("losetup", "-d", d.device).Run()
	})
	d.on()
	return d
}

// on mounts over a new device, so that nothing of the life before answers from memory.
func (d *disk) on() {
	d.t.Helper()
	out, err := exec.Command("losetup", "-f", "--show", d.image).Output()
	if err != nil {
		d.t.Skipf("losetup: %v", err)
	}
	d.device = strings.TrimSpace(string(out))
	if err := unix.Mount(d.device, d.mount, "ext4", 0, ""); err != nil {
		d.t.Skipf("mount: %v", err)
	}
}

// cut stops the file system; writers get errors from then on.
func (d *disk) cut() {
	d.t.Helper()
	f, err := os.Open(d.mount)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	flag := shutdownNoFlush
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, f.Fd(), shutdownRequest, uintptr(unsafe.Pointer(&flag))); no != 0 {
		d.t.Skipf("shutdown: %v", no)
	}
}

func (d *disk) off() {
	d.t.Helper()
	if err := unix.Unmount(d.mount, 0); err != nil {
		d.t.Fatalf("unmount: %v", err)
	}
	_ = exec.Command("losetup", "-d", d.device).Run()
}

// After a power cut a log of durability always has every commit it acknowledged, over the
// borders of blocks and from the first commit of a new directory on. One of durability
// process may have lost its newest, says so, and is whole otherwise.
func TestPowerCut(t *testing.T) {
	for name, c := range map[string]struct {
		mode  Durability
		part  string
		lines int
	}{
		"always, a fresh store":  {Always, "write", 3},
		"always, small commits":  {Always, "write", 6000},
		"always, large commits":  {Always, "large", 200},
		"process, small commits": {Process, "write", 6000},
		"process, large commits": {Process, "large", 300},
		"process, a fresh store": {Process, "write", 3},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			dir := filepath.Join(d.mount, "data")
			acked := childUntil(t, c.part, dir, c.mode, c.lines, d.cut)
			d.off()
			d.on()
			if c.mode == Process {
				if _, err := os.Stat(filepath.Join(dir, checkpointName)); err == nil {
					editCheckpoint(t, dir, func(cp *checkpoint) { cp.Boot = "before" })
				}
			}
			l := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = c.mode, 1<<30 })
			found := l.Status().Seq
			if c.mode == Process {
				checkWhole(t, l, nil)
				t.Logf("%d acknowledged, %d found, tail lost: %v", len(acked), found, l.Status().TailLost)
			} else {
				checkWhole(t, l, acked)
				t.Logf("%d acknowledged, %d found", len(acked), found)
			}
			mustAppend(t, l, event.SessionAggregate("after"))
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			d.off()
		})
	}
}
