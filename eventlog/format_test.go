package eventlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// files are the hashes of what lies in a data directory and is not written at every start.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A data directory of another format is reported and left as it is.
//
// Covers: RES-01
func TestOtherFormatsAreReportedAndLeft(t *testing.T) {
	for _, version := range []int{0, 3} {
		for _, readOnly := range []bool{false, true} {
			dir := filled(t, 3, Process)
			if err := os.WriteFile(filepath.Join(dir, formatName), fmt.Appendf(nil, `{"format":%d,"log_max_bytes":67108864}`, version), 0o600); err != nil {
				t.Fatal(err)
			}
			before := files(t, dir)
			l, err := Open(context.Background(), Options{Dir: dir, Durability: Process, ReadOnly: readOnly})
			if err == nil {
				_ = l.Close()
				t.Fatalf("format %d was opened", version)
			}
			if k := fault.KindOf(err); k != fault.LogDamaged && k != fault.Unavailable {
				t.Errorf("format %d: %v", version, err)
			}
			if d := cmp.Diff(before, files(t, dir)); d != "" {
				t.Errorf("format %d: %s", version, d)
			}
		}
	}
}

// A commit of another format closes its record, is never served, and stays in the log.
//
// Covers: RES-01
func TestCommitOfAnotherFormatIsReportedAndLeft(t *testing.T) {
	for _, version := range []int{0, 3} {
		dir, base := t.TempDir(), newIndex()
		l := open(t, dir, over(base))
		whole, other := aggregates(2)[0], aggregates(2)[1]
		mustAppend(t, l, whole)
		c := event.Commit{Format: version, ID: event.NewCommandID(), Aggregate: other, Version: 1, Events: []event.Event{event.SessionClosed{}}}
		body, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		plantBytes(t, l, other, body)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		base = base.restarted()
		l = open(t, dir, over(base))
		if d := l.Status().Damaged; len(d) != 1 || d[0].Aggregate != other.String() || d[0].Reason != damageUnreadable {
			t.Errorf("format %d: %+v", version, d)
		}
		if _, err := l.Head(other); fault.KindOf(err) != fault.LogDamaged {
			t.Errorf("format %d: %v", version, err)
		}
		for _, a := range base.seen {
			if a.Commit.Aggregate == other {
				t.Errorf("format %d was handed to the read models", version)
			}
		}
		mustAppend(t, l, whole)
		if m, err := l.get(context.Background(), 3); err != nil || !bytes.Equal(m.Data, body) {
			t.Errorf("format %d: the stored commit is another one now: %v", version, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
