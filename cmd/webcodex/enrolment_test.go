package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	link "webcodex/runner/link/client"
	"webcodex/runner/wire"
)

// What is said of a damaged enrolment, and of one that others may read, helps: a new code is taken
// with a new key. A data directory of another Runner is left alone all the same.
func TestABadEnrolmentIsMadeAnew(t *testing.T) {
	t.Parallel()
	seed, err := link.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	// Nothing listens there: an enrolment that gets as far has passed what is tested.
	code := wire.Code{Client: "box-00000001", Server: make([]byte, 32), URL: "nats://127.0.0.1:1"}
	mark := make([]byte, 32)
	sound := enrolment{Client: code.Client, URL: code.URL, Server: code.Server, Seed: seed, Code: mark}
	body, err := json.Marshal(sound)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(body), "box-00000001", "box-00000002", 1)
	for name, c := range map[string]struct {
		body string
		mode os.FileMode
		says string
	}{
		"half":                           {string(body[:40]), 0o600, "cannot be reached"},
		"no seed":                        {`{"client_id":"box-00000001"}`, 0o600, "cannot be reached"},
		"open to others":                 {string(body), 0o644, "cannot be reached"},
		"another Runner's":               {other, 0o600, "belongs to the Runner box-00000002"},
		"another Runner's, open":         {other, 0o644, "belongs to the Runner box-00000002"},
		"another Runner's, without seed": {`{"client_id":"box-00000002"}`, 0o600, "belongs to the Runner box-00000002"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, enrolmentFile), []byte(c.body), c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := readEnrolment(dir, enrolmentFile); name != "another Runner's" && err == nil {
			t.Errorf("%s: it is taken as it is", name)
		}
		_, err := enrol(t.Context(), dir, code.String(), "", slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if next, err := readEnrolment(dir, enrollingFile); err == nil && string(next.Seed) == string(seed) {
			t.Errorf("%s: the old secret is used again", name)
		}
	}
}
