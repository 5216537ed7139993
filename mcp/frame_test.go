package mcp

import (
	"encoding/json"
	"testing"
)

// FuzzFrame: no body makes the dispatcher panic, and what it lets through is one JSON object
// whose id every client can match again.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"id":"x","method":null}`, `{"id":-0,"method":"a"}`, `{"id":1e3}`, `[`, ``, `{"params":[]}`, `{"method":"a","params":{"_meta":7}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fr := frame{body: body}
		code, sentence := fr.parse()
		if code != 0 {
			if sentence == "" {
				t.Fatal("refused without a sentence")
			}
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatalf("%q passed", body)
		}
		if fr.id != nil {
			var again any
			if err := json.Unmarshal(fr.id, &again); err != nil || again == nil {
				t.Fatalf("id %q", fr.id)
			}
		}
		_ = fr.target()
	})
}
