package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The hierarchies a cell may lie in.
const (
	unified = "cgroup2" // cgroup.kill ends all of it at once
	freezer = "freezer" // of version 1: frozen, signalled, thawed
)

// nest is the control group of this process, where it makes one for each execution.
type nest struct {
	dir  string
	kind string
	off  atomic.Bool // a child could not be started in a cell
}

// cell is the control group of one execution: what descends from its process is in it,
// whatever it sheds. A nil cell holds nothing.
type cell struct {
	*nest
	dir string
	fd  int // the directory, until the launch; -1: none
	// spoiled: a thread of this process could not leave it, so it must not be frozen or ended.
	spoiled bool
}

// cellPrefix begins the name of a cell; the process that made it and the mark of the execution
// follow.
const cellPrefix = "webcodex-"

var ownCells = cellPrefix + strconv.Itoa(os.Getpid()) + "-"

// home finds the nest once; nil where this process may make no control groups.
var home = sync.OnceValue(func() *nest {
	for _, kind := range []string{unified, freezer} {
		if n := nestOf(kind); n != nil {
			n.sweep()
			return n
		}
	}
	return nil
})

// nestOf looks whether a cell of that kind can be made, and has what ends it.
func nestOf(kind string) *nest {
	dir := ownGroup(kind)
	if dir == "" {
		return nil
	}
	n := &nest{dir: dir, kind: kind}
	c := n.make("probe")
	if c == nil {
		return nil
	}
	defer c.remove()
	needs := "cgroup.kill"
	if kind == freezer {
		needs = "freezer.state"
	}
	if unix.Access(filepath.Join(c.dir, needs), unix.W_OK) != nil {
		return nil
	}
	return n
}

// ownGroup is the directory of this process's control group in a hierarchy, empty where none is
// mounted.
func ownGroup(kind string) string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return groupDir(kind, string(groups), string(mounts))
}

// groupDir is ownGroup over the texts of the kernel.
func groupDir(kind, groups, mounts string) string {
	own := ""
	for line := range strings.Lines(groups) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) == 3 && (kind == unified && part[0] == "0" && part[1] == "" || kind == freezer && listed(part[1], freezer)) {
			own = part[2]
		}
	}
	if own == "" {
		return ""
	}
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		field, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(field) < 6 || len(system) < 3 {
			continue
		}
		if kind == unified && system[0] != "cgroup2" || kind == freezer && (system[0] != "cgroup" || !listed(system[2], freezer)) {
			continue
		}
		// A mount may show a part of the hierarchy only.
		root, at := unescape(field[3]), unescape(field[4])
		if rest, below := strings.CutPrefix(own, strings.TrimSuffix(root, "/")); below && (rest == "" || rest[0] == '/') {
			return filepath.Join(at, rest)
		}
	}
	return ""
}

func listed(list, name string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}

// unescape undoes what mountinfo does to spaces and the like.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// newCell makes the cell of an execution, nil where there can be none.
func newCell(mark string) *cell {
	n := home()
	if n == nil || n.off.Load() {
		return nil
	}
	return n.make(mark)
}

func (n *nest) make(mark string) *cell {
	c := &cell{nest: n, dir: filepath.Join(n.dir, ownCells+mark), fd: -1}
	if !plain(mark) || os.Mkdir(c.dir, 0o755) != nil {
		return nil
	}
	if n.kind == unified {
		var err error
		if c.fd, err = unix.Open(c.dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			c.remove()
			return nil
		}
	}
	return c
}

// deadCells are those that an earlier life has left of executions.
func deadCells(marks []string) (out []*cell) {
	n := home()
	if n == nil {
		return nil
	}
	for _, mark := range marks {
		if !plain(mark) {
			continue
		}
		found, _ := filepath.Glob(filepath.Join(n.dir, cellPrefix+"*-"+mark))
		for _, dir := range found {
			out = append(out, &cell{nest: n, dir: dir, fd: -1})
		}
	}
	return out
}

// plain reports that a mark may be part of a name.
func plain(mark string) bool {
	return mark != "" && strings.Trim(mark, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// sweep removes empty cells that were left. One of a process that lives may be about to be used.
func (n *nest) sweep() {
	left, _ := filepath.Glob(filepath.Join(n.dir, cellPrefix+"*"))
	for _, dir := range left {
		maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cellPrefix), "-")
		pid, err := strconv.Atoi(maker)
		if err != nil || pid <= 1 {
			continue
		}
		info, err := os.Stat(dir)
		if err == nil && (errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || time.Since(info.ModTime()) > cellAge) {
			_ = (&cell{nest: n, dir: dir, fd: -1}).rmdir()
		}
	}
}

// launch starts a child in the cell. Where that cannot be, used is false and nothing was
// started.
func (c *cell) launch(executable string, argv []string, attr *os.ProcAttr) (p *os.Process, used bool, err error) {
	if c.kind == unified {
		sys := *attr.Sys
		sys.UseCgroupFD, sys.CgroupFD = true, c.fd
		within := *attr
		within.Sys = &sys
		p, err = launch(executable, argv, &within)
		return p, err == nil, err
	}
	// A child is born where the thread is that starts it.
	runtime.LockOSThread()
	if err := os.WriteFile(filepath.Join(c.dir, "tasks"), []byte("0"), 0); err != nil {
		runtime.UnlockOSThread()
		return nil, false, err
	}
	p, err = launch(executable, argv, attr)
	if os.WriteFile(filepath.Join(c.nest.dir, "tasks"), []byte("0"), 0) != nil {
		c.spoiled = true // the thread stays with this goroutine and ends with it
		return p, err == nil, err
	}
	runtime.UnlockOSThread()
	return p, err == nil, err
}

// launched gives back what only the launch needed.
func (c *cell) launched() {
	if c != nil && c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
}

// giveUp makes no more cells: a child could not be started in this one, and could without.
func (c *cell) giveUp() { c.off.Store(true) }

// populated reports that something in the cell lives.
func (c *cell) populated() bool {
	if c == nil || c.spoiled {
		return false
	}
	if c.kind == unified {
		return strings.Contains(readSmall(c.dir+"/cgroup.events"), "populated 1")
	}
	if readSmall(c.dir+"/cgroup.procs") != "" {
		return true
	}
	// A group made in it counts as one more link.
	var st unix.Stat_t
	return unix.Stat(c.dir, &st) == nil && st.Nlink > 2 && len(c.pids()) > 0
}

// readSmall is the beginning of a file of the kernel, empty where it cannot be read. Each
// execution asks for one at its end, so it takes the shortest way.
func readSmall(name string) string {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var buf [256]byte
	n, _ := unix.Read(fd, buf[:])
	return string(buf[:max(n, 0)])
}

// groups are the cell and what was made in it, deepest first.
func (c *cell) groups() (out []string) {
	_ = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append([]string{path}, out...)
		}
		return nil
	})
	return out
}

// pids are the processes in the cell.
func (c *cell) pids() map[int]bool {
	if c == nil || c.spoiled {
		return nil
	}
	out := map[int]bool{}
	for _, dir := range c.groups() {
		raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(raw)) {
			// 0 is a process that this one cannot see.
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
				out[pid] = true
			}
		}
	}
	return out
}

// holds reports that a process is in the cell now.
func (c *cell) holds(pid int) bool {
	if c == nil || c.spoiled {
		return false
	}
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	name := "/" + filepath.Base(c.dir)
	return err == nil && (strings.Contains(string(raw), name+"\n") || strings.Contains(string(raw), name+"/"))
}

// kill ends all that is in the cell, however fast it forks.
func (c *cell) kill() {
	if c == nil || c.spoiled {
		return
	}
	if c.kind == unified {
		_ = os.WriteFile(filepath.Join(c.dir, "cgroup.kill"), []byte("1"), 0)
		return
	}
	state := filepath.Join(c.dir, "freezer.state")
	_ = os.WriteFile(state, []byte("FROZEN"), 0)
	defer func() { _ = os.WriteFile(state, []byte("THAWED"), 0) }()
	for until := time.Now().Add(freezeWait); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if now, err := os.ReadFile(state); err != nil || strings.TrimSpace(string(now)) == "FROZEN" {
			break
		}
	}
	for pid := range c.pids() {
		// Frozen, it cannot end, so its number is still its own.
		if c.holds(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// remove takes the cell away; while something in it still ends, from beside.
func (c *cell) remove() {
	if c == nil {
		return
	}
	c.launched()
	if c.rmdir() == nil {
		return
	}
	go func() {
		for until := time.Now().Add(killWait); time.Now().Before(until) && c.rmdir() != nil; {
			time.Sleep(10 * time.Millisecond)
		}
	}()
}

func (c *cell) rmdir() (err error) {
	if err := syscall.Rmdir(c.dir); err == nil || errors.Is(err, syscall.ENOENT) {
		return nil
	}
	for _, dir := range c.groups() {
		if e := syscall.Rmdir(dir); e != nil && !errors.Is(e, syscall.ENOENT) {
			err = e
		}
	}
	return err
}

// AbandonedGroups names control groups of executions that are there, and whose makers are gone.
func AbandonedGroups() (out []string) {
	for _, kind := range []string{unified, freezer} {
		at := ownGroup(kind)
		if at == "" {
			continue
		}
		left, _ := filepath.Glob(filepath.Join(at, cellPrefix+"*"))
		for _, dir := range left {
			maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cellPrefix), "-")
			if pid, err := strconv.Atoi(maker); err == nil && pid > 1 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				out = append(out, dir)
			}
		}
	}
	return out
}

// ControlGroups names those of this process's executions that are there, for a check that none
// stays.
func ControlGroups() []string {
	n := home()
	if n == nil {
		return nil
	}
	out, _ := filepath.Glob(filepath.Join(n.dir, ownCells+"*"))
	return out
}
