package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// Twelve Sessions as a person is shown them. Their briefs are those that projections/session
// makes.
//
// Covers: HND-48
func TestHandoffsAsText(t *testing.T) {
	t.Parallel()
	briefs, err := filepath.Glob(filepath.Join("..", "..", "projections", "session", "testdata", "brief", "*.json"))
	if err != nil || len(briefs) != 12 {
		t.Fatal(len(briefs), err)
	}
	for _, file := range briefs {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var b session.Brief
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printBrief(&out, b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "handoff", strings.TrimSuffix(filepath.Base(file), ".json")+".txt")
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, out.Bytes()) {
			t.Errorf("%s differs:\n%s", path, out.String())
		}
	}
}

// Each Job is told of once, by how it stands.
//
// Covers: CON-20
func TestJobsAsText(t *testing.T) {
	t.Parallel()
	for want, j := range map[string]session.JobAttention{
		"":                                      {},
		"1 asked to end":                        {Active: 1, TerminalPending: 1},
		"2 running, 1 asked to end":             {Active: 3, Running: 2, TerminalPending: 1},
		"1 of which nobody knows how it stands": {Active: 1, Recovering: 1},
		"1 running, 2 asked to end, 3 of which nobody knows how they stand": {Active: 6, Running: 1, TerminalPending: 2, Recovering: 3},
	} {
		if got := jobsLine(j); got != want {
			t.Errorf("%+v: %q, want %q", j, got, want)
		}
	}
}

// The text says of a failure that was declared to come that it did, and of changes that nobody
// recorded not that they were made.
//
// Covers: HND-48
func TestWhatATextDoesNotClaim(t *testing.T) {
	t.Parallel()
	var b session.Brief
	b.Validation.Status = "not_run"
	b.Validation.Latest = &session.Run{Tool: "go_test", Outcome: "failed", Expectation: event.ExpectationMatched}
	if got := validationLine(b.Validation); !strings.Contains(got, "go_test failed as expected, ") {
		t.Errorf("%q", got)
	}
	b.Validation.Latest.Expectation = event.UnexpectedFailure
	if got := validationLine(b.Validation); strings.Contains(got, "as expected") {
		t.Errorf("%q", got)
	}
	b.Progress.State = session.StateNeedsProof
	if got := progressLine(b); strings.Contains(got, "files changed") {
		t.Errorf("%q", got)
	}
	b.Progress.Changed.Total = 1
	if got := progressLine(b); !strings.Contains(got, "files changed") {
		t.Errorf("%q", got)
	}
}
