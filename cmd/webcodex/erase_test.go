package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// holding are the files of a data directory in which a text stands.
func holding(t *testing.T, dir, text string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// saying starts a Session that says a text, and gives its id.
func saying(t *testing.T, c *child, w *window, text string) event.SessionID {
	t.Helper()
	var out struct {
		SessionID event.SessionID `json:"session_id"`
	}
	res, err := w.call(t.Context(), "work_on_project", encode(args{"project": c.ready.Project, "instruction": text}))
	if err == nil {
		err = decode(res, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.SessionID
}

// given a Session that retention removed and whose tombstone has aged out, when it is erased,
// then nothing of it is left, others stay, and the same command goes on where it broke off after
// the log had forgotten it.
func TestEraseWhatRetentionRemoved(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0", "--historical-session-retention-limit", "1")
	w, other := begin(t, c)
	var ids []event.SessionID
	for _, text := range []string{"markerofthefirst", "markerofthesecond", "markerofthethird"} {
		id := saying(t, c, w, text)
		if res, err := w.call(t.Context(), "close_session", encode(args{"session_id": id})); err != nil || !res.Success {
			t.Fatalf("%v: %s", err, res.Output)
		}
		ids = append(ids, id)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if len(holding(t, data, "markerofthefirst")) == 0 {
		t.Fatal("the log does not hold what it has to lose")
	}
	for range 2 {
		if _, err := erase(t.Context(), data, ids[0]); err != nil {
			t.Fatal(err)
		}
		if left := holding(t, data, "markerofthefirst"); len(left) > 0 {
			t.Errorf("%v", left)
		}
		// As if it had broken off between the log and the read models.
		if err := beginErase(data, ids[0]); err != nil {
			t.Fatal(err)
		}
		if code, text := told(t, "doctor", "--data", data); code != exitOK || !strings.Contains(text, "webcodex erase --yes "+string(ids[0])) {
			t.Errorf("%d: %s", code, text)
		}
	}
	if err := os.Remove(filepath.Join(data, eraseMark)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []event.SessionID{ids[0], event.NewSessionID()} {
		if _, err := erase(t.Context(), data, id); fault.KindOf(err) != fault.UnknownSessionID {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []event.SessionID{other, ids[2]} {
		if _, err := replayLines(t.Context(), data, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// given a server that was killed during a call, when the Session is erased without a start
// between, then it is: the call has its end, and the next server serves.
func TestEraseAfterAKillDuringACall(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	w, other := begin(t, c)
	id := saying(t, c, w, "markerofthekilled")
	go func() {
		_, _ = w.call(context.Background(), "run_shell", encode(args{"project": c.ready.Project, "session_id": id, "command": "echo begun > ../marker; sleep 30"}))
	}()
	if _, err := awaitMarker(t.Context(), filepath.Join(filepath.Dir(repo), "marker")); err != nil {
		t.Fatal(err)
	}
	c.kill()
	if _, err := erase(t.Context(), data, id); err != nil {
		t.Fatal(err)
	}
	if left := holding(t, data, "markerofthekilled"); len(left) > 0 {
		t.Errorf("%v", left)
	}
	c = up1(t, repo, data, "--listen", "127.0.0.1:0")
	w, err := dialWindow(t.Context(), c.ready.MCPURL, c.ready.Token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	if res, err := w.call(t.Context(), "work_on_project", encode(args{"session_id": id, "instruction": "go on"})); err != nil || res.Success || !bytes.Contains(res.Output, []byte("session_retention_expired")) {
		t.Errorf("%v: %s", err, res.Output)
	}
	if res, err := w.call(t.Context(), "work_on_project", encode(args{"session_id": other, "instruction": "go on"})); err != nil || !res.Success {
		t.Errorf("%v: %s", err, res.Output)
	}
	if out, err := exec.Command(program(t), "doctor", "--data", data).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
