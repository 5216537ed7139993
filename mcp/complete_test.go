package mcp

import (
	"strings"
	"testing"
	"time"
)

// A completion looks at the newest Sessions alone: of older ones it says that there are more, and
// not how many of them match.
func TestCompletionOfManySessions(t *testing.T) {
	r := newRig(t)
	actor := r.access.Principal().Actor
	oldest := string(r.begin(actor))
	for at := time.Now().UnixMilli(); time.Now().UnixMilli() == at; { // the others are newer
		time.Sleep(100 * time.Microsecond)
	}
	newest := ""
	for range maxCompleted {
		newest = string(r.begin(actor))
	}
	ask := func(value string) string {
		return r.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt",` +
			`"name":"continue_session"},"argument":{"name":"session_id","value":"` + value + `"}}}`}).body
	}
	for value, found := range map[string]int{newest: 1, oldest: 0, "": maxCompletions} {
		got := ask(value)
		if n := strings.Count(got, `"wc_sess_`); n != found || !strings.Contains(got, `"hasMore":true`) || strings.Contains(got, `"total"`) {
			t.Errorf("completion of %q: %d values in %.300s", value, n, got)
		}
	}
}
