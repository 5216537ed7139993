package lsp

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner"
)

// Service runs the language servers of a Runner.
type Service struct {
	// cache is where servers may write, made when the first one starts.
	cache string

	mu      sync.Mutex
	running map[id]*entry
	failed  map[id][]time.Time
	closed  bool
	watch   *time.Timer
}

// id is a language server of a Project.
type id struct {
	project event.ProjectID
	kind    *kind
}

// entry is a server that is being started, or runs.
type entry struct {
	ready chan struct{} // closed when p and err are final
	p     *provider
	err   error
}

// New makes a Service that has started nothing. cache is a directory of its own, in no protected
// one: helpers see nothing of those.
func New(cache string) *Service {
	return &Service{cache: cache, running: map[id]*entry{}, failed: map[id][]time.Time{}}
}

// CacheDir is the directory for New, by the rules of the system; empty where it has none.
func CacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(base, "webcodex", "lsp")
}

// use gives the server of a kind for a Project, started if need be, until done is called.
func (s *Service) use(ctx context.Context, p *runner.Project, k *kind) (_ *provider, done func(), err error) {
	for {
		e, mine, err := s.enter(id{p.ID, k})
		if err != nil {
			return nil, nil, err
		}
		if mine {
			s.begin(ctx, e, p, k)
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			return nil, nil, fault.Wrap(ctx.Err(), fault.LSPRequestTimeout, "%s did not start in time", k.name)
		}
		if e.err != nil {
			return nil, nil, e.err
		}
		if e.p.hold() {
			return e.p, e.p.release, nil
		}
		s.leave(id{p.ID, k}, e) // it ended meanwhile
	}
}

// hold keeps the server from being stopped for want of use; false: it is not there any more.
func (p *provider) hold() bool {
	select {
	case <-p.dead:
		return false
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.busy++
	p.used = time.Now()
	return true
}

func (p *provider) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	p.used = time.Now()
}

// enter finds the entry of a server or makes it; mine: the caller has to start it.
func (s *Service) enter(at id) (e *entry, mine bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, fault.New(fault.ShuttingDown, "the Runner is stopping")
	}
	if e := s.running[at]; e != nil {
		return e, false, nil
	}
	if s.ailing(at) {
		return nil, false, fault.New(fault.LSPServerFailed, "%s has ended by itself %d times; it is left alone for a while", at.kind.name, failures).
			WithNext("look at it by hand on the Runner, or call again in some minutes")
	}
	e = &entry{ready: make(chan struct{})}
	s.running[at] = e
	if s.watch == nil {
		s.watch = time.AfterFunc(idleAfter/4, s.tidy)
	}
	return e, true, nil
}

// ailing reports that a server ended by itself too often lately.
func (s *Service) ailing(at id) bool {
	n := 0
	for _, t := range s.failed[at] {
		if time.Since(t) < failureTime {
			n++
		}
	}
	return n >= failures
}

// begin starts a server for an entry, and makes room for it.
func (s *Service) begin(ctx context.Context, e *entry, p *runner.Project, k *kind) {
	defer close(e.ready)
	at := id{p.ID, k}
	program := k.find()
	if program == "" {
		e.err = fault.New(fault.LSPServerUnavailable, "%s is not installed where the Runner runs", k.name).
			WithNext("use search_project_texts, or install it on the Runner's machine")
		s.leave(at, e)
		return
	}
	s.makeRoom(e)
	root, err := filepath.EvalSymlinks(p.Path)
	if err == nil {
		err = os.MkdirAll(s.cache, 0o700)
	}
	if err != nil || s.cache == "" {
		e.err = fault.Wrap(err, fault.LSPServerUnavailable, "the Runner has no directory for the caches of language servers")
		s.leave(at, e)
		return
	}
	e.p = newProvider(k, p, root)
	// Who asked first may give up; the server is for all who ask.
	if e.err = e.p.start(context.WithoutCancel(ctx), program, s.cache); e.err != nil {
		s.fail(at)
		s.leave(at, e)
		return
	}
	go func() {
		<-e.p.dead
		e.p.mu.Lock()
		ours := e.p.stopped
		e.p.mu.Unlock()
		if !ours {
			s.fail(at)
		}
		s.leave(at, e)
	}()
}

func (s *Service) fail(at id) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[at] = append(s.failed[at], time.Now())
	if n := len(s.failed[at]); n > failures {
		s.failed[at] = s.failed[at][n-failures:]
	}
}

func (s *Service) leave(at id, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[at] == e {
		delete(s.running, at)
	}
}

// idle are the running servers that nobody uses but except, and of them the one unused for longest.
func (s *Service) idle(except *entry) (oldest *provider, all []*provider, running int) {
	var since time.Time
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.running {
		if e == except {
			continue
		}
		running++
		select {
		case <-e.ready:
		default:
			continue
		}
		if e.p == nil || e.err != nil {
			continue
		}
		e.p.mu.Lock()
		free, used := e.p.busy == 0, e.p.used
		e.p.mu.Unlock()
		if !free {
			continue
		}
		all = append(all, e.p)
		if oldest == nil || used.Before(since) {
			oldest, since = e.p, used
		}
	}
	return oldest, all, running
}

func (s *Service) makeRoom(mine *entry) {
	oldest, _, running := s.idle(mine)
	if running >= maxServers && oldest != nil {
		oldest.stop()
	}
}

// tidy stops servers that nobody has used for long.
func (s *Service) tidy() {
	_, all, _ := s.idle(nil)
	for _, p := range all {
		p.mu.Lock()
		old := p.busy == 0 && time.Since(p.used) > idleAfter
		p.mu.Unlock()
		if old {
			p.stop()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil && !s.closed {
		s.watch.Reset(idleAfter / 4)
	}
}

// Leave stops the servers of a Project that is not served any more.
func (s *Service) Leave(project event.ProjectID) {
	s.end(func(at id) bool { return at.project == project })
}

// Close stops all servers and waits until they are gone.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	if s.watch != nil {
		s.watch.Stop()
	}
	s.mu.Unlock()
	s.end(func(id) bool { return true })
}

func (s *Service) end(which func(id) bool) {
	s.mu.Lock()
	var list []*entry
	for at, e := range s.running {
		if which(at) {
			list = append(list, e)
		}
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, e := range list {
		all.Go(func() {
			<-e.ready
			if e.p != nil && e.p.conn != nil {
				e.p.stop()
			}
		})
	}
	all.Wait()
}
