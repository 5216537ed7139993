package mcp

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

var update = flag.Bool("update", false, "write the golden files anew")

// surfaceTool is what hosts depend on of a tool: its name, and names, types and values of its
// arguments.
type surfaceTool struct {
	Name   string         `json:"name"`
	Direct bool           `json:"direct"`
	Fields []surfaceField `json:"fields"`
}

type surfaceField struct {
	Name     string         `json:"name"`
	Type     string         `json:"type"`
	Required bool           `json:"required,omitempty"`
	Enum     []string       `json:"enum,omitempty"`
	Fields   []surfaceField `json:"fields,omitempty"`
}

func surfaceOf(s *schema.Schema) []surfaceField {
	var out []surfaceField
	for _, p := range s.Props {
		out = append(out, surfaceField{p.Name, p.Schema.Type, p.Required, p.Schema.Enum, surfaceOf(p.Schema)})
	}
	return out
}

// The wire names of the Session surface stay: tools, fields, values and error kinds. A changed
// golden is a broken host; the file is written anew only for an addition.
//
// Covers: SES-51, SES-60
func TestSessionSurfaceIsGolden(t *testing.T) {
	var got struct {
		Tools []surfaceTool `json:"tools"`
		Kinds []fault.Kind  `json:"error_kinds"`
	}
	for _, tool := range Catalogue() {
		if tool.Category == "workflow" {
			got.Tools = append(got.Tools, surfaceTool{tool.Spec.Name, tool.Direct, surfaceOf(tool.Input)})
		}
	}
	got.Kinds = []fault.Kind{fault.InvalidInstruction, fault.UnknownSessionID, fault.UnknownSessionRef, fault.UnknownProject, fault.UnknownProjectRef,
		fault.SessionExpired, fault.SessionClosed, fault.SessionProjectMismatch, fault.SessionAuthorityDenied, fault.AuthorityUnavailable,
		fault.InvalidContext, fault.ContextNeedsProject, fault.UpgradeDenied, fault.SessionGuardDenied}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", " ")
	if err := enc.Encode(got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "session_surface.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the surface differs from %s:\n%s", path, b.String())
	}
	for _, name := range []string{"start_session", "work_on_project", "read_session_summary", "session_id", "session_mode", "normal", "read_only"} {
		if !bytes.Contains(want, []byte(`"`+name+`"`)) {
			t.Errorf("%s is not on the surface", name)
		}
	}
	for _, name := range []string{"start_coding_task", "resume_coding_task", "session_summary", "session_handoff_summary", "inspect", "resume_session_id"} {
		if bytes.Contains(want, []byte(`"`+name+`"`)) {
			t.Errorf("%s has come back", name)
		}
	}
}

// selectors are the arguments that name a Session or a Project, with values of every form
// that the kernel has an answer for.
var selectors = map[string][]string{
	"session_id": {"~s1", "~s7", "~s999999999", "wc_sess_" + strings.Repeat("0a", 16), "~s0", "~S1", "~s01", "~s", "wc_sess_", "wc_sess_XYZ", "mine"},
	"project":    {"~p1", "~p7", "~p999999999", "agent:local:demo-00000000", "~p0", "~P1", "~p", "agent:", "demo"},
}

// Refs and ids of every form pass the schema wherever the kernel takes a selector, so that
// the kernel answers with its own kind; nothing else is a selector.
//
// Covers: SES-03, SES-15, SES-62
func TestSelectorsPassEverySchema(t *testing.T) {
	counted := map[string]int{}
	// What names or picks a Session: nothing but these may.
	picks := regexp.MustCompile(`session|window|latest|current|recent|newest|resume|bind`)
	allowed := []string{"session_id", "session_mode"}
	for _, tool := range Catalogue() {
		var walk func(s *schema.Schema, at string)
		walk = func(s *schema.Schema, at string) {
			for _, p := range s.Props {
				if picks.MatchString(p.Name) && !slices.Contains(allowed, p.Name) {
					t.Errorf("%s%s.%s could pick a Session", tool.Spec.Name, at, p.Name)
				}
				if values, is := selectors[p.Name]; is && p.Schema.Type == "string" {
					counted[p.Name]++
					for _, v := range values {
						raw, err := json.Marshal(map[string]string{p.Name: v})
						if err != nil {
							t.Fatal(err)
						}
						if _, err := schema.Object(schema.Opt(p.Name, p.Schema)).Normalise(raw); err != nil {
							t.Errorf("%s%s.%s refuses %q by its schema: %v", tool.Spec.Name, at, p.Name, v, err)
						}
					}
				}
				walk(p.Schema, at+"."+p.Name)
			}
			if s.Items != nil {
				walk(s.Items, at+"[]")
			}
		}
		walk(tool.Input, "")
	}
	if counted["session_id"] < 20 || counted["project"] < 20 {
		t.Errorf("looked at %v", counted)
	}
}

// What tools/list and the manifest show is the schema that is checked.
//
// Covers: SES-15
func TestListedSchemasAreTheCheckedOnes(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Tools = nil })
	listed := r.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}).body
	var list struct {
		Result struct {
			Tools []struct {
				Name        string          `json:"name"`
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(listed[strings.Index(listed, "{"):]), &list); err != nil {
		t.Fatal(err)
	}
	shown := map[string]json.RawMessage{}
	for _, tool := range list.Result.Tools {
		shown[tool.Name] = tool.InputSchema
	}
	for _, tool := range Catalogue() {
		want, err := json.Marshal(tool.Input)
		if err != nil {
			t.Fatal(err)
		}
		if got, direct := shown[tool.Spec.Name]; direct != tool.Direct || direct && !sameJSON(t, got, want) {
			t.Errorf("%s is listed as %s", tool.Spec.Name, got)
		}
		out, err := manifest(Catalogue(), manifestIn{Tools: []string{tool.Spec.Name}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(out.Tools[0].InputSchema)
		if err != nil || !sameJSON(t, raw, want) {
			t.Errorf("the manifest shows %s as %s", tool.Spec.Name, raw)
		}
	}
}
