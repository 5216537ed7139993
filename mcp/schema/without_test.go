package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"webcodex/mcp/schema"
)

// TestWithout takes out one member and leaves every other byte of a member's value alone.
func TestWithout(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"_wc":1}`, `{}`},
		{`{"a":9007199254740993,"_wc":{"b":[{}]},"c":"<\u003c"}`, `{"a":9007199254740993,"c":"<\u003c"}`},
		{` { "a" : { "_wc" : 1 } , "_wc" : null } `, `{"a":{ "_wc" : 1 }}`},
		{`"{\"_wc\":1,\"a\":2}"`, `{"a":2}`},
		{`{"\u005fwc":1,"a":"_wc"}`, `{"a":"_wc"}`},
		{`{"a":1}`, `{"a":1}`},
		{`{"a":1,"a":2,"_wc":3}`, `{"a":1,"a":2,"_wc":3}`}, // reads two ways: for Normalise to refuse
		{`["_wc"]`, `["_wc"]`},
		{`{"_wc":`, `{"_wc":`},
		{`null`, `null`},
		{``, ``},
	} {
		if got := schema.Without(json.RawMessage(c.in), "_wc"); string(got) != c.want {
			t.Errorf("Without(%s) = %s, want %s", c.in, got, c.want)
		}
	}
}

// FuzzWithout: what was an object without the member twice stays one, and the member is gone.
func FuzzWithout(f *testing.F) {
	for _, s := range []string{`{"_wc":1,"a":[1]}`, `"{\"_wc\":1}"`, `{"_wc":{},"\u005fwc":1}`, `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := schema.Without(in, "_wc")
		if json.Valid(in) != json.Valid(out) {
			t.Fatalf("%q became %q", in, out)
		}
		if again := schema.Without(out, "_wc"); !bytes.Equal(again, out) {
			t.Fatalf("not settled: %q then %q", out, again)
		}
	})
}
