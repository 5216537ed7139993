package session

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// logged is a history as the log gives it back.
func logged(t testing.TB, commits []Stored) []Stored {
	t.Helper()
	out := make([]Stored, len(commits))
	for i, s := range commits {
		body, err := s.Commit.Encode()
		if err != nil {
			t.Fatal(err)
		}
		c, err := event.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = Stored{s.Seq, s.Hash, c}
	}
	return out
}

// An empty map or list and none are the same to every reader.
var empty = cmpopts.EquateEmpty()

// What is written of a View is read back equal, in one piece and in rows, and goes on alike.
//
// Covers: SES-27
func TestCodecGivesBackEveryView(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		commits := logged(t, drawHistory(rt, 30).commits)
		cut := rapid.IntRange(0, len(commits)).Draw(rt, "cut")
		v := fold(View{}, commits[:cut])
		body := EncodeView(v)
		got, err := DecodeView(body)
		if err != nil {
			rt.Fatalf("%v\n%s", err, body)
		}
		if diff := cmp.Diff(stateOf(v), stateOf(got), empty); diff != "" {
			rt.Fatal(diff)
		}
		if again := EncodeView(got); !bytes.Equal(body, again) {
			rt.Fatalf("written again it differs:\n%s\n%s", body, again)
		}
		whole := stateOf(fold(View{}, commits))
		for range 2 { // two branches of one restored View
			if diff := cmp.Diff(whole, stateOf(fold(got, commits[cut:])), empty); diff != "" {
				rt.Fatal(diff)
			}
		}
		rows(rt, v)
	})
}

func rows(t *rapid.T, v View) {
	row, err := DecodeCore(AppendCore(nil, v))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v.Core, row.Core, empty); diff != "" || row.Seq != v.Seq || row.Hash != v.Hash {
		t.Fatal(diff, row.Seq, row.Hash)
	}
	if row.Board.Revision != v.Board.Revision || row.Board.Low != v.Board.Low || row.Board.unread != v.Board.Len() {
		t.Fatalf("board %+v of %+v", row.Board, v.Board)
	}
	for _, m := range v.Board.Messages() {
		got, err := decodeMessage(string(appendMessage(nil, m)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, empty); diff != "" {
			t.Fatal(diff)
		}
	}
	for _, it := range v.Tail.Items() {
		got, err := DecodeItem(AppendItem(nil, it))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain(it), plain(got), empty); diff != "" {
			t.Fatal(diff)
		}
	}
}

// Covers: RES-05, RES-07, RES-14
func TestCodecRefuses(t *testing.T) {
	h := began("bytes")
	h.edit("a.go")
	v := fold(View{}, logged(t, h.commits))
	body := AppendCore(nil, v)
	for name, bad := range map[string][]byte{
		"unknown member": bytes.Replace(body, []byte(`"mode":`), []byte(`"context_revision":1,"mode":`), 1),
		"mode":           bytes.Replace(body, []byte(`"mode":"normal"`), []byte(`"mode":"inspect"`), 1),
		"lifecycle":      bytes.Replace(body, []byte(`"lifecycle":"active"`), []byte(`"lifecycle":"archived"`), 1),
		"trailing":       append(bytes.Clone(body), ' '),
		"empty":          {},
	} {
		if bytes.Equal(bad, body) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := DecodeCore(bad); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	items := v.Tail.Items()
	if _, err := NewTail([]Item{items[0], items[2]}, 3); err == nil {
		t.Error("a gap was read")
	}
	if tail, err := NewTail(items[1:], 0); err != nil || tail.Observed != v.Tail.Observed || !tail.Evicted() {
		t.Errorf("observed %d, %v", tail.Observed, err)
	}
	other := EncodeView(v)
	if _, err := DecodeView(bytes.Replace(other, []byte(`{"v":2,`), []byte(`{"v":3,`), 1)); err == nil {
		t.Error("another form was read")
	}
}

// Every prefix and every flipped byte of a core is an error or another core, never a panic.
func FuzzDecodeView(f *testing.F) {
	h := began("fuzz")
	h.edit("a.go")
	h.job(1, testServer)
	f.Add(EncodeView(h.view()))
	ask := post(2, event.MessageQuestion)
	ask.RequiresAck, ask.ReplyTo, ask.Tags, ask.Key, ask.Payload = true, messageNo(1), []string{"tag"}, "key", "payload"
	h.commit(post(1, event.MessageTodo), ask, completion(1, 3, "k"), event.MessagesAcknowledged{Messages: []event.MessageID{ask.Message}})
	f.Add(EncodeView(h.view()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := DecodeView(b); err == nil {
			if again, err := DecodeView(EncodeView(v)); err != nil || !cmp.Equal(stateOf(v), stateOf(again), empty) {
				t.Fatalf("not stable: %v", err)
			}
		}
	})
}

func BenchmarkDecodeItem(b *testing.B) {
	h := began("x")
	h.edit("a.go", "dir/other.go")
	items := h.view().Tail.Items()
	body := AppendItem(nil, items[len(items)-1])
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := DecodeItem(body); err != nil {
			b.Fatal(err)
		}
	}
}
