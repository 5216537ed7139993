package shell

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/ownerfile"
	"webcodex/runner/wire"
)

// Options of New.
type Options struct {
	// File is the operator's settings; one that is not there has no profiles.
	File string
	// Dir remembers the shells of this life for the next one; empty: nothing does.
	Dir string
	// Idle ends a shell that was not used for so long, MinIdle to MaxIdle; 0: DefaultIdle.
	Idle time.Duration
	// Max is how many shells there are at most, 1 to MaxShells; 0: DefaultMax.
	Max int
	// Remote opens shells on named resources; nil: this Runner opens none.
	Remote Remote
	Logger *slog.Logger
	// Now is the wall clock, for what people see; nil: time.Now.
	Now func() time.Time
	// patient replaces Recovery; 0: that.
	patient time.Duration
	// system is the one that shells are started on; empty: this one.
	system string
}

// Remote opens shells on named resources.
type Remote interface {
	// OpenShell starts a shell there. Every fault means that none is there. generation stands for
	// the settings of the resource that it was opened with, cwd for the directory as it was chosen.
	OpenShell(ctx context.Context, in RemoteIn) (e Engine, cwd, generation string, f *fault.Error)
	// Generation is that of the resource's settings now.
	Generation(resource string) (string, *fault.Error)
}

// RemoteIn is what a shell on a resource is opened with.
type RemoteIn struct {
	Session  event.SessionID // whose connection it shares (SSH-17)
	Resource string
	Dialect  string // sh or bash, whatever this system is (SSH-14)
	Cwd      string // empty: the resource's, or the login's
}

// Shells are the persistent shells of one Runner life.
type Shells struct {
	o     Options
	notes notes
	// setting up and looking at the settings
	files    sync.Mutex
	read     ownerfile.Stamp
	settings settings
	broken   error

	mu       sync.Mutex
	live     map[event.SessionID]*record // opening or running
	all      map[event.ShellID]*record   // and ended ones
	ended    []event.ShellID             // oldest first
	released map[event.SessionID]bool    // closed Sessions, for an open in flight
	order    []event.SessionID           // of released, oldest first
	stopped  bool
	work     sync.WaitGroup
}

// New ends what shells of an earlier life have left. It opens nothing.
func New(o Options) *Shells {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Idle, o.Max, o.system = cmp.Or(o.Idle, DefaultIdle), cmp.Or(o.Max, DefaultMax), cmp.Or(o.system, runtime.GOOS)
	s := &Shells{o: o, live: map[event.SessionID]*record{}, all: map[event.ShellID]*record{}, released: map[event.SessionID]bool{}}
	var alive []string
	if s.notes, alive = openNotes(o.Dir); len(alive) > 0 {
		o.Logger.Warn("processes of persistent shells of an earlier life could not be ended", "still_alive", alive)
	}
	return s
}

// admit takes a place for a new shell of a Session (SHL-02, SHL-19).
func (s *Shells) admit(r *record) *fault.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return notStarted(fault.New(fault.ShuttingDown, "the Runner is stopping"))
	case s.released[r.session]:
		return inactive()
	case s.live[r.session] != nil:
		return notStarted(fault.New(fault.ShellAlreadyOpen, "this Session has a persistent shell already").With("shell_id", s.live[r.session].id).
			WithNext("use that shell, or close it with close_session_shell before you open another"))
	case len(s.live) >= s.o.Max:
		f := fault.New(fault.ShellLimitReached, "the Runner keeps %d persistent shells, and no more", s.o.Max).
			WithNext("close one that is not needed, or use run_shell")
		f.Recovery = fault.RetrySame
		return notStarted(f)
	}
	s.live[r.session], s.all[r.id] = r, r
	s.work.Add(1)
	return nil
}

func inactive() *fault.Error {
	return notStarted(fault.New(fault.ShellSessionInactive, "the Session was closed meanwhile; no shell is kept for it").
		WithNext("start another Session with work_on_project"))
}

func notStarted(f *fault.Error) *fault.Error {
	f.ExecutionState = string(event.NotStarted)
	return f
}

// retire takes an ended shell from the living ones and remembers how it ended (SHL-18).
func (s *Shells) retire(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[r.session] == r {
		delete(s.live, r.session)
	}
	s.ended = append(s.ended, r.id)
	if len(s.ended) > maxEnded {
		delete(s.all, s.ended[0])
		s.ended = s.ended[1:]
	}
	s.notes.remove(r.id)
	s.work.Done()
}

// forget takes a shell out that never was one.
func (s *Shells) forget(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[r.session] == r {
		delete(s.live, r.session)
	}
	delete(s.all, r.id)
	s.notes.remove(r.id)
	s.work.Done()
}

// find gives the shell that is of this very Session and Project. Of any other it tells nothing
// (SHL-14).
func (s *Shells) find(p event.ProjectID, at wire.ShellAt) (*record, *fault.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all[at.ID]
	if r == nil || r.session != at.Session || r.project != p {
		return nil, notFound("")
	}
	return r, nil
}

func notFound(reason string) *fault.Error {
	text := "this Session has no such persistent shell in this life of the Runner"
	if reason != "" {
		text = "this persistent shell was closed; its id is not used again"
	}
	f := fault.New(fault.ShellNotFound, "%s", text).WithField("shell_id").WithReason(reason).
		WithNext("open one with open_session_shell")
	f.Recovery = fault.FixArguments
	return notStarted(f)
}

// Release ends the shell of a Session that was closed, and keeps one that is being opened from
// coming about (SHL-20). It returns when that is done.
func (s *Shells) Release(session event.SessionID) int {
	s.mu.Lock()
	if !s.released[session] {
		s.released[session] = true
		s.order = append(s.order, session)
		if len(s.order) > maxReleased {
			delete(s.released, s.order[0])
			s.order = s.order[1:]
		}
	}
	s.mu.Unlock()
	return s.endAll(wire.ShellBySession, wire.ShellClosed, func(r *record) bool { return r.session == session })
}

// ReleaseProject ends the shells of a Project that is served no longer (SHL-19).
func (s *Shells) ReleaseProject(id event.ProjectID) {
	s.endAll(wire.ShellByProject, wire.ShellClosed, func(r *record) bool { return r.project == id })
}

// Disconnected ends all shells: the server that they were opened for has lost this Runner, or is
// another one now (SHL-19, SHL-27).
func (s *Shells) Disconnected() {
	s.endAll(wire.ShellByDisconnect, wire.ShellLost, func(*record) bool { return true })
}

// Close opens no more shells, and ends all that there are.
func (s *Shells) Close() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.endAll(wire.ShellByShutdown, wire.ShellClosed, func(*record) bool { return true })
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.close()
	s.notes = notes{}
}

// endAll ends the living shells that are meant, and waits until they have ended.
func (s *Shells) endAll(reason string, state wire.ShellState, meant func(*record) bool) int {
	s.mu.Lock()
	var list []*record
	for _, r := range s.live {
		if meant(r) {
			list = append(list, r)
		}
	}
	s.mu.Unlock()
	var done sync.WaitGroup
	for _, r := range list {
		done.Go(func() { r.end(state, reason) })
	}
	done.Wait()
	return len(list)
}

// look gives the settings as they are now.
func (s *Shells) look() (settings, *fault.Error) {
	s.files.Lock()
	defer s.files.Unlock()
	if now := ownerfile.StampOf(s.o.File); !now.Same(s.read) {
		s.read = now
		if s.settings, s.broken = readSettings(s.o.File); s.broken != nil {
			s.o.Logger.Error("the settings of persistent shells cannot be used", "cause", s.broken)
		}
	}
	switch {
	case s.broken != nil:
		return settings{}, notStarted(fault.New(fault.ShellProfileUnavailable, "the settings of the Runner's persistent shells cannot be used").
			WithReason("settings_invalid").WithNext("the operator mends them; the Runner's log says what is wrong"))
	case s.settings.off:
		return settings{}, notStarted(fault.New(fault.CapabilityUnavailable, "the operator of this Runner allows no persistent shells").
			WithReason("disabled_by_policy").WithNext("use run_shell"))
	}
	return s.settings, nil
}

// place is where the named pipes of a local shell are.
func (s *Shells) place() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes.place()
}

func environ() []string { return os.Environ() }
