package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// unpack puts an archive of files into dir.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(to, 0o700)
		} else if b, rerr := io.ReadAll(r); rerr != nil {
			err = rerr
		} else {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A log that the program before state.db wrote opens, verifies, gives the answers that were
// given then, and takes commits.
func TestPreviousDirectoryGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	unpack(t, filepath.Join("testdata", "previous.tar.gz"), dir)
	var before struct {
		Sessions session.Page   `json:"sessions"`
		Summary  map[string]any `json:"summary"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	if err == nil {
		err = json.Unmarshal(b, &before)
	}
	if err != nil {
		t.Fatal(err)
	}
	id := before.Sessions.Sessions[1].SessionID
	open := func() (*eventlog.Log, *models) {
		m := newModels(dir, 1, slog.New(slog.DiscardHandler))
		log, err := eventlog.Open(t.Context(), eventlog.Options{Dir: dir, Durability: eventlog.Process, Server: event.NewInstanceID(), Base: m.keeper})
		if err != nil {
			t.Fatal(err)
		}
		m.serve(log)
		return log, m
	}
	for life := range 3 {
		log, m := open()
		if life > 0 && log.Status().Folded > 1 {
			t.Errorf("life %d folded %d commits again", life, log.Status().Folded)
		}
		if err := log.Replay(t.Context(), eventlog.Range{}, func(eventlog.Entry) error { return nil }); err != nil {
			t.Fatal(err)
		}
		limit := before.Sessions.Limit
		page, err := m.sessions.Page(session.Filter{AnyAuthority: true}, 0, &limit)
		if err != nil {
			t.Fatal(err)
		}
		if life == 0 {
			if diff := cmp.Diff(before.Sessions, page); diff != "" {
				t.Error(diff)
			}
			v, err := m.sessions.Load(id)
			if err != nil {
				t.Fatal(err)
			}
			limit := 200
			now := session.NewSummary(v, &limit)
			b, _ := json.Marshal(now)
			var got map[string]any
			_ = json.Unmarshal(b, &got)
			if diff := cmp.Diff(before.Summary["events"], got["events"]); diff != "" {
				t.Error(diff)
			}
		}
		core, err := m.sessions.Target(id)
		if err != nil {
			t.Fatal(err)
		}
		agg := event.SessionAggregate(id)
		head, err := log.Head(agg)
		if err != nil || head.Version != core.Version {
			t.Fatal(head, core.Version, err)
		}
		if _, err := log.Append(t.Context(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: agg, Expect: head, At: time.Now(),
			Events: []event.Event{event.ContextUpdated{}}}); err != nil {
			t.Fatal(err)
		}
		if after, _ := m.sessions.Core(id); after.Version != core.Version+1 || after.Observed != core.Observed+1 {
			t.Errorf("life %d: %+v", life, after)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
