package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/internal/token"
	"webcodex/mcp/schema"
)

// envelopeName is the member beside a tool's own arguments that the modern era takes.
const (
	envelopeName   = "_wc"
	envelopeRecord = envelopeName + ".record"
)

// Members of the legacy eras in its place, accepted and in no list (REC-01, ACK-24).
const (
	legacyRecord = "recording_session_id"
	legacyAck    = "ack_session_message_ids"
)

// around is what came beside a tool's arguments.
type around struct {
	Record  string     `json:"record"`
	Reply   *replyIn   `json:"reply"`
	Resolve *resolveIn `json:"resolve"`
	Context []string   `json:"context"`
	Control *controlIn `json:"control"`
	ack     []string   // read leniently: it is never at fault (ACK-11)
	ackRef  string     // likewise
	field   string     // what the record is called
}

type replyIn struct {
	ReplyTo string `json:"reply_to"`
	Message string `json:"message"`
}

type resolveIn struct {
	MessageID  string  `json:"message_id"`
	Resolution *string `json:"resolution,omitempty"`
}

type controlIn struct {
	Before map[string]json.RawMessage `json:"before"`
	After  map[string]json.RawMessage `json:"after_success"`
}

// envelopeSchema is the envelope as it is checked, with every kind of control, or as tools/list
// shows it: with those that this server has. It is in every tool of the list, so it says nothing
// that the names do not; read_tool_manifest explains it (ruling 4).
func envelopeSchema(shown bool) *schema.Schema {
	terse := func(props ...schema.Prop) *schema.Schema {
		s := schema.Object(props...)
		s.Terse = true
		return s
	}
	phase := func(slot string) *schema.Schema {
		s := terse()
		for _, k := range controls {
			if k.slot == slot && (k.tool != "" || !shown) {
				s.Props = append(s.Props, schema.Opt(k.kind, &schema.Schema{Type: "object", Free: true}))
			}
		}
		return s
	}
	// The texts and ids of a reply and a resolve are checked by the tools that these stand for.
	text := func() *schema.Schema { return schema.Str("", 0, 0).ForReading() }
	least := 1
	if shown {
		least = 0
	}
	return schema.Object(
		schema.Opt("record", schema.Str("", least, maxSelector)),
		// These two are taken off before the check: whatever is wrong with them is nobody's fault (ACK-11).
		schema.Opt("ack", schema.List("", schema.Str("", 0, 0), 0, call.MaxAcks)),
		schema.Opt("ack_ref", schema.Str("", 0, token.MaxBytes)),
		schema.Opt("reply", terse(schema.Req("reply_to", text()), schema.Req("message", text()))),
		schema.Opt("resolve", terse(schema.Req("message_id", text()), schema.Opt("resolution", text()))),
		schema.Opt("context", schema.List("", schema.Str("", 0, call.MaxMaterialChars), 0, call.MaxMaterials)),
		schema.Opt("control", terse(schema.Opt(slotBefore, phase(slotBefore)), schema.Opt(slotAfter, phase(slotAfter)))))
}

// envelopeCheck is what a sent envelope is held against, under its own name, so that a refusal
// speaks of its members as the caller wrote them.
var envelopeCheck = schema.Object(schema.Opt(envelopeName, envelopeSchema(false)))

// enveloped is a tool's input as the modern era's tools/list shows it.
func enveloped(in *schema.Schema, env *schema.Schema) *schema.Schema {
	out := *in
	out.Props = append(append([]schema.Prop{}, in.Props...), schema.Opt(envelopeName, env))
	return &out
}

// outer takes off the arguments what is not the tool's: the envelope in the modern era, its
// unlisted stand-ins in the others. Each form is unknown to the other's tools, and refused as
// such (REC-01, REC-13).
func (s *Server) outer(modern bool, args json.RawMessage) (json.RawMessage, around, error) {
	if !modern {
		return outerLegacy(args)
	}
	rest, raw := schema.Take(args, envelopeName)
	a := around{field: envelopeRecord}
	if raw == nil || string(raw) == "null" {
		return rest, a, nil
	}
	if a.ack, a.ackRef, raw = acks(raw); raw == nil {
		return nil, around{}, fault.New(fault.InvalidArguments, "%s must be an object", envelopeName).WithField(envelopeName)
	}
	raw, err := envelopeCheck.Normalise(slices.Concat([]byte(`{"`+envelopeName+`":`), raw, []byte("}")))
	if err != nil {
		return nil, around{}, err
	}
	if err := json.Unmarshal(raw, &struct {
		Envelope *around `json:"_wc"`
	}{&a}); err != nil {
		return nil, around{}, fault.Wrap(err, fault.InvalidArguments, "the envelope could not be read").WithField(envelopeName)
	}
	rest, err = a.sameRecord(rest)
	return rest, a, err
}

// sameRecord takes the legacy name of the record off arguments that an envelope names it beside:
// once where both say the same, and no call where they differ (REC-16). Alone it is unknown here.
func (a around) sameRecord(args json.RawMessage) (json.RawMessage, error) {
	if a.Record == "" {
		return args, nil
	}
	rest, raw := schema.Take(args, legacyRecord)
	var also *string
	if err := json.Unmarshal(raw, &also); raw != nil && (err != nil || also != nil && *also != a.Record) {
		return nil, fault.New(fault.InvalidArguments, "%s and %s do not say the same of where to record this call: send %[1]s alone",
			envelopeRecord, legacyRecord).WithField(envelopeRecord)
	}
	return rest, nil
}

func outerLegacy(args json.RawMessage) (json.RawMessage, around, error) {
	a := around{field: legacyRecord}
	rest, record := schema.Take(args, legacyRecord)
	if record != nil && string(record) != "null" {
		if err := json.Unmarshal(record, &a.Record); err != nil || a.Record == "" || len(a.Record) > maxSelector {
			return nil, around{}, fault.New(fault.InvalidArguments, "name the Session to record this call in by its id").WithField(legacyRecord)
		}
	}
	rest, ack := schema.Take(rest, legacyAck)
	a.ack = lenient[[]string](ack)
	return rest, a, nil
}

// acks takes the evidence of what was seen off the envelope. Whatever is wrong with it, it is
// no evidence, and nothing else. No rest: the envelope is no object.
func acks(raw json.RawMessage) (ids []string, ref string, rest json.RawMessage) {
	var whole map[string]json.RawMessage
	if whole = lenient[map[string]json.RawMessage](raw); whole == nil {
		return nil, "", nil
	}
	rest, ack := schema.Take(raw, "ack")
	rest, held := schema.Take(rest, "ack_ref")
	return lenient[[]string](ack), lenient[string](held), rest
}

func lenient[T any](raw json.RawMessage) (v T) {
	if len(raw) == 0 {
		return v
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			_ = json.Unmarshal([]byte(text), &v) // a stringified array
		}
	}
	return v
}

// envelope is what the kernel gets: the mutations as calls of the tools that they stand for.
// args are the main tool's, in their normal form.
func (s *Server) envelope(a around, args json.RawMessage) (call.Envelope, error) {
	env := call.Envelope{Record: a.Record, Field: a.field, AckRef: a.ackRef, Context: a.Context}
	for _, id := range a.ack[:min(len(a.ack), call.MaxAcks)] {
		env.Ack = append(env.Ack, event.MessageID(id))
	}
	target, err := boardOf(a, args)
	if err != nil {
		return call.Envelope{}, err
	}
	if a.Control != nil {
		if env.Before, err = s.phase(slotBefore, a.Control.Before); err != nil {
			return call.Envelope{}, err
		}
		if env.After, err = s.phase(slotAfter, a.Control.After); err != nil {
			return call.Envelope{}, err
		}
	}
	if a.Resolve != nil {
		m, err := s.mutation(resolveControl, map[string]any{"session_id": target, "message_id": a.Resolve.MessageID, "resolution": a.Resolve.Resolution})
		if err != nil {
			return call.Envelope{}, err
		}
		env.Before = append(env.Before, m)
	}
	if a.Reply != nil {
		// The same words to the same message are the same reply, however often they are sent
		// (CTL-10). They are taken as they are stored: no hash of a secret lies in the log.
		key := token.Digest("webcodex.envelope-reply.v1", a.Reply.ReplyTo, redact.Text(a.Reply.Message, board.MaxText))
		m, err := s.mutation(replyControl, map[string]any{"session_id": target, "kind": string(event.MessageAnswer),
			"reply_to": a.Reply.ReplyTo, "message": a.Reply.Message, "delivery_key": key})
		if err != nil {
			return call.Envelope{}, err
		}
		env.Before = append(env.Before, m)
	}
	return env, nil
}

// boardOf names the Session whose board a reply or a resolve is about: that of the explicit
// recorder, whose attention it answers, or the Session that the call itself names.
func boardOf(a around, args json.RawMessage) (string, error) {
	if a.Reply == nil && a.Resolve == nil || a.Record != "" {
		return a.Record, nil
	}
	var named struct {
		SessionID string `json:"session_id"`
	}
	_ = json.Unmarshal(args, &named)
	if named.SessionID == "" {
		return "", fault.New(fault.InvalidArguments, "a reply or a resolve needs the Session whose board is meant").
			WithField(envelopeRecord).WithNext("name it as _wc.record, or call the tool with its session_id")
	}
	return named.SessionID, nil
}

// under says that a refusal is about a member of the named one.
func under(name string, err error) error {
	f := *fault.As(err)
	if f.Field == "" {
		f.Field = name
	} else {
		f.Field = name + "." + f.Field
	}
	return &f
}

// phase makes the one mutation of a phase (CTL-02).
func (s *Server) phase(slot string, given map[string]json.RawMessage) ([]call.Mutation, error) {
	at := envelopeName + ".control." + slot
	if len(given) > 1 {
		return nil, fault.New(fault.InvalidArguments, "one call takes one mutation in a phase, not %s", strconv.Itoa(len(given))).WithField(at).
			WithNext("make the others by calls of their own")
	}
	for _, k := range controls {
		payload, ok := given[k.kind]
		if !ok || k.slot != slot {
			continue
		}
		k.at = at + "." + k.kind
		m, err := s.mutation(k, payload)
		return []call.Mutation{m}, err
	}
	return nil, nil
}

// envelopedInputs are the input schemas of the tools as the modern era lists them.
func envelopedInputs(tools []Tool) (map[string]json.RawMessage, error) {
	env, out := envelopeSchema(true), map[string]json.RawMessage{}
	for _, t := range tools {
		in, err := json.Marshal(enveloped(t.Input, env))
		if err != nil {
			return nil, fmt.Errorf("mcp: describe %s: %w", t.Spec.Name, err)
		}
		out[t.Spec.Name] = in
	}
	return out, nil
}

// listTools shows the envelope in every tool of the catalogue to the modern era, and to no
// other (REC-04, REC-13).
func (s *Server) listTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*sdk.ListToolsResult)
		if err != nil || !ok || !exchangeOf(ctx).modern {
			return res, err
		}
		shown := *list
		shown.Tools = make([]*sdk.Tool, len(list.Tools))
		for i, t := range list.Tools {
			shown.Tools[i] = t
			if in, ours := s.inputs[t.Name]; ours {
				with := *t // the SDK's own is shared by every era
				with.InputSchema = in
				shown.Tools[i] = &with
			}
		}
		return &shown, nil
	}
}

// profileHeader is how a host tells its guidance profile, request by request.
const profileHeader = "X-WebCodex-MCP-Profile"

// hostProfile is the host's policy for this request: its header, else the deployment's choice
// (PRO-03).
func (s *Server) hostProfile(c *sdk.CallToolRequest) string {
	if c.Extra != nil && c.Extra.Header != nil {
		if p := c.Extra.Header.Get(profileHeader); p != "" {
			return cut(p, maxSelector)
		}
	}
	return s.cfg.Profile
}
