package session

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/bench"
)

// workCommit is one recorded call in one commit, of a Session that reads, edits, runs and tests.
func workCommit(id event.SessionID, version uint64) event.Commit {
	c := callCommit(id, version)
	if version == 1 {
		return c
	}
	started, _ := c.Events[0].(event.ToolCallStarted)
	done, _ := c.Events[1].(event.ToolCallFinished)
	switch version % 10 {
	case 0, 5:
		started.Tool, done.Tool = "edit_project_files", "edit_project_files"
		done.Changed, done.Observed, done.Effect = done.Observed, nil, event.Effect{StateChanged: true, State: event.Completed}
	case 3:
		started.Tool, done.Tool = "run_process", "run_process"
		started.Input = event.Input{Executable: "make", ArgCount: 2, TimeoutSecs: 60}
		started.Execution = execution(int(version))
		done.Observed, done.Execution = nil, started.Execution.ID
	case 7:
		started.Tool, done.Tool = "go_test", "go_test"
		started.Input = event.Input{Packages: []string{fmt.Sprintf("./internal/package_%03d", version%100)}, TimeoutSecs: 60}
		passed := version%30 != 7
		done.Observed, done.Validation = nil, ranTests(started.Input.Packages[0], passed)
		if !passed {
			done.Status, done.FailureKind, done.Expectation = event.StatusFailed, "test_failure", event.UnexpectedFailure
		}
	}
	c.Events = []event.Event{started, done}
	return c
}

// ranTests is what a run of Go tests leaves: of a failed one each failure by name and place.
func ranTests(scope string, passed bool) *event.Validation {
	v := &event.Validation{Kind: "go_test", TargetID: "target:0123456789abcdef01234567", Scope: "validation_scope:v1:" + scope, Parser: "go-json",
		ParserVer: 1, Passed: &passed, TestsRun: 40, TestsPassed: 40,
		Bound: &event.Binding{Commit: strings.Repeat("1", 40), Tree: strings.Repeat("2", 64), Output: strings.Repeat("3", 64)}}
	if !passed {
		v.TestsPassed, v.TestsFailed = 38, 2
		v.Failures = []event.FailedCase{{Kind: event.FailureTest, Name: "sample.TestOne", File: "internal/one_test.go", Line: 12},
			{Kind: event.FailureTest, Name: "sample.TestTwo", File: "internal/two_test.go", Line: 34}}
	}
	return v
}

// whole feeds a Session whose tail and board are full.
func (f *filled) whole(id event.SessionID) {
	version := uint64(0)
	next := func(c event.Commit) {
		version++
		c.Version = version
		f.feed(c)
	}
	for v := range uint64(MaxTail/2 + 10) {
		next(workCommit(id, v+1))
	}
	kinds := event.MessageKinds()
	for n := range MaxMessages + 10 {
		c := workCommit(id, 1)
		c.Events = []event.Event{event.MessagePosted{Message: messageNo(n), Kind: kinds[n%len(kinds)], Text: measuredText, Priority: event.PriorityNormal}}
		next(c)
	}
}

// selectAll is the SQL of a cold read with its board alone: the same statements, every column
// scanned.
func selectAll(file *tables, id event.SessionID) error {
	ctx := context.Background()
	tx, err := file.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var r stored
	var hash int64
	if err := tx.StmtContext(ctx, file.row).QueryRowContext(ctx, string(id)).
		Scan(&r.num, &r.id, &r.authority, &r.client, &r.project, &r.life, &r.updated, &r.busy, &r.core, &hash); err != nil {
		return err
	}
	var place int64
	var text string
	if err := scanAll(tx.StmtContext(ctx, file.tail), r.num, &text, &hash); err != nil {
		return err
	}
	return scanAll(tx.StmtContext(ctx, file.messages), r.num, &place, &text, &hash)
}

func scanAll(s *sql.Stmt, num int64, into ...any) error {
	rows, err := s.Query(num)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	return rows.Err()
}

func wholeSessions(t testing.TB) (*filled, []event.SessionID) {
	f := newFilled(t)
	var ids []event.SessionID
	for n := range rounds {
		ids = append(ids, sessionNo(n))
		f.whole(ids[n])
	}
	f.chill(t)
	return f, ids
}

// viewed reads a cold Session and makes something of it.
func (f *filled) viewed(t testing.TB, ids []event.SessionID, make func(View)) time.Duration {
	began := time.Now()
	for _, id := range ids {
		v, err := f.store.Load(id)
		if err != nil || v.Tail.Len() != MaxTail || v.Board.Len() != MaxMessages {
			t.Fatal(v.Tail.Len(), v.Board.Len(), err)
		}
		make(v)
	}
	return time.Since(began)
}

// Of a cold Session whose tail and board are full, the brief and the feedback cost little beside
// reading the rows that they need.
func TestRatioBriefAndFeedback(t *testing.T) {
	bench.Skip(t)
	f, ids := wholeSessions(t)
	s := all()
	s.Workspace.Tree = strings.Repeat("4", 64)
	rows := func() time.Duration {
		began := time.Now()
		for _, id := range ids {
			if err := selectAll(f.store.file, id); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(began)
	}
	bench.Run(t, bench.Comparison{Name: "3 the brief of a full tail and board vs the SQL alone", Bar: 3, AtMost: true,
		Ours: func() time.Duration {
			return f.viewed(t, ids, func(v View) { NewHandoff(v, s, false, nil) })
		}, Yardstick: rows})
	bench.Run(t, bench.Comparison{Name: "3 the continuation feedback of a full tail and board vs the SQL alone", Bar: 3, AtMost: true,
		Ours: func() time.Duration {
			return f.viewed(t, ids, func(v View) { NewFeedback(v, s, MaxFeedbackPaths) })
		}, Yardstick: rows})
}

func BenchmarkColdBrief(b *testing.B) {
	f, ids := wholeSessions(b)
	b.ReportAllocs()
	for b.Loop() {
		f.viewed(b, ids[:1], func(v View) { NewHandoff(v, all(), false, nil) })
	}
}

func BenchmarkColdFeedback(b *testing.B) {
	f, ids := wholeSessions(b)
	b.ReportAllocs()
	for b.Loop() {
		f.viewed(b, ids[:1], func(v View) { NewFeedback(v, all(), MaxFeedbackPaths) })
	}
}

func BenchmarkWholeRows(b *testing.B) {
	f, ids := wholeSessions(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := selectAll(f.store.file, ids[0]); err != nil {
			b.Fatal(err)
		}
	}
}
