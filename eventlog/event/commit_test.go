package event

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// general encodes through encoding/json alone.
func general(t testing.TB, c Commit) []byte {
	t.Helper()
	s := storedCommit{V: c.Format, ID: c.ID, Agg: c.Aggregate.String(), Ver: c.Version, Prev: c.Prev,
		At: FormatTime(c.At), Actor: c.Actor, Inv: c.Invocation, Server: c.Server, Events: []storedEvent{}}
	for _, e := range c.Events {
		name, _ := NameOf(e)
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		s.Events = append(s.Events, storedEvent{name, data})
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var texts = rapid.OneOf(
	rapid.StringMatching(`[a-z_]{0,12}`),
	rapid.String(),
	rapid.SampledFrom([]string{"", "a\"b\\c", "<a>&", "\u2028\u202e\u009b", "é😀", "line\nline\t", "\x00\x1f\x7f", "\\ufffd"}),
)

// random fills a value of a stored type.
func random(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			random(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			random(t, v.Field(i))
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 5).Draw(t, "items")
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			random(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(texts.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Uint64:
		v.SetUint(rapid.OneOf(rapid.Uint64(), rapid.Just[uint64](math.MaxUint64)).Draw(t, "uint"))
	default:
		v.SetInt(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, math.MinInt64, math.MaxInt64})).Draw(t, "int"))
	}
}

func randomCommit(t *rapid.T) Commit {
	c := Commit{Format: Format, ID: CommandID(texts.Draw(t, "id")), Version: rapid.Uint64().Draw(t, "version"),
		Aggregate: Aggregate{Domain: "session", ID: rapid.StringMatching(`[A-Za-z0-9_-]{1,40}`).Draw(t, "aggregate")},
		Prev:      texts.Draw(t, "prev"), Invocation: InvocationID(texts.Draw(t, "inv")), Server: InstanceID(texts.Draw(t, "server")),
		At:     time.UnixMilli(rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "at")).UTC(),
		Events: []Event{}}
	random(t, reflect.ValueOf(&c.Actor).Elem())
	for range rapid.IntRange(0, 4).Draw(t, "events") {
		v, _ := New(rapid.SampledFrom(Names()).Draw(t, "name"))
		random(t, reflect.ValueOf(v).Elem())
		c.Events = append(c.Events, reflect.ValueOf(v).Elem().Interface().(Event))
	}
	return c
}

// What is written is what encoding/json would write, and both ways of reading give back
// the commit that was written.
func TestCommitCodec(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := randomCommit(rt)
		body, err := c.Encode()
		if err != nil {
			rt.Fatal(err)
		}
		if want := general(t, c); !bytes.Equal(body, want) {
			rt.Fatalf("wrote\n%s\nencoding/json writes\n%s", body, want)
		}
		slow, err := decodeAny(body)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(c, slow); d != "" {
			rt.Fatal(d)
		}
		fast, ok := readCommit(body)
		if !ok {
			rt.Fatalf("a body of our own was not read the fast way:\n%s", body)
		}
		if d := cmp.Diff(slow, fast); d != "" {
			rt.Fatal(d)
		}
	})
}

// Invalid UTF-8 is replaced when it is written, so that the stored body is JSON.
func TestCommitReplacesInvalidUTF8(t *testing.T) {
	c := Commit{Format: Format, Aggregate: LogAggregate(), Version: 1, Events: []Event{LogCreated{Epoch: "a\xffb"}}}
	body, err := c.Encode()
	if err != nil || !bytes.Contains(body, []byte(`a\ufffdb`)) {
		t.Fatalf("%s, %v", body, err)
	}
	if back, err := Decode(body); err != nil || back.Events[0] != (LogCreated{Epoch: "a\ufffdb"}) {
		t.Fatalf("%+v, %v", back, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := Commit{Format: Format, Aggregate: LogAggregate(), Version: 1, At: time.UnixMilli(0), Events: []Event{LogCreated{Epoch: "e"}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"another format":     {`"v":1`, `"v":2`},
		"an unknown event":   {`log.created`, `log.renamed`},
		"no aggregate":       {`log/main`, `logmain`},
		"a wildcard":         {`log/main`, `log/*`},
		"a time with a zone": {`.000Z`, `+01:00`},
		"a day that is none": {`-01-01T`, `-02-30T`},
		"hour 24":            {`T00:`, `T24:`},
		"a wrong type":       {`"epoch":"e"`, `"epoch":5`},
		"a negative version": {`"ver":1`, `"ver":-1`},
		"a cut body":         {`]}`, ``},
	} {
		body := strings.Replace(string(good), change[0], change[1], 1)
		if body == string(good) {
			t.Fatalf("%s: nothing changed in %s", name, good)
		}
		if c, err := Decode([]byte(body)); err == nil {
			t.Errorf("%s was read: %+v", name, c)
		}
	}
}

// Whatever the bytes: no panic, the fast way never reads what the general way reads
// otherwise, and what is read can be written and read again.
func FuzzDecode(f *testing.F) {
	for _, name := range Names() {
		v, _ := New(name)
		fill(reflect.ValueOf(v).Elem(), "")
		c := Commit{Format: Format, ID: NewCommandID(), Aggregate: LogAggregate(), Version: 1, At: time.UnixMilli(1),
			Invocation: "i", Events: []Event{reflect.ValueOf(v).Elem().Interface().(Event)}}
		body, err := c.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"v":1,"events":[{"type":"log.created","data":{}}]}`))
	f.Add([]byte(`{"v":1,"id":"","agg":"a/b","ver":01,"prev":"","at":"2006-01-02T15:04:05.000Z","actor":{},"server":"","events":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		fast, ok := readCommit(body)
		slow, err := decodeAny(body)
		if ok && err != nil {
			t.Fatalf("read the fast way only: %v", err)
		}
		if err != nil {
			return
		}
		if ok {
			if d := cmp.Diff(slow, fast); d != "" {
				t.Fatal(d)
			}
		}
		again, err := slow.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slow, back); d != "" {
			t.Fatal(d)
		}
	})
}

func benchCommit() Commit {
	v, _ := New("session.tool_call_finished")
	fill(reflect.ValueOf(v).Elem(), "")
	s, _ := New("session.tool_call_started")
	fill(reflect.ValueOf(s).Elem(), "")
	return Commit{Format: Format, ID: NewCommandID(), Aggregate: SessionAggregate(NewSessionID()), Version: 7, Prev: Hash(nil),
		At: time.UnixMilli(1), Server: NewInstanceID(), Invocation: NewInvocationID(),
		Events: []Event{reflect.ValueOf(s).Elem().Interface().(Event), reflect.ValueOf(v).Elem().Interface().(Event)}}
}

func BenchmarkEncode(b *testing.B) {
	c := benchCommit()
	for b.Loop() {
		_, _ = c.Encode()
	}
}

func BenchmarkDecode(b *testing.B) {
	body, _ := benchCommit().Encode()
	b.SetBytes(int64(len(body)))
	b.Run("canonical", func(b *testing.B) {
		for b.Loop() {
			_, _ = Decode(body)
		}
	})
	b.Run("general", func(b *testing.B) {
		for b.Loop() {
			_, _ = decodeAny(body)
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			_ = Hash(body)
		}
	})
}
