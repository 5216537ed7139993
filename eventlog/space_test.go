package eventlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

func TestSpaceState(t *testing.T) {
	const mb, gb = int64(1) << 20, int64(1) << 30
	for name, c := range map[string]struct {
		used, free, budget int64
		want               string
	}{
		"room":                            {mb, 100 * gb, gb, SpaceOK},
		"just below the reserve":          {899 * mb, 100 * gb, 1000 * mb, SpaceOK},
		"at the reserve":                  {900 * mb, 100 * gb, 1000 * mb, SpaceReserve},
		"the budget is more than is free": {950 * mb, 100 * mb, 10 * gb, SpaceReserve},
		"less free than two blocks":       {mb, 15 * mb, gb, SpaceReserve},
		"free cannot be told":             {mb, -1, gb, SpaceOK},
		"free cannot be told, budget can": {gb, -1, gb, SpaceReserve},
	} {
		if got := spaceState(c.used, c.free, c.budget); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// At 90 % new work is refused and what is open may finish; at 100 % the answer is an error
// and not a loss; with a larger budget the log goes on.
func TestFullBudget(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, func(o *Options) { o.MaxBytes = minBudget })
	a := event.SessionAggregate(event.NewSessionID())
	fill := func(reserve bool) (last Head) {
		for i := 0; i < 2000; i++ {
			d := draft(l, t, a)
			d.Events, d.Reserve = threeEvents(i), reserve
			_, err := l.Append(context.Background(), d)
			if fault.KindOf(err) == fault.StorageFull {
				return d.Expect
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Fatal("the budget has no end")
		return Head{}
	}
	ordinary := fill(false)
	if s := l.Status(); s.Space != SpaceReserve || s.Bytes < minBudget*89/100 || s.Bytes > minBudget*92/100 {
		t.Errorf("status %+v", s)
	}
	if err := l.Admit(); fault.KindOf(err) != fault.StorageFull {
		t.Errorf("admit: %v", err)
	}
	reserved := fill(true)
	if reserved.Version < ordinary.Version+20 {
		t.Errorf("the reserve took %d commits only", reserved.Version-ordinary.Version)
	}
	s := l.Status()
	if !s.Writing || s.Bytes > minBudget {
		t.Errorf("status %+v", s)
	}
	info, err := l.js.Stream(context.Background(), streamName)
	if err != nil {
		t.Fatal(err)
	}
	if stored := info.CachedInfo().State.Bytes; stored != uint64(s.Bytes) {
		t.Errorf("the guard counts %d bytes, the stream has %d", s.Bytes, stored)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, func(o *Options) { o.MaxBytes = 4 * minBudget })
	if head, _ := l.Head(a); head != reserved {
		t.Errorf("head %+v, before %+v", head, reserved)
	}
	mustAppend(t, l, a)
}

// A commit that is too large is refused before it goes anywhere.
func TestOversizedCommit(t *testing.T) {
	l := open(t, t.TempDir())
	a := event.SessionAggregate(event.NewSessionID())
	d := draft(l, t, a)
	d.Events = []event.Event{event.InstructionAccepted{Text: strings.Repeat("x", event.MaxCommitBytes)}}
	if _, err := l.Append(context.Background(), d); fault.KindOf(err) != fault.InvalidArguments {
		t.Errorf("append: %v", err)
	}
	d.Events = []event.Event{event.InstructionAccepted{Text: strings.Repeat("x", event.MaxCommitBytes-1000)}}
	if _, err := l.Append(context.Background(), d); err != nil {
		t.Errorf("a commit of nearly the limit: %v", err)
	}
}

// Nobody else on the machine reads the data directory.
func TestDataDirectoryIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	l := open(t, dir)
	mustAppend(t, l, event.SessionAggregate(event.NewSessionID()))
	check := func() {
		t.Helper()
		err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a temporary file of the running server
			}
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return nil
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is %s", strings.TrimPrefix(p, dir), info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	check()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	check()
}
