package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"webcodex/projections/session"
)

// post sends one tools/call as it stands: Go's own encoder would repair what a host may send.
func (w *world) post(tool, arguments string) string {
	w.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.srv.tcpListener.Addr().String()+"/mcp", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + w.srv.access.Token(), "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(out)
}

// Half of a surrogate pair in a title or an instruction is stored as U+FFFD; in what goes
// into a file it is refused.
func TestHalfOfASurrogatePair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	for tool, a := range map[string]string{
		"work_on_project": `{"project":"` + w.project + `","instruction":"a \ud83d b \ude00\ud83d c"}`,
		"start_session":   `{"project":"` + w.project + `","title":"a \ud83d b \ude00\ud83d c"}`,
	} {
		if got := w.post(tool, a); !strings.Contains(got, "a \ufffd b \ufffd\ufffd c") && !strings.Contains(got, `a \ufffd b \ufffd\ufffd c`) {
			t.Errorf("%s: %s", tool, got)
		}
	}
	if got := w.post("write_project_file", `{"project":"`+w.project+`","path":"x.txt","content":"\ud83d"}`); !strings.Contains(got, "invalid_arguments") {
		t.Errorf("%s", got)
	}
	if p := must[session.Page](w, "list_sessions", args{"project": w.project}); p.Total != 2 {
		t.Errorf("%+v", p)
	}
}

// What a person or a program reads of hostile titles can neither move a cursor nor hide or
// reorder text.
func TestHostileTitlesAreShownHarmlessly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	hostileTitle := "\x1b]0;owned\x07\x1b[2J\u009b31m \u202egnp.exe\u202c \u200b\u2066x\u2069 \r\nnext\u2028line 👩\u200d👧 漢字"
	s := w.work(args{"instruction": hostileTitle})
	w.work(args{"session_id": s.SessionID, "instruction": hostileTitle})
	for _, a := range [][]string{{"sessions"}, {"sessions", "--json"}, {"handoff", string(s.SessionID)}, {"handoff", string(s.SessionID), "--json"},
		{"replay", string(s.SessionID)}, {"replay", string(s.SessionID), "--json"}, {"status"}, {"call", "read_session_summary", `{"session_id":"` + string(s.SessionID) + `"}`}} {
		var out, errs bytes.Buffer
		if code := runProgram(t.Context(), append(a, "--data", w.dir), strings.NewReader(""), &out, &errs); code != exitOK {
			t.Errorf("%v: exit %d, %s", a, code, errs.String())
			continue
		}
		for _, r := range out.String() + errs.String() {
			if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				t.Errorf("%v shows %+q: %+q", a, r, out.String())
				break
			}
		}
		if a[0] != "status" && !strings.Contains(out.String(), "漢字") && a[0] != "sessions" {
			t.Errorf("%v does not show the text: %s", a, out.String())
		}
	}
}
