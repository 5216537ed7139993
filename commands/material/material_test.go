package material_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/material"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

type obj = map[string]any

const rules = "RULES of the project"

// env is a server whose answers carry materials, with an AGENTS.md of the rules.
func env(t *testing.T, o material.Options) *calltest.Env {
	t.Helper()
	e := calltest.New(t, nil)
	e.Ambient = []call.Ambient{material.New(o)}
	e.Reopen()
	instruct(e, wire.InstructionSource{Path: "AGENTS.md", Status: wire.SourceLoaded, SHA256: strings.Repeat("1", 64), Bytes: 20, Text: rules})
	return e
}

// instruct makes the Runner see the files; their text only where it is asked for it.
func instruct(e *calltest.Env, files ...wire.InstructionSource) {
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		var in wire.ObserveWorkspaceIn
		if err := json.Unmarshal(body, &in); err != nil || op != wire.OpObserveWorkspace {
			return nil, fault.New(fault.Unavailable, "not scripted: %s", op)
		}
		out := wire.ObserveWorkspaceOut{Status: "clean", Conflicts: []string{}}
		if in.Instructions {
			out.Instructions = &wire.InstructionSources{}
			for _, f := range files {
				if !in.Text {
					f.Text = ""
				}
				out.Instructions.Sources = append(out.Instructions.Sources, f)
			}
		}
		return out, nil
	}
}

type entry struct {
	Key, Status string
	Reason      string          `json:"reason_code"`
	Content     json.RawMessage `json:"content"`
}

var ran int

var reads = &call.Spec{Name: "some_tool", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject,
	Run: func(context.Context, *call.Call) (call.Result, error) {
		ran++
		return call.Result{Output: obj{"main": true}}, nil
	}}

var statusTool = &call.Spec{Name: "get_runtime_status", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime,
	Run: func(context.Context, *call.Call) (call.Result, error) {
		return call.Result{Output: obj{"main": true}}, nil
	}}

// ask makes a call with the keys and gives the materials of its answer, by key.
func ask(e *calltest.Env, p call.Principal, spec *call.Spec, args any, keys ...string) (map[string]entry, call.Response) {
	e.T.Helper()
	resp, err := e.CallWith(context.Background(), p, spec, args, call.Envelope{Context: keys})
	if err != nil || !resp.Success {
		e.T.Fatalf("%v %s", err, resp.Output)
	}
	return materials(e, resp), resp
}

func materials(e *calltest.Env, resp call.Response) map[string]entry {
	e.T.Helper()
	var out struct {
		Context *struct{ Materials []entry }
	}
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		e.T.Fatal(err)
	}
	if out.Context == nil {
		return nil
	}
	m := map[string]entry{}
	for _, x := range out.Context.Materials {
		if _, twice := m[x.Key]; twice {
			e.T.Errorf("%s twice", x.Key)
		}
		m[x.Key] = x
	}
	return m
}

var onAlpha = obj{"project": calltest.Alpha.String()}

// Each material has its own condition; what it denies is left out of the answer, whole, and the
// tool's result stands.
//
// Covers: CTX-03, CTX-04, CTX-05, CTX-06, CTX-10, CTX-11, CTX-13, CTX-14
func TestEachMaterialIsAuthorisedOnItsOwn(t *testing.T) {
	e := env(t, material.Options{})
	s := calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "x"})
	all := append(material.Keys(), "foo.bar")
	for name, tc := range map[string]struct {
		p    call.Principal
		spec *call.Spec
		args any
		want map[string]string // reason of the unavailable ones
	}{
		"everything that is here": {calltest.Owner(), reads, onAlpha, map[string]string{"skills.catalog": "capability_unavailable",
			"plugins.catalog": "insufficient_scope", "memory.bootstrap": "insufficient_scope", "foo.bar": "unknown_material"}},
		"no project in the request": {calltest.Owner(), statusTool, `{}`, map[string]string{"project.instructions": "project_required", "workflow.resume": "project_required",
			"jobs.attention": "project_required", "skills.catalog": "project_required", "plugins.catalog": "insufficient_scope", "memory.bootstrap": "insufficient_scope", "foo.bar": "unknown_material"}},
		"a project that only a Session has": {calltest.Owner(), &session.ReadSummary, obj{"session_id": s.SessionID}, map[string]string{"project.instructions": "project_required",
			"workflow.resume": "project_required", "jobs.attention": "project_required", "skills.catalog": "project_required", "plugins.catalog": "insufficient_scope",
			"memory.bootstrap": "insufficient_scope", "foo.bar": "unknown_material"}},
		"no runtime scope": {calltest.Owner(call.ScopeRuntimeRead), reads, onAlpha, map[string]string{"workflow.resume": "insufficient_scope", "jobs.attention": "insufficient_scope",
			"skills.catalog": "capability_unavailable", "plugins.catalog": "insufficient_scope", "memory.bootstrap": "insufficient_scope", "foo.bar": "unknown_material"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := e.Seq()
			got, _ := ask(e, tc.p, tc.spec, tc.args, all...)
			if len(got) != len(all) {
				t.Errorf("%d entries", len(got))
			}
			for _, key := range all {
				x, reason := got[key], tc.want[key]
				if (x.Status == material.Available) != (reason == "") || x.Reason != reason || (x.Content == nil) != (reason != "") {
					t.Errorf("%s: %s %s, want %q", key, x.Status, x.Reason, reason)
				}
			}
			if e.Seq() > before+2 { // at most a number for a ref that had none
				t.Errorf("%d commits", e.Seq()-before)
			}
		})
	}
	asks := len(e.Fleet.Asks())
	noRead := *statusTool
	noRead.Plane = call.PlaneProject
	got, resp := ask(e, calltest.Owner(call.ScopeProjectRead), &noRead, onAlpha, "project.instructions")
	if got["project.instructions"].Reason != "insufficient_scope" || strings.Contains(string(resp.Output), rules) || len(e.Fleet.Asks()) != asks {
		t.Errorf("a denied material was read: %s", resp.Output)
	}
}

// Nothing comes without being asked for, and what was asked for is not remembered.
//
// Covers: CTX-01, CTX-02, CTX-17
func TestMaterialsComeOnlyWhenAskedFor(t *testing.T) {
	e := env(t, material.Options{})
	got, _ := ask(e, calltest.Owner(), reads, onAlpha, "project.instructions", "project.instructions")
	if !strings.Contains(string(got["project.instructions"].Content), rules) || len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if got, resp := ask(e, calltest.Owner(), reads, onAlpha); got != nil || strings.Contains(string(resp.Output), rules) {
		t.Errorf("%s", resp.Output)
	}
}

// What a provider does comes after the effect and cannot undo it; a refusal has no context.
//
// Covers: CTX-12, CTX-13
func TestMaterialsComeAfterTheEffect(t *testing.T) {
	e := env(t, material.Options{})
	runs := &call.Spec{Name: "some_tool", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Execute,
		Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
			_, err := c.Effect(ctx, wire.OpProcess, wire.ProcessIn{}, call.EffectOptions{})
			return call.Result{Output: obj{"main": true}}, err
		}}
	scripted := e.Fleet.OnAsk
	s := calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "x"})
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		core, _ := e.Store.Core(s.SessionID)
		if len(e.Fleet.Starts()) != 1 || len(core.Open) != 0 {
			t.Errorf("asked after %d starts, with %d open calls", len(e.Fleet.Starts()), len(core.Open))
		}
		return nil, fault.New(fault.Internal, "the provider failed")
	}
	args := obj{"project": calltest.Alpha.String(), "session_id": s.SessionID}
	got, resp := ask(e, calltest.Owner(), runs, args, "project.instructions")
	if got["project.instructions"].Status != material.Unavailable || !strings.Contains(string(resp.Output), `"main":true`) {
		t.Errorf("%s", resp.Output)
	}
	e.Fleet.OnAsk = scripted
	asks := len(e.Fleet.Asks())
	refused := *reads
	refused.Run = func(context.Context, *call.Call) (call.Result, error) {
		return call.Result{}, fault.New(fault.EditConflict, "no")
	}
	_, err := e.CallWith(context.Background(), calltest.Owner(), &refused, onAlpha, call.Envelope{Context: []string{"project.instructions"}})
	if f := fault.As(err); f.Kind != fault.EditConflict || f.Details["context"] != nil || len(e.Fleet.Asks()) != asks {
		t.Errorf("%+v", f)
	}
}

// work_on_project shows what it has just looked at: one look, and what it could not see stays
// unseen.
//
// Covers: CTX-15, CTX-16
func TestAStartReadsTheRulesOnce(t *testing.T) {
	e := env(t, material.Options{})
	work := func(keys ...string) (map[string]entry, call.Response) {
		return ask(e, calltest.Owner(), &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "x"}, keys...)
	}
	asks := len(e.Fleet.Asks())
	got, resp := work("project.instructions", "memory.bootstrap", "webcodex.workflow")
	if n := len(e.Fleet.Asks()) - asks; n != 1 {
		t.Errorf("the Runner was asked %d times", n)
	}
	var in material.Instructions
	if err := json.Unmarshal(got["project.instructions"].Content, &in); err != nil || in.Incomplete || len(in.Sources) != 1 ||
		in.Sources[0].Text != rules || !in.Sources[0].Untrusted || got["memory.bootstrap"].Status != material.Unavailable ||
		got["webcodex.workflow"].Status != material.Available {
		t.Errorf("%+v", got)
	}
	var out session.WorkOut
	if err := json.Unmarshal(resp.Output, &out); err != nil || out.Continuation != session.Created {
		t.Error(err)
	}
	// A resume names its Project by the Session.
	got, _ = ask(e, calltest.Owner(), &session.WorkOnProject, obj{"session_id": out.SessionID, "instruction": "on"}, "project.instructions")
	if got["project.instructions"].Status != material.Available {
		t.Errorf("%+v", got)
	}
	if _, resp := work(); strings.Contains(string(resp.Output), rules) {
		t.Error("the text came without being asked for")
	}
	instruct(e, wire.InstructionSource{Path: "AGENTS.md", Status: wire.SourceUnreadable}, wire.InstructionSource{Path: "CLAUDE.md", Status: wire.SourceNotFound})
	asks = len(e.Fleet.Asks())
	got, _ = work("project.instructions")
	if err := json.Unmarshal(got["project.instructions"].Content, &in); err != nil || !in.Incomplete || in.Sources[0].Status != "unavailable" || len(e.Fleet.Asks()) != asks+1 {
		t.Errorf("%+v", in)
	}
	e.Fleet.OnAsk = func(wire.Op, json.RawMessage) (any, error) { return nil, fault.New(fault.RunnerUnavailable, "gone") }
	asks = len(e.Fleet.Asks())
	got, _ = work("project.instructions")
	if got["project.instructions"].Status != material.Unavailable || len(e.Fleet.Asks()) != asks+1 {
		t.Errorf("%+v", got)
	}
}

func TestInstructionsAreBounded(t *testing.T) {
	e := env(t, material.Options{})
	long := strings.Repeat("\u2028<漢", 5000)
	instruct(e, wire.InstructionSource{Path: "AGENTS.md", Status: wire.SourceLoaded, Text: long}, wire.InstructionSource{Path: "CLAUDE.md", Status: wire.SourceLoaded, Text: long},
		wire.InstructionSource{Path: "../secret", Status: wire.SourceLoaded, Text: "OUTSIDE"})
	got, resp := ask(e, calltest.Owner(), reads, onAlpha, "project.instructions")
	var in material.Instructions
	if err := json.Unmarshal(got["project.instructions"].Content, &in); err != nil || !in.Incomplete || !in.Sources[0].Truncated || len(in.Sources) != 2 {
		t.Fatalf("%d sources, %v", len(in.Sources), err)
	}
	if n := len(got["project.instructions"].Content); n > material.MaxInstructionBytes+1024 || strings.Contains(string(resp.Output), "OUTSIDE") {
		t.Errorf("%d bytes", n)
	}
}

// Covers: CTX-06
func TestJobsAreTheProjectsOwn(t *testing.T) {
	e := env(t, material.Options{})
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	promote := &call.Spec{Name: "run_process", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Execute,
		Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
			_, err := c.Effect(ctx, wire.OpProcess, wire.ProcessIn{}, call.EffectOptions{})
			return call.Result{Facts: call.Facts{Promoted: true}}, err
		}}
	for range 20 {
		calltest.Must[obj](e, promote, onAlpha)
	}
	calltest.Must[obj](e, promote, obj{"project": calltest.Beta.String()})
	if _, err := e.CallAs(context.Background(), calltest.Someone("b"), promote, onAlpha); err != nil {
		t.Fatal(err)
	}
	got, _ := ask(e, calltest.Owner(), reads, onAlpha, "jobs.attention")
	var jobs material.Jobs
	if err := json.Unmarshal(got["jobs.attention"].Content, &jobs); err != nil || jobs.Active != 20 || len(jobs.Jobs) != material.MaxJobs || jobs.Project != calltest.Alpha.String() {
		t.Fatalf("%+v %v", jobs, err)
	}
	if starts := e.Fleet.Starts(); jobs.Jobs[0].ID != starts[19] || strings.Contains(string(got["jobs.attention"].Content), "wc_sess_") {
		t.Errorf("%+v", jobs)
	}
}

// workflow.resume lists the caller's own open Sessions under their refs; a project_ref is there
// only while the Project is.
//
// Covers: SES-06, SES-20
func TestWorkToResume(t *testing.T) {
	var window []event.SessionID
	e := env(t, material.Options{Linked: func(context.Context, *call.Call) []event.SessionID { return window }})
	var mine []session.WorkOut
	for i := range 7 {
		mine = append(mine, calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": fmt.Sprint(i)}))
	}
	beta := calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"project": calltest.Beta.String(), "instruction": "b"})
	calltest.Must[session.CloseOut](e, &session.CloseSession, obj{"session_id": mine[6].SessionID})
	colleague := calltest.Owner()
	colleague.Actor.Principal = strings.Repeat("c", 64)
	resp, err := e.CallAs(context.Background(), colleague, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	var theirs session.WorkOut
	_ = json.Unmarshal(resp.Output, &theirs)
	list := func(windowed bool) material.Resume {
		t.Helper()
		raw, _ := json.Marshal(onAlpha)
		q := call.Request{Spec: reads, Args: raw, Principal: calltest.Owner(), Transport: "mcp", Envelope: call.Envelope{Context: []string{"workflow.resume"}}}
		if windowed {
			q.Window = event.WindowID(strings.Repeat("1", 64))
		}
		resp, err := e.Kernel.Call(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		var out material.Resume
		if err := json.Unmarshal(materials(e, resp)["workflow.resume"].Content, &out); err != nil {
			t.Fatalf("%s %v", resp.Output, err)
		}
		return out
	}
	out := list(false)
	if out.Source != "project" || len(out.Sessions) != material.MaxSessions {
		t.Fatalf("%+v", out)
	}
	for _, r := range out.Sessions {
		i := slices.IndexFunc(mine, func(w session.WorkOut) bool { return w.SessionID == r.SessionID })
		if i < 0 || r.SessionRef != mine[i].SessionRef || r.ProjectRef != mine[i].ProjectRef || r.ProjectRef == "" || *r.Project != calltest.Alpha.String() {
			t.Errorf("%+v", r)
		}
	}
	window = []event.SessionID{beta.SessionID, theirs.SessionID, mine[6].SessionID, event.NewSessionID()}
	out = list(true)
	if out.Source != "window" || len(out.Sessions) != 1 || out.Sessions[0].SessionID != beta.SessionID || out.Sessions[0].ProjectRef != beta.ProjectRef {
		t.Fatalf("%+v", out)
	}
	e.Fleet.Move(calltest.Beta, "")
	if core, _ := e.Store.Core(beta.SessionID); core.Lifecycle != view.Active {
		t.Error("a list resumed something")
	}
	if list(false).Source != "project" {
		t.Error("without a window there are links")
	}
}

// Guidance is in the form that the request asks for, else its host, else direct; a start and a
// later refresh agree.
//
// Covers: PRO-02, PRO-03, PRO-04, PRO-05, PRO-10, PRO-11
func TestTheGuidanceProfileIsOfTheRequest(t *testing.T) {
	e := env(t, material.Options{})
	for name, tc := range map[string]struct{ argument, host, want string }{
		"nothing": {"", "", "direct"}, "host": {"", "host_code_mode", "host_code_mode"}, "argument": {"host_code_mode", "", "host_code_mode"},
		"argument over host": {"direct", "host_code_mode", "direct"}, "argument over a host's word that is none": {"direct", "code_mode", "direct"},
	} {
		args := obj{"project": calltest.Alpha.String(), "instruction": "x"}
		if tc.argument != "" {
			args["guidance_profile"] = tc.argument
		}
		resp, err := e.CallWith(context.Background(), calltest.Owner(), &session.WorkOnProject, args, call.Envelope{Profile: tc.host, Context: []string{"webcodex.workflow"}})
		if err != nil {
			t.Fatal(err)
		}
		var out session.WorkOut
		var w material.Workflow
		_ = json.Unmarshal(resp.Output, &out)
		_ = json.Unmarshal(materials(e, resp)["webcodex.workflow"].Content, &w)
		if out.Profile != tc.want || w.Profile != tc.want {
			t.Errorf("%s: start %s, guidance %s, want %s", name, out.Profile, w.Profile, tc.want)
		}
		for _, c := range e.Commits(out.SessionID) {
			if body, _ := c.Encode(); strings.Contains(string(body), "code_mode") {
				t.Errorf("%s: the profile is stored: %s", name, body)
			}
		}
		if tc.argument == "" {
			resp, _ := e.CallWith(context.Background(), calltest.Owner(), reads, onAlpha, call.Envelope{Profile: tc.host, Context: []string{"webcodex.workflow"}})
			_ = json.Unmarshal(materials(e, resp)["webcodex.workflow"].Content, &w)
			if w.Profile != tc.want {
				t.Errorf("%s: a refresh has %s", name, w.Profile)
			}
		}
	}
	// Nothing of it lasts.
	got, _ := ask(e, calltest.Owner(), reads, onAlpha, "webcodex.workflow")
	if !strings.Contains(string(got["webcodex.workflow"].Content), `"guidance_profile":"direct"`) {
		t.Errorf("%s", got["webcodex.workflow"].Content)
	}
	before := e.Seq()
	for _, args := range []obj{{"guidance_profile": "code_mode"}, {}} {
		args["project"], args["instruction"] = calltest.Alpha.String(), "x"
		_, err := e.CallWith(context.Background(), calltest.Owner(), &session.WorkOnProject, args, call.Envelope{Profile: "code_mode"})
		if fault.KindOf(err) != fault.InvalidArguments || e.Seq() != before {
			t.Errorf("%v", err)
		}
	}
	if resp, err := e.CallWith(context.Background(), calltest.Owner(), reads, onAlpha, call.Envelope{Profile: "nonsense", Context: []string{"webcodex.workflow"}}); err != nil ||
		materials(e, resp)["webcodex.workflow"].Reason != "invalid_profile" {
		t.Errorf("%s %v", resp.Output, err)
	}
}

// Covers: CTX-20, PRO-06, PRO-07, PRO-12
func TestWhatTheGuidanceSays(t *testing.T) {
	e := env(t, material.Options{})
	text := func(profile string) string {
		resp, err := e.CallWith(context.Background(), calltest.Owner(), statusTool, `{}`, call.Envelope{Profile: profile, Context: []string{"webcodex.workflow"}})
		if err != nil {
			t.Fatal(err)
		}
		var w material.Workflow
		_ = json.Unmarshal(materials(e, resp)["webcodex.workflow"].Content, &w)
		return w.Text
	}
	for _, profile := range call.Profiles {
		for _, want := range []string{"post_session_message", "kind decision or progress", "supplement the recorded evidence", "no conversation that was not sent, no private reasoning",
			"project.instructions or memory.bootstrap", "only observes", "read_memory", "only then make the next change"} {
			if !strings.Contains(text(profile), want) {
				t.Errorf("%s does not say %q", profile, want)
			}
		}
	}
	host, direct := text("host_code_mode"), text("direct")
	for _, want := range []string{"search_file_context", "side by side in one cell", "may branch there", "Keep raw results in the cell", "Do not poll a Job", "changed after it: run it again", "does not claim that it was checked"} {
		if !strings.Contains(host, want) || strings.Contains(direct, want) {
			t.Errorf("%q", want)
		}
	}
	if len(host) > 8<<10 {
		t.Errorf("%d bytes", len(host))
	}
}

// A material that numbers a ref leaves the recorder's pair as whole as it was.
func TestMaterialsLeaveTheRecordersPairAlone(t *testing.T) {
	e := env(t, material.Options{})
	w := calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "x"})
	owner := calltest.Owner().Actor
	e.Append(event.NewSessionID(), event.SessionCreated{Nonce: event.NewNonce(), Authority: owner.Authority, Principal: owner.Principal, Project: calltest.Alpha, Mode: event.ModeNormal})
	before, commits := len(e.Events(w.SessionID)), e.Seq()
	resp, err := e.CallWith(context.Background(), calltest.Owner(), reads, onAlpha, call.Envelope{Record: string(w.SessionID), Context: material.Keys()})
	if err != nil || len(resp.Output) > 40_000 {
		t.Fatalf("%d bytes, %v", len(resp.Output), err)
	}
	core, _ := e.Store.Core(w.SessionID)
	if n := len(e.Events(w.SessionID)) - before; n != 2 || len(core.Open) != 0 || e.Seq() != commits+2 {
		t.Errorf("%d events, %d open, %d commits", n, len(core.Open), e.Seq()-commits)
	}
}

// The profile changes nothing but words: a resume in another one is the same resume.
//
// Covers: PRO-08
func TestAProfileChangesNothingElse(t *testing.T) {
	e := env(t, material.Options{})
	s := calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "x"})
	var last []byte
	for _, profile := range call.Profiles {
		out := calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"session_id": s.SessionID, "instruction": "on", "guidance_profile": profile})
		events := e.Events(s.SessionID)
		in, ok := events[len(events)-1].(event.InstructionAccepted)
		if !ok || in.CapabilityChanged || in.Mode != event.ModeNormal || out.Session.Lifecycle != view.Active {
			t.Errorf("%+v", events[len(events)-1])
		}
		got, _ := json.Marshal([]any{in, out.Session.Mode, out.Session.Guards, out.Workspace, out.Next})
		if last != nil && string(last) != string(got) {
			t.Errorf("%s\n%s", last, got)
		}
		last = got
	}
}
