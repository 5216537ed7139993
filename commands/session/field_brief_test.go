package session_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"webcodex/commands/board"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/run"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

// A Session as the field has it: calls with huge arguments, paths with secrets in them until the
// tail is full, and a board of the longest messages. Its brief is small, valid and counts right, no
// secret is in it or in the log, and it is the same after a restart with and without state.db.
//
// Covers: HND-13, HND-16, HND-18, HND-32, EVT-17, MSG-04
func TestTheBriefOfASessionFromTheField(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	calls, long, letter := 20, 5, "𝕏" // every fifth message is of the longest
	if os.Getenv("WEBCODEX_SOAK") != "" {
		calls, long = view.MaxTail, 1
	}
	e := calltest.New(t, nil)
	id := start(e, args{"project": alpha, "instruction": strings.Repeat(letter, 3000) + " and push with " + secret}).SessionID
	huge := make([]string, 30)
	for i := range huge {
		huge[i] = strings.Repeat("x", 480) + secret
	}
	for range calls {
		if _, err := e.Call(&run.RunProcess, args{"project": alpha, "session_id": id, "executable": "make", "args": huge, "stdin": secret}); err != nil {
			t.Fatal(err)
		}
	}
	var edits []event.Event
	for n := range view.MaxTail / 2 {
		c := event.NewCallID()
		path := fmt.Sprintf("%s/%s/%03d.go", secret, strings.Repeat("d", 200), n%300)
		edits = append(edits, event.ToolCallStarted{Call: c, Role: event.RoleBusiness, Tool: "edit_project_files", Input: event.Input{Paths: []string{path}, PathCount: 1}},
			event.ToolCallFinished{Call: c, Role: event.RoleBusiness, Tool: "edit_project_files", Status: event.StatusSucceeded,
				Changed: []string{path, fmt.Sprintf("src/%03d.go", n%300)}, Effect: event.Effect{StateChanged: true}})
	}
	for some := range slices.Chunk(edits, 100) {
		e.Append(id, some...)
	}
	kinds := []string{"decision", "progress", "todo", "question"}
	for n := range view.MaxMessages {
		chars := view.MaxMessageChars - len(secret) - 1
		if n%long > 0 {
			chars = 300
		}
		calltest.Must[board.PostOut](e, &board.PostMessage, args{"session_id": id, "kind": kinds[n%len(kinds)],
			"message": secret + " " + strings.Repeat(letter, chars)})
	}
	read := func() []byte {
		raw := mustOutput(e, &session.ReadHandoff, args{"session_id": id})
		if n := bytes.Index(raw, []byte(`"handoff_brief":`)); n < 0 || len(raw)-n-len(`"handoff_brief":`)-1 > view.MaxBriefBytes {
			t.Errorf("%d bytes", len(raw)-n)
		}
		if !utf8.Valid(raw) || bytes.Contains(raw, []byte("ghp_")) {
			t.Errorf("not UTF-8, or a secret: %s", raw)
		}
		return raw
	}
	raw := read()
	b := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id}).Brief
	for name, n := range map[string]*int{"decisions": b.Task.Decisions.Total, "progress": b.Task.Progress.Total, "todos": b.Attention.OpenTodos, "questions": b.Attention.OpenQuestions} {
		if n == nil || *n != view.MaxMessages/len(kinds) {
			t.Errorf("%s: %v", name, n)
		}
	}
	v, err := e.Store.Load(id)
	if err != nil || v.Tail.Len() != view.MaxTail || v.Board.Len() != view.MaxMessages {
		t.Fatal(v.Tail.Len(), v.Board.Len(), err)
	}
	// The tail holds 1,000 finishes at most: 300 files, each with its neighbour below a secret.
	if c := b.Progress.Changed; c.Total != 600 || !c.Truncated || c.Returned != len(c.Items) {
		t.Errorf("%+v", c)
	}
	if b.Task.Root == nil || !b.Task.Root.Truncated || !strings.HasPrefix(b.Task.Root.Text, letter) || b.Task.Latest != nil {
		t.Errorf("%+v %+v", b.Task.Root, b.Task.Latest)
	}
	for _, c := range e.Commits(id) {
		if body, err := c.Encode(); err != nil || bytes.Contains(body, []byte(secret)) && !bytes.Contains(body, []byte("edit_project_files")) { // those were put in past all tools
			t.Fatalf("%.300s %v", body, err)
		}
	}
	for _, forget := range []bool{false, true} {
		if err := e.Log.Close(); err != nil {
			t.Fatal(err)
		}
		if forget {
			if err := os.Remove(e.Dir + "/state.db"); err != nil {
				t.Fatal(err)
			}
		}
		next := calltest.At(t, e.Dir, nil)
		e.Log, e.Store, e.Fleet, e.Kernel, e.Keeper = next.Log, next.Store, next.Fleet, next.Kernel, next.Keeper
		e.Refs = next.Refs
		if again := read(); !bytes.Equal(raw, again) {
			t.Errorf("without state.db %v:\n%s\n%s", forget, raw, again)
		}
	}
}
