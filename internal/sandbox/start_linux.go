package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Enforced tells what holds helpers here, found out once by putting a thread under it.
var Enforced = sync.OnceValue(func() Enforcement {
	e := Enforcement{Landlock: abi(), Seccomp: len(filter(0)) > 0}
	for _, try := range []Enforcement{e, {Landlock: e.Landlock}, {Seccomp: e.Seccomp}} {
		t, err := newThread(try, nil, Options{})
		if err == nil {
			t.stop()
			return try
		}
	}
	return Enforcement{}
})

// threads are those that start helpers, by what their helpers may write. A restriction is one of a
// thread: what it starts inherits it, and it can never be lifted. So a few threads do nothing but
// start helpers, and no program stands between this one and the helper.
var threads struct {
	sync.Mutex
	all []*thread
}

// StartWith is Start with options.
func StartWith(cmd *exec.Cmd, o Options) error {
	e := Enforced()
	if e == (Enforcement{}) {
		return cmd.Start()
	}
	threads.Lock()
	defer threads.Unlock()
	i := slices.IndexFunc(threads.all, func(t *thread) bool { return slices.Equal(t.options.Write, o.Write) })
	if i >= 0 && !threads.all[i].current(append(o.Reads[:len(o.Reads):len(o.Reads)], readBy(cmd)...)) {
		threads.all[i].stop()
		threads.all = slices.Delete(threads.all, i, i+1)
		i = -1
	}
	if i < 0 {
		protected.Lock()
		dirs := slices.Clone(protected.dirs)
		protected.Unlock()
		t, err := newThread(e, dirs, o)
		if err != nil {
			return fmt.Errorf("the sandbox of helpers: %w", err)
		}
		if len(threads.all) == maxThreads {
			threads.all[0].stop()
			threads.all = threads.all[1:]
		}
		i, threads.all = len(threads.all), append(threads.all, t)
	}
	return threads.all[i].start(cmd)
}

// thread is one under the restriction of its helpers.
type thread struct {
	options  Options
	dirs     []string // protected when it was made
	made     time.Time
	listed   []listing
	commands chan *exec.Cmd
	answers  chan error
}

// newThread makes a thread and puts it under what is to be enforced.
func newThread(e Enforcement, dirs []string, o Options) (*thread, error) {
	t := &thread{options: o, dirs: dirs, made: time.Now(), commands: make(chan *exec.Cmd), answers: make(chan error)}
	rules := -1
	if e.Landlock > 0 {
		var err error
		if rules, t.listed, err = ruleset(e.Landlock, dirs, o.Write); err != nil {
			return nil, err
		}
		defer unix.Close(rules)
	}
	go t.run(e, rules)
	if err := <-t.answers; err != nil {
		return nil, err
	}
	return t, nil
}

// run never unlocks its thread, which therefore ends with it.
func (t *thread) run(e Enforcement, rules int) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The first thread stands for the process in /proc and cannot end before it.
		held := make(chan struct{})
		go func() { defer close(held); t.run(e, rules) }()
		<-held
		runtime.UnlockOSThread()
		return
	}
	err := restrict(e, rules)
	t.answers <- err
	if err != nil {
		return
	}
	for cmd := range t.commands {
		t.answers <- cmd.Start()
	}
}

func (t *thread) start(cmd *exec.Cmd) error {
	t.commands <- cmd
	return <-t.answers
}

func (t *thread) stop() { close(t.commands) }

// current reports that the rules let what is needed be read, and everything else too as it was a
// moment ago.
func (t *thread) current(needed []string) bool {
	protected.Lock()
	same := slices.Equal(t.dirs, protected.dirs)
	protected.Unlock()
	if !same || time.Since(t.made) > fresh && slices.ContainsFunc(t.listed, listing.changed) {
		return false
	}
	return !slices.ContainsFunc(t.listed, func(l listing) bool {
		return slices.ContainsFunc(needed, func(path string) bool { return !l.knows(path) })
	})
}

// readBy are what each helper reads: its directory, and the settings of the user's git.
func readBy(cmd *exec.Cmd) (out []string) {
	if cmd.Dir != "" {
		out = append(out, cmd.Dir)
		if real, err := os.Readlink(cmd.Dir); err == nil && filepath.IsAbs(real) { // of /proc/self/fd
			out = append(out, real)
		}
	}
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	for _, kv := range env {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && filepath.IsAbs(home) {
			out = append(out, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config"))
		}
		if config, ok := strings.CutPrefix(kv, "XDG_CONFIG_HOME="); ok && filepath.IsAbs(config) {
			out = append(out, filepath.Join(config, "git"))
		}
	}
	return out
}

// restrict puts the calling thread under the rules, for ever.
func restrict(e Enforcement, rules int) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if e.Landlock > 0 {
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
			return fmt.Errorf("landlock: %w", errno)
		}
	}
	if !e.Seccomp {
		return nil
	}
	if err := install(filter(e.Landlock)); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}
