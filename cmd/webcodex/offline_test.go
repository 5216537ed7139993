package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/history"
	"webcodex/eventlog/event"
)

// stopped is a data directory with one Session, whose server has ended.
func stopped(t *testing.T) (repo, data string) {
	t.Helper()
	repo, data = scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	begin(t, c)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	return repo, data
}

// given no server, then history tells the policy of the configuration file and the variables, as
// up would be started with, and refuses what up refuses; beside a server it tells that one's.
func TestHistoryWithoutAServerTellsTheConfiguredPolicy(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	repo, data := stopped(t)
	policy := func(a ...string) history.Policy {
		t.Helper()
		code, text := told(t, append([]string{"history", "--json", "--data", data}, a...)...)
		var r history.Report
		if err := json.Unmarshal([]byte(text), &r); code != exitOK || err != nil {
			t.Fatalf("%d %v: %s", code, err, text)
		}
		return r.Policy
	}
	def := DefaultConfig().History.policy()
	if p := policy(); p != def {
		t.Errorf("nobody chose: %+v", p)
	}
	file := filepath.Join(t.TempDir(), "other.toml")
	put(t, file, "[history]\npolicy = \"tail\"\nmax_bytes = \"1GiB\"\n")
	tail := history.Policy{Tail: true, MaxAge: def.MaxAge, MaxBytes: 1 << 30}
	if p := policy("--config", file); p != tail {
		t.Errorf("the file that was named: %+v", p)
	}
	t.Setenv("WEBCODEX_CONFIG", file)
	t.Setenv("WEBCODEX_HISTORY_MAX_AGE", "5d")
	tail.MaxAge = 5 * day
	if p := policy(); p != tail {
		t.Errorf("variables: %+v", p)
	}
	c := up1(t, repo, data, "--listen", "127.0.0.1:0", "--history-policy", "full")
	tail.Tail = false
	if p := policy(); p != tail {
		t.Errorf("beside a server: %+v", p)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	put(t, file, "histroy = 1\n")
	if code, text := told(t, "history", "--data", data); code != exitUsage || !strings.Contains(text, "histroy") {
		t.Errorf("%d: %s", code, text)
	}
}

// given a log whose times stepped, then doctor warns with and without a server until somebody
// confirms the clock, and says how.
func TestDoctorTellsOfAClockToConfirm(t *testing.T) {
	t.Parallel()
	repo, data := stopped(t)
	o, err := openOffline(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	w := aggregate.NewWriter(o.log, func() time.Time { return time.Now().Add(-72 * time.Hour) })
	if _, err := w.Do(t.Context(), aggregate.Command{Aggregate: event.LogAggregate(), Actor: event.Actor{Credential: "system"}},
		func(time.Time) ([]event.Event, error) { return []event.Event{event.LogFilled{Fill: "0"}}, nil }); err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	clock := func() check {
		t.Helper()
		code, text := told(t, "doctor", "--json", "--data", data)
		var r struct{ Checks []check }
		if err := json.Unmarshal([]byte(text), &r); code != exitOK || err != nil {
			t.Fatalf("%d %v: %s", code, err, text)
		}
		for _, c := range r.Checks {
			if c.Name == "clock" {
				return c
			}
		}
		t.Fatal(text)
		return check{}
	}
	waits := func(c check) bool {
		return c.Status == statusWarn && strings.Contains(c.Detail, "stepped from") && strings.Contains(c.Fix, "history --confirm-clock")
	}
	if c := clock(); !waits(c) {
		t.Errorf("without a server: %+v", c)
	}
	up1(t, repo, data, "--listen", "127.0.0.1:0")
	if c := clock(); !waits(c) {
		t.Errorf("beside a server: %+v", c)
	}
	if code, text := told(t, "history", "--confirm-clock", "--data", data); code != exitOK {
		t.Fatal(text)
	}
	if c := clock(); c.Status != statusOK || c.Fix != "" {
		t.Errorf("after it was confirmed: %+v", c)
	}
}
