package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/files"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

// directInventory is the default tools/list of the catalogue; which of them exist grows.
var directInventory = strings.Fields(`work_on_project list_sessions read_session_handoff finish_coding_task read_validation_summary
	post_session_message read_session_discussion list_projects read_project_overview list_project_files list_project_tracked_files
	read_files search_project_texts search_file_context edit_project_files get_git_status read_git_diff_hunks read_git_log
	read_workspace_changes run_process run_script run_shell run_job observe_jobs stop_job cargo_test go_test
	get_runtime_status read_tool_manifest call_runtime_tool`)

// retired are arguments of older systems; none may come back (AUTH-08, REC-…).
var retired = []string{"_session_id", "allow_cross_project_session", "expected_failure", "expected_failures", "bind_current",
	"new_session", "resume_session_id", "recording_session_id", "_wc"}

// TestToolRules lints every tool against the rules that keep all hosts able to use it.
//
// Covers: AUTH-12
func TestToolRules(t *testing.T) {
	name := regexp.MustCompile(`^[a-z_]{1,32}$`)
	seen := map[string]bool{}
	for _, tool := range Catalogue() {
		n := tool.Spec.Name
		bad := func(format string, args ...any) { t.Errorf("%s: %s", n, fmt.Sprintf(format, args...)) }
		switch {
		case !name.MatchString(n):
			bad("name")
		case seen[n]:
			bad("is there twice")
		case tool.Description == "" || len(tool.Description) > MaxDescription:
			bad("description of %d bytes", len(tool.Description))
		case tool.Title == "" || !slices.Contains(Categories, tool.Category):
			bad("title %q, category %q", tool.Title, tool.Category)
		case len(tool.Spec.Scopes) == 0:
			bad("no scope: it would be open")
		case tool.Spec.Run == nil || tool.Input == nil || tool.Input.Type != "object" || tool.Input.Free:
			bad("no Run, or no closed object as input")
		case tool.Direct != slices.Contains(directInventory, n):
			bad("direct is %v, the inventory says otherwise", tool.Direct)
		}
		seen[n] = true
		if a := tool.Annotations(); a.ReadOnly != (tool.Spec.Class == call.Observe) || a.ReadOnly && a.Destructive {
			bad("hints %+v do not tell the truth", a)
		}
		if tool.Spec.Class == call.Execute && !tool.Destructive && tool.Category != "validation" {
			bad("runs any command and says it destroys nothing")
		}
		lintPlane(bad, tool)
		lintSchema(bad, tool.Input, "")
	}
}

// shells are the tools of the Session's persistent shell: it is the Session that they are about, and
// what a shell is for is said by its commands.
var shells = []string{"open_session_shell", "execute_session_shell", "get_session_shell_status", "close_session_shell"}

// lintPlane: project tools name their Project, and may name a Session; runs say what for.
func lintPlane(bad func(string, ...any), tool Tool) {
	if tool.Spec.Plane != call.PlaneProject {
		return
	}
	for _, p := range []string{"project", "session_id"} {
		if _, ok := tool.Input.Prop(p); !ok {
			bad("a project tool without %s", p)
		}
	}
	if p, ok := tool.Input.Prop("session_id"); ok && p.Required && !slices.Contains(shells, tool.Spec.Name) {
		bad("session_id is required; it only adds evidence")
	}
	if tool.Spec.Class == call.Execute && tool.Spec.Name != "stop_job" && !startsNone[tool.Spec.Name] {
		if _, ok := tool.Input.Prop("purpose"); !ok {
			bad("runs without a purpose")
		}
	}
}

// startsNone are tools of the class that runs commands which start none of the caller's: what they
// send, or open, is for runs that have their own purpose and expectation.
var startsNone = map[string]bool{"send_execution_input": true, "open_session_shell": true}

func lintSchema(bad func(string, ...any), s *schema.Schema, path string) {
	switch s.Type {
	case "object":
		if s.Free && path != ".arguments" {
			bad("%s is open", path)
		}
		for _, p := range s.Props {
			if slices.Contains(retired, p.Name) {
				bad("%s.%s is retired", path, p.Name)
			}
			if !regexp.MustCompile(`^[a-z0-9_]{1,40}$`).MatchString(p.Name) {
				bad("%s.%s is no name", path, p.Name)
			}
			lintSchema(bad, p.Schema, path+"."+p.Name)
		}
	case "array":
		if s.Items == nil || s.MaxItems == 0 {
			bad("%s has no items or no bound", path)
			return
		}
		lintSchema(bad, s.Items, path+"[]")
	case "string":
		if len(s.Enum) == 0 && s.MaxLength == 0 && s.MaxBytes == 0 {
			bad("%s is unbounded", path)
		}
		if s.Pattern != "" {
			regexp.MustCompile(s.Pattern)
		}
	case "integer":
		if (s.Min == nil) != (s.Max == nil) {
			bad("%s has half a bound", path)
		}
	case "boolean":
	default:
		bad("%s has type %q", path, s.Type)
	}
}

// TestArgumentsMatchTheirTypes: each property of a schema is a field of what the command
// decodes, and the other way round, at every depth.
func TestArgumentsMatchTheirTypes(t *testing.T) {
	for _, tool := range Catalogue() {
		matchType(t, tool.Spec.Name, tool.Input, reflect.TypeOf(tool.Spec.In))
	}
}

func matchType(t *testing.T, at string, s *schema.Schema, typ reflect.Type) {
	if typ == nil {
		t.Errorf("%s: no type of arguments", at)
		return
	}
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == reflect.TypeFor[json.RawMessage]():
	case s.Type == "array" && typ.Kind() == reflect.Slice:
		matchType(t, at+"[]", s.Items, typ.Elem())
	case s.Type == "object" && typ.Kind() == reflect.Struct:
		fields := map[string]reflect.Type{}
		jsonFields(typ, fields)
		for _, p := range s.Props {
			f, ok := fields[p.Name]
			if !ok {
				t.Errorf("%s.%s is in the schema only", at, p.Name)
				continue
			}
			delete(fields, p.Name)
			matchType(t, at+"."+p.Name, p.Schema, f)
		}
		for name := range fields {
			t.Errorf("%s.%s is in the type only", at, name)
		}
	case s.Type == "string" && typ.Kind() == reflect.String,
		s.Type == "boolean" && typ.Kind() == reflect.Bool,
		s.Type == "integer" && typ.Kind() >= reflect.Int && typ.Kind() <= reflect.Int64:
	default:
		t.Errorf("%s: %s in the schema, %s in the type", at, s.Type, typ)
	}
}

func jsonFields(typ reflect.Type, into map[string]reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			jsonFields(f.Type, into)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			into[name] = f.Type
		}
	}
}

// TestToolsListBounds: what every host downloads at each start stays small (bar 5), and the
// words of the server fit where hosts cut.
func TestToolsListBounds(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Tools = nil })
	m := r.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
	var list struct {
		Result struct {
			Tools []map[string]json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	data := m.body[strings.Index(m.body, "{"):]
	if err := json.Unmarshal([]byte(data), &list); err != nil {
		t.Fatal(err)
	}
	compact, err := json.Marshal(list.Result)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tools, %d bytes", len(list.Result.Tools), len(compact))
	if len(list.Result.Tools) > MaxTools || len(compact) > MaxToolsBytes {
		t.Errorf("%d tools in %d bytes; the bounds are %d and %d", len(list.Result.Tools), len(compact), MaxTools, MaxToolsBytes)
	}
	for _, tool := range list.Result.Tools {
		var in map[string]json.RawMessage
		if err := json.Unmarshal(tool["inputSchema"], &in); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"anyOf", "oneOf", "allOf", "$ref"} {
			if _, ok := in[k]; ok {
				t.Errorf("%s has a top-level %s", tool["name"], k)
			}
		}
		if string(in["additionalProperties"]) != "false" || string(in["type"]) != `"object"` || tool["outputSchema"] != nil {
			t.Errorf("%s: %s", tool["name"], tool["inputSchema"])
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if !strings.Contains(string(tool["annotations"]), hint) {
				t.Errorf("%s leaves %s out", tool["name"], hint)
			}
		}
	}
	if len(Instructions) > MaxInstructions {
		t.Errorf("instructions of %d bytes", len(Instructions))
	}
}

// TestBadPathsHaveReasons: a path refused before any file is looked at says what is wrong with
// it, as the Runner's refusals do.
func TestBadPathsHaveReasons(t *testing.T) {
	long := strings.Repeat("x", files.MaxPathBytes+1)
	seen := 0
	for _, tool := range Catalogue() {
		for args, reason := range map[string]string{`{"project":"p","path":"` + long + `"}`: "too_long", `{"project":"p","paths":["` + long + `"]}`: "too_long",
			`{"project":"p","paths":[""]}`: "empty", `{"project":"p","items":[{"path":""}]}`: "empty", `{"project":"p","items":[{}]}`: "missing"} {
			f := fault.As(onlyErr(tool.Input.Normalise(json.RawMessage(args))))
			if f == nil || !strings.HasSuffix(f.Field, "path") && !strings.HasPrefix(f.Field, "paths[") {
				continue // another field was refused first
			}
			if _, known := tool.Input.Prop(strings.FieldsFunc(f.Field, func(r rune) bool { return r == '[' || r == '.' })[0]); !known {
				continue
			}
			seen++
			if f.Kind != fault.InvalidPath || f.Reason != reason {
				t.Errorf("%s of %.60s: %s %s at %s", tool.Spec.Name, args, f.Kind, f.Reason, f.Field)
			}
		}
	}
	if seen < 12 {
		t.Errorf("only %d paths were tried", seen)
	}
}

func onlyErr[T any](_ T, err error) error { return err }

// TestRetiredArguments: passing an escape of older systems is refused by every tool.
//
// Covers: AUTH-08
func TestRetiredArguments(t *testing.T) {
	for _, tool := range Catalogue() {
		for _, name := range retired {
			if _, err := tool.Input.Normalise(json.RawMessage(`{"` + name + `":"x"}`)); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s takes %s: %v", tool.Spec.Name, name, err)
			}
		}
	}
}

// TestManifest: pages, filters, clamped knobs, and no tool missing.
func TestManifest(t *testing.T) {
	all := Catalogue()
	var got []string
	offset := 0
	for {
		out, err := manifest(all, manifestIn{Offset: &offset, Limit: ptr(3)}, nil)
		if err != nil || out.Total != len(all) || out.Limit != 3 {
			t.Fatalf("%+v %v", out, err)
		}
		for _, m := range out.Tools {
			if len(m.Scopes) == 0 || m.InputSchema == nil || m.Effect == "" {
				t.Errorf("%s: %+v", m.Name, m)
			}
			got = append(got, m.Name)
		}
		if out.NextOffset == nil {
			break
		}
		offset = *out.NextOffset
	}
	if len(got) != len(all) || got[0] != all[0].Spec.Name {
		t.Errorf("%d of %d tools: %v", len(got), len(all), got)
	}
	if out, _ := manifest(all, manifestIn{Limit: ptr(1000)}, nil); out.Limit != maxManifestLimit {
		t.Errorf("limit %d", out.Limit)
	}
	if out, _ := manifest(all, manifestIn{Offset: ptr(-5), Category: "runtime"}, nil); out.Total == 0 || out.Tools[0].Category != "runtime" {
		t.Errorf("%+v", out)
	}
	if out, _ := manifest(all, manifestIn{Tools: []string{"call_runtime_tool"}}, nil); out.Returned != 1 || out.Tools[0].Effect != "execute" {
		t.Errorf("%+v", out)
	}
	if _, err := manifest(all, manifestIn{Tools: []string{"no_such"}}, nil); err == nil {
		t.Error("an unknown tool was left out silently")
	}
	enc, err := json.Marshal(manifestOut{})
	if err != nil || !strings.Contains(string(enc), `"next_offset":null`) {
		t.Errorf("%s", enc)
	}
}

func ptr[T any](v T) *T { return &v }
