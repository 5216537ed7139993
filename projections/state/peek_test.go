package state

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"webcodex/eventlog"
)

// Whatever became of the rest of the file, the checkpoint's own hash decides whether it is
// believed; and what is there but says nothing is not taken for a file that never was.
func TestPeekBelievesTheRow(t *testing.T) {
	cut := func(keep int64) func(string) error { return func(p string) error { return os.Truncate(p, keep) } }
	for name, c := range map[string]struct {
		spoil func(path string) error
		known bool
		err   error
	}{
		"as it is":          {func(string) error { return nil }, true, nil},
		"marked as spoiled": {func(p string) error { return os.WriteFile(p+"-spoiled", nil, 0o600) }, true, nil},
		"cut off at its end": {func(p string) error {
			info, err := os.Stat(p)
			return errors.Join(err, os.Truncate(p, info.Size()-4096))
		}, true, nil},
		"another row": {func(p string) error { return execIn(p, `UPDATE state_checkpoint SET seq = 1`) }, false, ErrUnknown},
		"no database": {func(p string) error { return os.WriteFile(p, make([]byte, 9000), 0o600) }, false, ErrUnknown},
		"half a head": {cut(50), false, ErrUnknown},
		"empty":       {cut(0), false, nil},
		"gone":        {os.Remove, false, nil},
		"empty beside its write-ahead log": {func(p string) error {
			return errors.Join(os.Truncate(p, 0), os.WriteFile(p+"-wal", make([]byte, 9000), 0o600))
		}, false, ErrUnknown},
		"gone beside its write-ahead log": {func(p string) error {
			return errors.Join(os.Remove(p), os.WriteFile(p+"-wal", make([]byte, 9000), 0o600))
		}, false, ErrUnknown},
		"no table": {func(p string) error { return execIn(p, `DROP TABLE state_checkpoint`) }, false, ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			path, at := peeked(t)
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			got, err := Peek(t.Context(), path)
			want := eventlog.BaseCheckpoint{}
			if c.known {
				want = at
			}
			if got != want || !errors.Is(err, c.err) {
				t.Errorf("%+v, %v; want %+v, %v", got, err, want, c.err)
			}
			if now, _ := os.ReadFile(path); string(now) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

// peeked is a closed file and where it stands.
func peeked(t *testing.T) (path string, at eventlog.BaseCheckpoint) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	k, _ := open(t, path, Options{})
	k.Apply(applied(1))
	k.Apply(applied(2))
	flush(t, k)
	at = must(k.Checkpoint())(t)
	if err := k.Close(); err != nil || at.Seq != 2 {
		t.Fatalf("%+v, %v", at, err)
	}
	return path, at
}

func execIn(path, query string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.Exec(query)
	return errors.Join(err, db.Close())
}
