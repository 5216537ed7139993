package schema_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

// sample has one member of every kind the catalogue uses.
func sample() *schema.Schema {
	edit := schema.Object(
		schema.Req("kind", schema.Enum("", "replace_exact", "delete_exact")),
		schema.Req("old_text", schema.Str("", 1, 0).Bytes(16)),
		schema.Opt("new_text", schema.Str("", 0, 0)))
	change := schema.Object(
		schema.Req("path", schema.Str("", 1, 64).Match(`^[^\x00]+$`)),
		schema.Opt("edits", schema.List("", edit, 1, 2)))
	return schema.Object(
		schema.Req("instruction", schema.Str("", 1, 8).Fault(fault.InvalidInstruction)),
		schema.Opt("changes", schema.List("", change, 1, 3)),
		schema.Opt("tags", schema.List("", schema.Str("", 1, 4), 0, 2)),
		schema.Opt("offset", schema.Knob("")),
		schema.Opt("timeout_secs", schema.Int("", 1, 3600)),
		schema.Opt("dry_run", schema.Bool("")),
		schema.Opt("arguments", &schema.Schema{Type: "object", Free: true}))
}

// TestNormaliseReads holds what is accepted and in which spelling it comes out.
func TestNormaliseReads(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", `{"instruction":"go"}`, `{"instruction":"go"}`},
		{"schema order", `{"dry_run":true,"instruction":"go"}`, `{"instruction":"go","dry_run":true}`},
		{"null of an optional member", `{"instruction":"go","tags":null,"offset":null}`, `{"instruction":"go"}`},
		{"whole object as a string", `"{\"instruction\":\"go\"}"`, `{"instruction":"go"}`},
		{"array as a string", `{"instruction":"go","tags":"[\"a\"]"}`, `{"instruction":"go","tags":["a"]}`},
		{"nested objects as strings", `{"instruction":"go","changes":"[\"{\\\"path\\\":\\\"a\\\"}\"]"}`,
			`{"instruction":"go","changes":[{"path":"a"}]}`},
		{"integer as a string", `{"instruction":"go","timeout_secs":" 60 "}`, `{"instruction":"go","timeout_secs":60}`},
		{"boolean as a string", `{"instruction":"go","dry_run":"false"}`, `{"instruction":"go","dry_run":false}`},
		{"free object as a string", `{"instruction":"go","arguments":"{\"a\": [1e400]}"}`,
			`{"instruction":"go","arguments":{"a":[1e400]}}`},
		{"2^53+1 keeps its digits", `{"instruction":"go","offset":9007199254740993}`,
			`{"instruction":"go","offset":9007199254740993}`},
		{"greatest int64", `{"instruction":"go","offset":"9223372036854775807"}`,
			`{"instruction":"go","offset":9223372036854775807}`},
		{"integral spellings", `{"instruction":"go","offset":1.50e1}`, `{"instruction":"go","offset":15}`},
		{"a string that looks like JSON stays a string", `{"instruction":"[1]"}`, `{"instruction":"[1]"}`},
		{"HTML and pairs stay as sent", `{"instruction":"<\u003c\ud83d\ude00"}`, `{"instruction":"<\u003c\ud83d\ude00"}`},
		{"bounds count characters", `{"instruction":"ääääääää"}`, `{"instruction":"ääääääää"}`},
		{"free members are kept", `{"instruction":"go","arguments":{ "x": null, "n": 9007199254740993 }}`,
			`{"instruction":"go","arguments":{"x":null,"n":9007199254740993}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := sample().Normalise(json.RawMessage(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("Normalise(%s)\n got %s, %v\nwant %s", c.in, got, err, c.want)
			}
		})
	}
}

// TestNormaliseRefuses holds what is refused, with which kind and field, and that no refusal
// repeats what the caller sent.
func TestNormaliseRefuses(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for _, c := range []struct {
		name, in, field string
		kind            fault.Kind
	}{
		{"no arguments", ``, "instruction", fault.InvalidInstruction},
		{"null arguments", `null`, "instruction", fault.InvalidInstruction},
		{"null for a required member", `{"instruction":null}`, "instruction", fault.InvalidInstruction},
		{"empty", `{"instruction":""}`, "instruction", fault.InvalidInstruction},
		{"too long", `{"instruction":"MARKER123"}`, "instruction", fault.InvalidInstruction},
		{"wrong type has no kind of its own", `{"instruction":7}`, "instruction", ""},
		{"not an object", `[]`, "", ""},
		{"not JSON", `{"instruction":`, "", ""},
		{"not UTF-8", "{\"instruction\":\"\xff\"}", "", ""},
		{"65 deep", `{"instruction":"a","arguments":` + deep + `}`, "", ""},
		{"unknown member", `{"instruction":"a","bogus":"MARKER"}`, "bogus", ""},
		{"retired member", `{"instruction":"a","resume_session_id":"MARKER"}`, "resume_session_id", ""},
		{"names are case-sensitive", `{"instruction":"a","Tags":[]}`, "Tags", ""},
		{"unreadable unknown name", `{"instruction":"a","MARKER \u0007":1}`, "(unreadable name)", ""},
		{"unknown nested member", `{"instruction":"a","changes":[{"path":"p","x":1}]}`, "changes[0].x", ""},
		{"missing nested member", `{"instruction":"a","changes":[{"path":"p"},{}]}`, "changes[1].path", ""},
		{"deep field", `{"instruction":"a","changes":[{"path":"p","edits":[{"kind":"MARKER","old_text":"x"}]}]}`,
			"changes[0].edits[0].kind", ""},
		{"bytes, not characters", `{"instruction":"a","changes":[{"path":"p","edits":[{"kind":"delete_exact","old_text":"äääääääää"}]}]}`,
			"changes[0].edits[0].old_text", ""},
		{"pattern", `{"instruction":"a","changes":[{"path":"MARKER\u0000"}]}`, "changes[0].path", ""},
		{"given twice", `{"instruction":"a","instruction":"MARKER"}`, "instruction", ""},
		{"given twice inside", `{"instruction":"a","changes":[{"path":"a","path":"b"}]}`, "changes[0].path", ""},
		{"too few items", `{"instruction":"a","changes":[]}`, "changes", ""},
		{"too many items", `{"instruction":"a","tags":["a","b","c"]}`, "tags", ""},
		{"null item", `{"instruction":"a","tags":[null]}`, "tags[0]", ""},
		{"scalar for an array", `{"instruction":"a","tags":"MARKER"}`, "tags", ""},
		{"broken stringified array", `{"instruction":"a","tags":"[MARKER"}`, "tags", ""},
		{"number for a string", `{"instruction":"a","tags":[1]}`, "tags[0]", ""},
		{"0 below the minimum", `{"instruction":"a","timeout_secs":0}`, "timeout_secs", ""},
		{"3601 above the maximum", `{"instruction":"a","timeout_secs":3601}`, "timeout_secs", ""},
		{"fraction", `{"instruction":"a","offset":1.5}`, "offset", ""},
		{"past int64", `{"instruction":"a","offset":9223372036854775808}`, "offset", ""},
		{"huge exponent", `{"instruction":"a","offset":1e999999999}`, "offset", ""},
		{"number as a doubly quoted string", `{"instruction":"a","offset":"\"5\""}`, "offset", ""},
		{"text for a number", `{"instruction":"a","offset":"MARKER"}`, "offset", ""},
		{"text for a boolean", `{"instruction":"a","dry_run":"yes"}`, "dry_run", ""},
		{"number for a boolean", `{"instruction":"a","dry_run":1}`, "dry_run", ""},
		{"array for the free object", `{"instruction":"a","arguments":[]}`, "arguments", ""},
		{"lone surrogate", `{"instruction":"\ud83d"}`, "instruction", ""},
		{"reversed surrogates", `{"instruction":"\ude00\ud83d"}`, "instruction", ""},
		{"surrogate, then text", `{"instruction":"\ud83dA"}`, "instruction", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := sample().Normalise(json.RawMessage(c.in))
			if err == nil {
				t.Fatalf("accepted as %s", got)
			}
			if c.kind == "" {
				c.kind = fault.InvalidArguments
			}
			e := fault.As(err)
			if e.Kind != c.kind || e.Field != c.field || e.Recovery != fault.FixArguments {
				t.Errorf("got %s at %q (%s): %s", e.Kind, e.Field, e.Recovery, e.Message)
			}
			if strings.Contains(e.Message+e.Next+e.Field, "MARKER") {
				t.Errorf("the refusal repeats the value: %q %q", e.Message, e.Next)
			}
		})
	}
}

// TestProse: a text that is only read may hold half of a surrogate pair, which becomes U+FFFD;
// it is bounded like any other.
func TestProse(t *testing.T) {
	s := schema.Object(schema.Req("title", schema.Str("", 1, 5).ForReading()))
	for in, want := range map[string]string{
		`{"title":"\ud83d\ude00"}`:          `{"title":"\ud83d\ude00"}`,
		`{"title":"a\ud83d"}`:               `{"title":"a` + "\ufffd" + `"}`,
		`{"title":"\ude00\ud83dx<"}`:        `{"title":"` + "\ufffd\ufffd" + `x\u003c"}`,
		`{"title":"\ud83d12345"}`:           "",
		`{"title":"\ude00\ude00\ude00abc"}`: "",
	} {
		got, err := s.Normalise(json.RawMessage(in))
		if (err != nil) != (want == "") || err == nil && string(got) != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// TestDepth counts brackets outside of strings.
func TestDepth(t *testing.T) {
	for in, want := range map[string]int{`1`: 0, `"[[["`: 0, `["\"[["]`: 1, `{"a":[{}]}`: 3, `[[],[]]`: 2,
		strings.Repeat("[", 70) + strings.Repeat("]", 70): 70} {
		if got := schema.Depth([]byte(in)); got != want {
			t.Errorf("Depth(%q) = %d, want %d", in, got, want)
		}
	}
}

// FuzzNormalise: no input panics, what comes out is valid, closed, and its own normal form.
func FuzzNormalise(f *testing.F) {
	for _, s := range []string{`{"instruction":"go","tags":"[\"a\"]","offset":"1.0"}`, `"{\"instruction\":\"a\"}"`,
		`{"instruction":"\ud83d\ude00","changes":[{"path":"a","edits":[{"kind":"replace_exact","old_text":"x"}]}]}`,
		`{"instruction":"a","arguments":{"a":[[[]]]}}`, `{"instruction":"a","offset":-0}`, `{"a":1,"a":2}`, `[`} {
		f.Add([]byte(s))
	}
	s := sample()
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := s.Normalise(in)
		if err != nil {
			e := fault.As(err)
			if e.Kind != fault.InvalidArguments && e.Kind != fault.InvalidInstruction || len(e.Field) > 140 {
				t.Fatalf("%v at %q", err, e.Field)
			}
			return
		}
		var out map[string]json.RawMessage
		if err := json.Unmarshal(got, &out); err != nil {
			t.Fatalf("not an object: %s", got)
		}
		for name, v := range out {
			if _, ok := s.Prop(name); !ok || string(v) == "null" {
				t.Fatalf("member %q = %s", name, v)
			}
		}
		again, err := s.Normalise(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("not its own normal form: %s → %s, %v", got, again, err)
		}
	})
}

// A text of ours that comes back otherwise has an error kind of its own and says how; a missing
// one is an argument error like any other.
//
// Covers: MSG-13, MSG-31
func TestOpaqueTextsAreRefusedAsSuch(t *testing.T) {
	s := schema.Object(schema.Req("fence", schema.Str("", 1, 6).Match(`^a[0-9]{5}$`).Opaque(fault.InvalidFence)))
	for in, want := range map[string]fault.Error{
		`{"fence":""}`:         {Kind: fault.InvalidFence, Reason: "malformed"},
		`{"fence":"b12345"}`:   {Kind: fault.InvalidFence, Reason: "malformed"},
		`{"fence":"a1234\n"}`:  {Kind: fault.InvalidFence, Reason: "malformed"},
		`{"fence":"a12345\n"}`: {Kind: fault.InvalidFence, Reason: "oversized"},
		`{"fence":7}`:          {Kind: fault.InvalidArguments},
		`{"fence":null}`:       {Kind: fault.InvalidArguments},
		`{}`:                   {Kind: fault.InvalidArguments},
	} {
		_, err := s.Normalise(json.RawMessage(in))
		if f := fault.As(err); f == nil || f.Kind != want.Kind || f.Reason != want.Reason || f.Field != "fence" {
			t.Errorf("%s: %+v", in, f)
		}
	}
}
