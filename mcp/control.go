package mcp

import (
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/internal/fault"
)

// Slots of an answer's control.
const (
	slotBefore  = "before"
	slotAfter   = "after_success"
	slotReply   = "reply"
	slotResolve = "resolve"
)

// control is a kind of mutation that may travel with another call, and the tool that it stands
// for: the same arguments, the same checks (CTL-03, CTL-04).
type control struct {
	slot, kind string
	tool       string   // empty: there is no such plane yet
	keep       []string // members of the tool's output that the answer shows
	at         string   // where it stands in the request
}

// controls are the kinds of both phases, a closed set.
var controls = []control{
	{slot: slotBefore, kind: "session_context_update", tool: "update_session_context", keep: []string{"session_id", "changed"}},
	{slot: slotBefore, kind: "goal_progress"},
	{slot: slotBefore, kind: "wake_consume"},
	{slot: slotBefore, kind: "attempt_heartbeat"},
	{slot: slotAfter, kind: "session_close", tool: "close_session", keep: []string{"session_id", "lifecycle", "already_closed"}},
	{slot: slotAfter, kind: "todo_completion", tool: "complete_session_message", keep: []string{"answer_message_id", "completion_id", "replayed"}},
	{slot: slotAfter, kind: "goal_completion"},
}

// The two that have members of their own.
var (
	replyControl   = control{slot: slotReply, tool: "post_session_message", keep: []string{"message_id", "replayed"}, at: envelopeName + ".reply"}
	resolveControl = control{slot: slotResolve, tool: "resolve_session_message", keep: []string{"changed"}, at: envelopeName + ".resolve"}
)

// mutation is the call that a control stands for. Its arguments are refused here like those of
// the tool itself; a kind without a tool is left to the kernel, which says so.
func (s *Server) mutation(k control, payload any) (call.Mutation, error) {
	m := call.Mutation{Slot: k.slot, Kind: k.kind, At: k.at, Keep: k.keep}
	tool, ok := find(s.cfg.Tools, k.tool)
	if !ok {
		return m, nil
	}
	raw, err := compact(payload)
	if err != nil {
		return m, fault.Wrap(err, fault.InvalidArguments, "the arguments could not be read").WithField(k.at)
	}
	args, err := tool.Input.Normalise(json.RawMessage(raw))
	if err != nil {
		return m, under(k.at, err)
	}
	m.Spec, m.Args = tool.Spec, args
	return m, nil
}
