package proc

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Identity is a process that can be recognised later. Start is a time, on the system's own
// scale, at which it was alive: whoever has its pid and started later is another. 0: unknown.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// member is a process found to belong to an execution.
type member struct {
	pid, parent int
	start       uint64
	name        string
	zombie      bool
}

// matcher says which processes belong: those in a control group of the execution, those of a
// session or group whose leader is named (with the leader's start time, 0: any), those that
// carry a mark, those that can still write to one of our pipes although they have shed both,
// and orphans that nobody else can have left.
type matcher struct {
	cells    []*cell
	sessions map[int]uint64
	marks    func(string) bool
	pipes    map[string]bool // as /proc names them; only while output has not ended
	terminal *terminal       // the same of an interactive execution
	orphans  uint64          // orphans begun at this time or later belong; 0: none does
}

// Leftover is what a dead life may have left running.
type Leftover struct {
	Mark   string
	Leader Identity
}

// EndLeftovers ends the processes of dead executions and names those that it could not end.
// A pid that was taken by another process since is recognised by its start time and spared.
func EndLeftovers(list []Leftover) (alive []string, killed bool) {
	if len(list) == 0 {
		return nil, false
	}
	m := matcher{sessions: map[int]uint64{}, marks: func(mark string) bool {
		return slices.ContainsFunc(list, func(l Leftover) bool { return carries(mark, l.Mark) })
	}}
	var marks []string
	for _, l := range list {
		marks = append(marks, l.Mark)
		if l.Leader.PID > 1 && l.Leader.Start != 0 {
			m.sessions[l.Leader.PID] = l.Leader.Start
		}
	}
	m.cells = deadCells(marks)
	alive, killed = endMembers(m)
	for _, c := range m.cells {
		c.remove()
	}
	return alive, killed
}

// endMembers asks all members to end, then makes them, until none is left or time is over.
func endMembers(m matcher) (alive []string, killed bool) {
	signal := syscall.SIGTERM
	begun := time.Now()
	for round := 0; round < killRounds; round++ {
		found := living(m)
		if len(found) == 0 {
			return nil, killed
		}
		for _, one := range found {
			killed = signalMember(one, m, signal) || killed
		}
		patience := leftoverGrace
		if signal == syscall.SIGKILL {
			patience = 50 * time.Millisecond
			for _, c := range m.cells {
				c.kill()
			}
		}
		for until := time.Now().Add(patience); len(living(m)) > 0 && time.Now().Before(until); {
			time.Sleep(5 * time.Millisecond)
		}
		if signal = syscall.SIGKILL; time.Since(begun) > killWait {
			break
		}
	}
	for _, one := range living(m) {
		if len(alive) < maxNamed {
			alive = append(alive, name(one.pid, one.name))
		}
	}
	return alive, killed
}

// living collects dead members that fell to this process and returns the others. An orphan is
// told by its parent: whose parent ended during the look may have been seen before it was one, so
// only a second look says that there is none.
func living(m matcher) []member {
	out := look(m)
	if len(out) == 0 && m.orphans != 0 {
		out = look(m)
	}
	return out
}

func look(m matcher) []member {
	var out []member
	for _, one := range members(m) {
		switch {
		case !one.zombie:
			out = append(out, one)
		case one.parent == os.Getpid():
			collect(one.pid)
		}
	}
	return out
}

// collect takes a dead child's status so that its pid is free again.
func collect(pid int) {
	var status unix.WaitStatus
	_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
}

func name(pid int, base string) string { return strconv.Itoa(pid) + " " + clean(base) }

// clean keeps a process name from carrying control characters to a reader.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
}

func signalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return "signal " + strconv.Itoa(int(s))
}

// outerMark is the mark this process itself carries, so that nested executions stay findable.
var outerMark = os.Getenv(MarkVariable)

func markOf(id string) string {
	if outerMark == "" {
		return id
	}
	return outerMark + ":" + id
}

func carries(mark, id string) bool {
	return id != "" && slices.Contains(strings.Split(mark, ":"), id)
}
