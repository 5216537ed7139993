package eventlog

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/internal/bench"
)

// shutdownNoFlush is FS_IOC_SHUTDOWN: the file system stops at once, with neither the page
// cache nor the journal written. What is mounted again is what a power cut leaves, but for
// torn sectors.
const (
	shutdownRequest        = 0x8004587d
	shutdownNoFlush uint32 = 2
)

// fileSystems are those on which power is cut: on the first in every case, on the others in those
// that show what differs, and in soak in every one too.
var fileSystems = []struct{ name, kind, options string }{
	{"ext4", "ext4", ""},
	{"ext4 noauto_da_alloc", "ext4", "noauto_da_alloc"},
	{"xfs", "xfs", ""},
}

// disk is a file system of its own on a loop device.
type disk struct {
	t             *testing.T
	kind, options string
	image         string
	mount         string
	device        string
	at            int64 // of the cut
}

// before are the commits acknowledged while there was power, and those that were later.
func (d *disk) before(lines []said) (acked, later []said) {
	for _, s := range acknowledged(lines) {
		if s.At < d.at {
			acked = append(acked, s)
		} else {
			later = append(later, s)
		}
	}
	return acked, later
}

// newDisk makes one. Without the right to it, or without loop devices, the test is skipped; a
// tool that is missing for it fails it.
func newDisk(t *testing.T, kind, options string) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("cutting the power needs a file system of its own, so root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("cutting the power needs a loop device, and this machine has none")
	}
	dir := t.TempDir()
	d := &disk{t: t, kind: kind, options: options, image: filepath.Join(dir, "image"), mount: filepath.Join(dir, "disk")}
	if err := os.Mkdir(d.mount, 0o700); err != nil {
		t.Fatal(err)
	}
	mkfs := []string{"mkfs." + kind, "-q", d.image}
	if kind == "ext4" {
		mkfs = []string{"mkfs.ext4", "-q", "-F", d.image}
	}
	for _, args := range [][]string{{"truncate", "-s", "1G", d.image}, mkfs} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s (e2fsprogs and xfsprogs bring it): %v: %s", args[0], err, out)
		}
	}
	t.Cleanup(func() {
		_ = unix.Unmount(d.mount, unix.MNT_DETACH)
		_ = exec.Command("losetup", "-d", d.device).Run()
	})
	d.on()
	return d
}

// on mounts over a new device, so that nothing of the life before answers from memory.
func (d *disk) on() {
	d.t.Helper()
	out, err := exec.Command("losetup", "-f", "--show", d.image).CombinedOutput()
	if err != nil {
		d.t.Skipf("this machine gives no loop device: %v: %s", err, out)
	}
	d.device = strings.TrimSpace(string(out))
	if err := unix.Mount(d.device, d.mount, d.kind, 0, d.options); err != nil {
		d.t.Skipf("this machine mounts no %s: %v", d.kind, err)
	}
}

// cut stops the file system; writers get errors from then on. A machine without power says
// nothing more, but the process here does: a sync that was under way may still return as if
// all were well. So at is when the power went, and what was said later is not held against
// the log.
func (d *disk) cut() {
	d.t.Helper()
	d.at = monotonic()
	f, err := os.Open(d.mount)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	flag := shutdownNoFlush
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, f.Fd(), shutdownRequest, uintptr(unsafe.Pointer(&flag))); no != 0 {
		d.t.Fatalf("shutdown: %v", no)
	}
}

func (d *disk) off() {
	d.t.Helper()
	err := unix.Unmount(d.mount, 0)
	// A process that another test forks has our files until it is another program.
	for end := time.Now().Add(10 * time.Second); err == unix.EBUSY && time.Now().Before(end); err = unix.Unmount(d.mount, 0) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		d.t.Fatalf("unmount: %v", err)
	}
	_ = exec.Command("losetup", "-d", d.device).Run()
}

// cutCase is what goes on when the power is cut.
type cutCase struct {
	name  string
	part  part
	lines int  // acknowledgements before the cut
	soak  bool // takes longer than a few seconds
}

// smallBlocks is a budget under which JetStream begins a new block each 4 MiB.
const smallBlocks = 32 << 20

// cutCases for one size of commits: text bytes in each, and how many fill a block.
func cutCases(size string, text, block int) []cutCase {
	small := text < 10<<10
	several := part{Writers: 64, Text: text, Group: 64 << 20}
	if small {
		several.Writers = 256
	}
	return []cutCase{
		{name: size + ", fresh store", part: part{Text: text}, lines: 3},
		{name: size + ", roll-over", part: part{Text: text, Budget: smallBlocks}, lines: 2*block + block/2, soak: small},
		// A window of large commits spans several blocks, all of them in one sync.
		{name: size + ", several per group", part: several, lines: 4 * block, soak: small},
		// Counted are the steps of prunes.
		{name: size + ", during prune", part: part{Text: text, Budget: smallBlocks, Prune: true, Writers: 4}, lines: 3, soak: small},
		{name: size + ", during carry", part: part{Text: text, Carry: true, Writers: 4}, lines: block + 20, soak: small},
	}
}

// After a power cut a log of a durable mode has every commit it acknowledged, over the
// borders of blocks, whatever goes on, and from the first commit of a new directory on.
//
// Covers: SES-47
func TestPowerCutLosesNothing(t *testing.T) {
	cases := append(cutCases("900 B", 250, 2700), cutCases("200 KB", 200<<10, 21)...)
	for i, fs := range fileSystems {
		t.Run(fs.name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []Durability{Always, Group} {
				acked, lost := 0, 0
				for _, c := range cases {
					t.Run(fmt.Sprintf("%s, %s", mode, c.name), func(t *testing.T) {
						if c.soak || mode == Always && c.lines > 3 || i > 0 && !c.part.Prune && c.part.Writers > 0 {
							soak(t)
						}
						n, gone := cutPower(t, newDisk(t, fs.kind, fs.options), mode, c)
						acked, lost = acked+n, lost+gone
					})
				}
				if acked > 0 {
					bench.Figure(t, fmt.Sprintf("1 power cut, %s, %s: acknowledged commits that were lost", fs.name, mode), float64(lost), 0, acked)
				}
			}
		})
	}
}

// cutPower writes to a log on the disk, cuts, and looks: so many commits were acknowledged, and
// so many of these are lost.
func cutPower(t *testing.T, d *disk, mode Durability, c cutCase) (n, lost int) {
	t.Helper()
	c.part.Play, c.part.Mode, c.part.Dir = "write", mode, filepath.Join(d.mount, "deep", "data")
	counts := func(s said) bool { return s.Purged == c.part.Prune }
	acked, later := d.before(playWhen(t, c.part, c.lines, counts, d.cut))
	d.off()
	d.on()
	l := open(t, c.part.Dir, func(o *Options) { o.Durability, o.MaxBytes, o.Base = mode, 1<<30, newIndex() })
	if s := l.Status(); s.FirstSeq > max(1, s.PrunedTo) || c.part.Prune && s.PrunedTo == 0 {
		t.Errorf("the log begins at %d, pruned to %d", s.FirstSeq, s.PrunedTo)
	}
	if lost = lostOf(t, l, acked); lost > 0 {
		t.Errorf("%d of %d acknowledged commits are lost", lost, len(acked))
	}
	if p := l.Status().Promise; !p.Tested || p.Survives != SurvivesPowerLoss || p.FileSystem != d.kind {
		t.Errorf("the log promises %+v", p)
	}
	t.Logf("%d acknowledged, %d found; of %d later ones %d are gone", len(acked), l.Status().Seq, len(later), lostOf(t, l, later))
	mustAppend(t, l, event.SessionAggregate("after"))
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	d.off()
	return len(acked), lost
}

func soak(t *testing.T) {
	t.Helper()
	if os.Getenv("WEBCODEX_SOAK") == "" {
		t.Skip("takes longer: set WEBCODEX_SOAK=1")
	}
}

// In durability process a power cut may take the newest commits. The log says so itself, with
// a new epoch, and is whole otherwise.
func TestPowerCutInProcessDurability(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cutCase{
		"a fresh store": {part: part{}, lines: 3},
		"large commits": {part: part{Text: 200 << 10}, lines: 100},
		"small commits": {part: part{}, lines: 6000, soak: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.soak {
				soak(t)
			}
			d := newDisk(t, "ext4", "")
			c.part.Play, c.part.Mode, c.part.Dir = "write", Process, filepath.Join(d.mount, "data")
			acked, _ := d.before(playUntil(t, c.part, c.lines, d.cut))
			d.off()
			d.on()
			if _, err := os.Stat(filepath.Join(c.part.Dir, checkpointName)); err == nil {
				editCheckpoint(t, c.part.Dir, func(cp *checkpoint) { cp.Boot = "before" })
			}
			l := open(t, c.part.Dir, func(o *Options) { o.MaxBytes = 1 << 30 })
			checkWhole(t, l, nil)
			t.Logf("%d acknowledged, %d found, tail lost: %v", len(acked), l.Status().Seq, l.Status().TailLost)
			mustAppend(t, l, event.SessionAggregate("after"))
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			d.off()
		})
	}
}
