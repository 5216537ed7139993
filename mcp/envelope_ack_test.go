package mcp

import (
	"slices"
	"testing"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
)

// A list of ids is read as far as its bound, and what is behind that is as if it were not there,
// in both eras.
//
// Covers: ACK-01, ACK-11, ACK-24
func TestAnAckListIsReadAsFarAsItsBound(t *testing.T) {
	if call.MaxAcks != 32 {
		t.Fatalf("%d ids", call.MaxAcks)
	}
	r := catalogueRig(t)
	for _, version := range versions {
		c := r.connect(version)
		w := started(t, c)
		m := posted(t, c, w, "note", "x")
		shown := func(before int) int {
			ids := []string{}
			for range before {
				ids = append(ids, string(event.NewMessageID()))
			}
			args := object{legacyRecord: w, legacyAck: append(ids, m)}
			if version == Modern {
				args = object{envelopeName: object{"record": w, "ack": append(ids, m)}}
			}
			return attends(t, callTool(t, c, "list_projects", args))
		}
		if got := []int{shown(0), shown(call.MaxAcks - 1), shown(call.MaxAcks), shown(1000)}; !slices.Equal(got, []int{0, 0, 1, 1}) {
			t.Errorf("%s: %v bodies", version, got)
		}
	}
}

// attends counts the bodies that an answer shows; the call works in any case.
func attends(t *testing.T, res client.Result) int {
	t.Helper()
	var out struct {
		Attention struct {
			Messages []struct{} `json:"messages"`
			Ref      string     `json:"ack_ref"`
		} `json:"session_attention"`
	}
	if err := res.Decode(&out); err != nil || res.IsError || out.Attention.Ref == "" {
		t.Fatalf("%s %v", res.Text, err)
	}
	return len(out.Attention.Messages)
}
