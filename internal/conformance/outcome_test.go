package conformance_test

import (
	"encoding/json"
	"reflect"
	"strings"
)

// outcome is how a call came back.
type outcome struct {
	kind   string // of the refusal; empty: it succeeded
	output json.RawMessage
}

// call makes a call and waits for its outcome. What the answer says is kept of it goes into the
// ledger, and nothing is kept that was not asked for.
func (h *host) call(tool string, a args, b beside) outcome {
	h.t.Helper()
	l := h.answer(tool, h.send(tool, a, b))
	if l.Error != "" {
		h.t.Fatalf("%s: %s: %s", h.name, tool, l.Error)
	}
	o := h.outcome(tool, l)
	var note struct {
		Event string `json:"session_event_id"`
	}
	o.into(h, &note)
	session, role := b.record, "recorder"
	if named, _ := a["session_id"].(string); session == "" && ofProject[tool] {
		session, role = named, "business"
	}
	switch {
	case (note.Event != "") != (session != ""):
		h.t.Errorf("%s: %s is kept as %q, want it in %q", h.name, tool, note.Event, session)
	case session != "":
		status := "succeeded"
		if o.kind != "" {
			status = "failed"
		}
		h.kept[session] = append(h.kept[session], kept{note.Event, role, tool, status})
		h.made[session] = append(h.made[session], tool)
	}
	return o
}

// ofProject are the tools of these stories whose calls the Session they name keeps.
var ofProject = map[string]bool{"read_files": true, "edit_project_files": true, "go_test": true}

// outcome reads a result, whose halves must tell the same.
func (h *host) outcome(tool string, l line) outcome {
	h.t.Helper()
	var r struct {
		Content    []struct{ Type, Text string } `json:"content"`
		Structured json.RawMessage               `json:"structuredContent"`
		IsError    bool                          `json:"isError"`
	}
	var s struct {
		Success bool            `json:"success"`
		Output  json.RawMessage `json:"output"`
	}
	if json.Unmarshal(l.Result, &r) != nil || json.Unmarshal(r.Structured, &s) != nil || len(r.Content) == 0 || s.Success == r.IsError {
		h.t.Fatalf("%s: %s answers %s", h.name, tool, l.Result)
	}
	o := outcome{output: s.Output}
	if r.IsError {
		var f struct {
			Kind string `json:"error_kind"`
		}
		if o.into(h, &f); f.Kind == "" || !strings.HasPrefix(r.Content[0].Text, "error_kind: "+f.Kind+"\n") {
			h.t.Fatalf("%s: %s is refused by %s", h.name, tool, l.Result)
		}
		o.kind = f.Kind
		return o
	}
	var text, structured any
	if json.Unmarshal([]byte(r.Content[0].Text), &text) != nil || json.Unmarshal(r.Structured, &structured) != nil || !reflect.DeepEqual(text, structured) {
		h.t.Errorf("%s: the halves of %s differ: %s", h.name, tool, l.Result)
	}
	return o
}

func (o outcome) into(h *host, v any) {
	h.t.Helper()
	if err := json.Unmarshal(o.output, v); err != nil {
		h.t.Fatalf("%s: %v: %s", h.name, err, o.output)
	}
}

// must is a call that succeeds.
func (h *host) must(tool string, a args, b beside, v any) {
	h.t.Helper()
	o := h.call(tool, a, b)
	if o.kind != "" {
		h.t.Fatalf("%s: %s: %s", h.name, tool, o.output)
	}
	o.into(h, v)
}

// refused is a call that is refused in this way, and changed nothing.
func (h *host) refused(kind, tool string, a args, b beside, v any) {
	h.t.Helper()
	o := h.call(tool, a, b)
	var f struct {
		Changed *bool `json:"state_changed"`
	}
	if o.into(h, &f); o.kind != kind || f.Changed == nil || *f.Changed {
		h.t.Fatalf("%s: %s answers %s, want %s", h.name, tool, o.output, kind)
	}
	o.into(h, v)
}

// kept is a call as a Session keeps it, by the event that its answer named.
type kept struct{ event, role, tool, status string }

// ledger is what each Session should have kept, in order.
type ledger map[string][]kept

// sessionTail is what read_session_summary shows of a Session.
type sessionTail struct {
	EventsTotal    int `json:"events_total"`
	EventsReturned int `json:"events_returned"`
	Events         []struct {
		ID          string `json:"event_id"`
		Kind        string
		Role        string
		Tool        string `json:"tool_name"`
		Status      string
		Recovered   bool
		Changed     []string `json:"changed_paths"`
		Instruction struct{ Text, Continuation string }
	}
}

// holds checks that a Session has kept exactly what its callers were told: each call once, whole,
// in order; and one instruction, with which it began.
func (l ledger) holds(h *host, id, instruction string) {
	h.t.Helper()
	var tail sessionTail
	h.must("read_session_summary", args{"session_id": id, "limit": 200}, beside{}, &tail)
	var ends []kept
	starts := 0
	for _, e := range tail.Events {
		switch e.Kind {
		case "tool_call_started":
			starts++
		case "tool_call_finished":
			if e.Recovered {
				h.t.Errorf("%s of %s was left open", e.Tool, id)
			}
			ends = append(ends, kept{e.ID, e.Role, e.Tool, e.Status})
		case "task_instruction":
			if e.Instruction.Text != instruction || e.Instruction.Continuation != "created" {
				h.t.Errorf("%s has the instruction %+v", id, e.Instruction)
			}
		default:
			h.t.Errorf("%s has an event of kind %s", id, e.Kind)
		}
	}
	if !reflect.DeepEqual(ends, l[id]) {
		h.t.Errorf("%s has kept\n%v\nwant\n%v", id, ends, l[id])
	}
	if starts != len(ends) || tail.EventsReturned != tail.EventsTotal || tail.EventsTotal != 2*len(ends)+1 {
		h.t.Errorf("%s: %d starts, %d ends, %d of %d events", id, starts, len(ends), tail.EventsReturned, tail.EventsTotal)
	}
}
