package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// markers are secrets as they occur, each with a part that must be nowhere afterwards.
var markers = map[string]string{
	"Authorization: Bearer qX7vLm2RtY9wKz4HbN8cPd3F":                                      "qX7vLm2RtY9wKz4HbN8cPd3F",
	"ghp_R4nD0mT0kenValue1234567890abcdefAB":                                              "R4nD0mT0kenValue",
	"sk-proj-Zx81mQ7rTn40vLp95sKd73bWcY26hGfJ":                                            "Zx81mQ7rTn40vLp95sKd",
	"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----\n":  "MIIEvQIBADANBgkqhkiG9w0B",
	"deploy --token h3xT0kenInTwoArguments77 now":                                         "h3xT0kenInTwoArguments77",
	"https://user:P4ssw0rdInUrl99@host.example/x":                                         "P4ssw0rdInUrl99",
	"API_KEY=kQ93zLmX72pVwT58sRbN":                                                        "kQ93zLmX72pVwT58sRbN",
	base64.StdEncoding.EncodeToString([]byte("ghp_B64wrappedTokenValue1234567890abcdef")): "B64wrapped",
}

// Secrets go through every kind of argument, through output, files and errors; then every
// byte under the data directory and everything the server said is searched for them, also
// as base64 of any alignment.
//
// Covers: EVT-17, EVT-20, STA-11
func TestNoSecretIsAtRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "always")
	for text := range markers {
		s := w.work(args{"instruction": "please use " + text + " for it"})
		p := args{"project": w.project, "session_id": s.SessionID}
		w.work(args{"session_id": string(s.SessionID), "instruction": "again with " + text})
		w.call("start_session", args{"title": "title " + text, "project": w.project})
		w.call("run_process", with(p, args{"executable": "printf", "args": []string{"%s", text}}))
		w.call("run_process", with(p, args{"executable": "sh", "args": append([]string{"-c", "echo \"$@\" >&2; exit 3", "x"}, strings.Fields(text)...), "stdin": text}))
		w.call("run_script", with(p, args{"language": "sh", "script": "cat <<'EOF'\n" + text + "\nEOF\nexit 1"}))
		w.call("run_shell", with(p, args{"command": "echo '" + text + "'; sleep 0.05", "sync_wait_secs": 0}))
		w.call("run_process", with(p, args{"executable": "/no/such/" + strings.ReplaceAll(text, "\n", "")}))
		w.call("edit_project_files", with(p, args{"changes": []args{{"kind": "create", "path": "secret.txt", "content": text}}}))
		w.call("edit_project_files", with(p, args{"changes": []args{{"kind": "edit", "path": "secret.txt",
			"edits": []args{{"kind": "replace_exact", "old_text": "absent " + text, "new_text": text}}}}}))
		w.call("read_files", with(p, args{"items": []args{{"path": "secret.txt"}, {"path": text}}}))
		w.call("search_project_texts", with(p, args{"queries": []args{{"pattern": text}}}))
		w.call("search_file_context", with(p, args{"path": "secret.txt", "pattern": text}))
		w.call("go_test", with(p, args{"unknown_argument": text}))
		w.call("write_project_file", with(p, args{"path": "secret.txt", "content": text, "overwrite": true}))
		w.call("delete_project_files", with(p, args{"paths": []string{"secret.txt"}}))
		w.call("read_git_diff", with(p, args{"base_commit": text}))
		on := args{"session_id": s.SessionID}
		m := must[beside](w, "post_session_message", with(on, args{"kind": "decision", "message": "so " + text, "tags": []string{text[:min(len(text), 60)]}, "delivery_key": text})).MessageID
		w.call("post_session_message", with(on, args{"kind": text, "message": text}))
		w.call("resolve_session_message", with(on, args{"message_id": m, "resolution": "is " + text}))
		w.call("read_files", with(p, args{"items": []args{{"path": "add.go"}}, "_wc": args{"record": s.SessionID, "ack_ref": text, "ack": []string{text},
			"context": []string{text}, "reply": args{"reply_to": m, "message": "re " + text}}}))
		w.call("record_external_observation", with(p, args{"adapter_id": strings.Repeat("a", 64), "event_id": strings.Repeat("b", 64), "tool": text, "status": "failed"}))
	}
	hay := w.atRest()
	for _, secret := range markers {
		for name, b := range hay {
			if form, at := lies(b, secret); at >= 0 {
				t.Errorf("%q is in %s: …%s…", form, name, around(b, at))
			}
		}
	}
}

// atRest is every file of the data directory by its name in it, once the read models have all
// that is in the log, and what the server said.
func (w *world) atRest() map[string][]byte {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := w.srv.models.keeper.Checkpoint()
		if err == nil && c.Seq == w.srv.log.Status().Seq {
			break
		}
		if time.Now().After(end) {
			w.t.Fatalf("the read models stand at %d of %d: %v", c.Seq, w.srv.log.Status().Seq, err)
		}
	}
	hay, total := map[string][]byte{"what the server said": []byte(w.said.String())}, 0
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(w.dir, path)
		hay[name], total = b, total+len(b)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if total < 50_000 || len(hay["state.db"]) == 0 || len(hay["state.db-wal"]) == 0 {
		w.t.Fatalf("only %d bytes were searched", total)
	}
	return hay
}

// lies is where a text or its base64 lies in b; -1: nowhere.
func lies(b []byte, text string) (form string, at int) {
	for _, form := range forms(text) {
		if at := bytes.Index(b, []byte(form)); at >= 0 {
			return form, at
		}
	}
	return "", -1
}

// forms are a secret as it is and its base64 at each alignment, without the edges that
// depend on the neighbours.
func forms(secret string) []string {
	out := []string{secret}
	for pad := range 3 {
		enc := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + secret))
		out = append(out, enc[4:len(enc)-4])
	}
	return out
}

func around(b []byte, at int) string {
	return fmt.Sprintf("%q", b[max(0, at-60):min(len(b), at+60)])
}
