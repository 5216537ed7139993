package session

import (
	"encoding/json"
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

// older is a commit as an older program has stored it: without what may be missing, with the
// members that are retired.
func older(t *testing.T, s Stored) Stored {
	t.Helper()
	body, err := s.Commit.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var c any
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				strip(x)
			}
		case map[string]any:
			for _, gone := range []string{"inv", "context", "previous", "role", "observed_paths", "changed_paths", "input", "transport", "effect", "validation"} {
				delete(v, gone)
			}
			for _, x := range v {
				strip(x)
			}
			if _, is := v["tool"]; is || v["title"] != nil || v["text"] != nil {
				v["context_revision"], v["context_revision_before"], v["context_revision_after"] = 7, 6, 7
			}
		}
	}
	strip(c)
	if body, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	if s.Commit, err = event.Decode(body); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if !strings.Contains(string(body), "context_revision") {
		t.Fatal("the commit has no retired member")
	}
	return s
}

// Commits of an older shape are taken in as they are: what may be missing is empty, retired
// members reach no state and are written nowhere again, and the Session goes on.
//
// Covers: RES-02, RES-03, RES-09, RES-10, RES-11
func TestOlderShapeIsTakenIn(t *testing.T) {
	h := began("an old one")
	h.read("a.go")
	h.edit("b.go")
	w := newWorld(t, 0)
	for _, s := range h.commits {
		w.commit(older(t, s))
	}
	w.restart() // from rows
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
	v := must(w.store.View(testID))(t)
	if c := v.Core; c.Lifecycle != Active || c.Context != (event.ExecutionContext{}) || c.Edited || len(c.Jobs)+len(c.Open)+len(c.Ended) != 0 {
		t.Fatalf("%+v", c)
	}
	for _, it := range v.Tail.Items() {
		if it.Inv != "" || it.Role != "" {
			t.Fatalf("it is correlated: %+v", it)
		}
	}
	if b, err := json.Marshal(NewFeedback(v, all(), 100)); err != nil || strings.Contains(string(b), ".go") {
		t.Fatalf("an explored path is there: %s %v", b, err)
	}
	_, carried := Carry(v)
	row := AppendCore(nil, v)
	if out := strings.Join(views(v), "") + string(carried) + string(row); strings.Contains(out, "context_revision") {
		t.Fatal("a retired member is written again")
	}
	h.commit(event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: "sub"}})
	w.commit(h.commits[len(h.commits)-1])
	if c, _ := w.store.Core(testID); c.Context.DefaultCwd != "sub" {
		t.Fatalf("%+v", c.Context)
	}
}
