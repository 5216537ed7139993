package leak

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"webcodex/internal/proc"
)

// keepOrphans makes orphans fall to this process.
func keepOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// allGroups are the control groups of executions whose makers are gone, whoever they were.
func allGroups() []string { return proc.AbandonedGroups() }

// descendants are the living processes below this one, with the time of their start. Orphans of
// an execution fall to this process, so they are among them.
func descendants() (out []string) {
	type process struct {
		parent int
		name   string
	}
	all := map[int]process{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		head, rest, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(rest); len(f) > 19 && f[0] != "Z" && f[0] != "X" {
			parent, _ := strconv.Atoi(f[1])
			all[pid] = process{parent, head + "), begun at " + f[19]}
		}
	}
	for _, p := range all {
		for up := p.parent; up > 1; up = all[up].parent {
			if up == os.Getpid() {
				out = append(out, p.name)
				break
			}
		}
	}
	return out
}

// openFiles are this process's, but for what the Go runtime keeps.
func openFiles() (out []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" || strings.HasPrefix(target, "/proc/") {
			continue
		}
		out = append(out, target)
	}
	return out
}
