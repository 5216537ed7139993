package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"webcodex/mcp/schema"
)

// The profile is one argument of one tool with two values. It is the form of the answer that was
// asked for with it, of that answer alone; every other value and every other place is refused.
//
// Covers: PRO-01, PRO-05, PRO-10
func TestTheGuidanceProfileIsAnArgumentOfOneTool(t *testing.T) {
	var walk func(s *schema.Schema, name string) int
	walk = func(s *schema.Schema, name string) (n int) {
		for _, p := range s.Props {
			if p.Name == "guidance_profile" {
				if n++; name != "work_on_project" || !slices.Equal(p.Schema.Enum, []string{"direct", "host_code_mode"}) {
					t.Errorf("%s: %q", name, p.Schema.Enum)
				}
			}
			n += walk(p.Schema, name)
		}
		return n
	}
	found := 0
	for _, tool := range Catalogue() {
		found += walk(tool.Input, tool.Spec.Name)
	}
	if found != 1 {
		t.Errorf("it is an argument in %d places", found)
	}
	r := catalogueRig(t)
	for _, version := range versions {
		c := r.connect(version)
		id := started(t, c)
		shown := func(args object) string {
			args["session_id"], args["instruction"] = id, "x"
			var out struct {
				Profile string `json:"guidance_profile"`
			}
			res := callTool(t, c, "work_on_project", args)
			if err := res.Decode(&out); err != nil || res.IsError {
				t.Fatalf("%s: %s %v", version, res.Text, err)
			}
			return out.Profile
		}
		for _, p := range []string{"host_code_mode", "direct", "host_code_mode"} {
			if got, next := shown(object{"guidance_profile": p}), shown(object{}); got != p || next != "direct" {
				t.Errorf("%s: asked for %s: %s, and %s in the next call", version, p, got, next)
			}
		}
		for _, bad := range []any{"code_mode", "", "Direct", "minimal", 1, []string{"direct"}} {
			before := r.log.Status().Seq
			res := callTool(t, c, "work_on_project", object{"session_id": id, "instruction": "x", "guidance_profile": bad})
			refusedAt(t, res, "invalid_arguments", "guidance_profile")
			if r.log.Status().Seq != before {
				t.Errorf("%v: the refusal wrote", bad)
			}
		}
		refusedAt(t, callTool(t, c, "list_projects", object{"guidance_profile": "direct"}), "invalid_arguments", "guidance_profile")
		if version == Modern {
			refusedAt(t, callTool(t, c, "list_projects", object{envelopeName: object{"guidance_profile": "direct"}}), "invalid_arguments", envelopeName+".guidance_profile")
		}
		for _, e := range r.stored(id) {
			if raw, err := json.Marshal(e); err != nil || strings.Contains(string(raw), "host_code_mode") {
				t.Errorf("%s: the profile is stored: %s %v", version, raw, err)
			}
		}
	}
}

// What the tool says of the brief: it is made from evidence, its recent files are hints, and it is
// neither a transcript nor a verdict.
//
// Covers: HND-09, HND-17
func TestTheHandoffSaysWhatItIsNot(t *testing.T) {
	for _, words := range []string{"from evidence", "recent files as hints", "No transcript, no verdict"} {
		if !strings.Contains(readSessionHandoff.Description, words) {
			t.Errorf("it does not say %q", words)
		}
	}
}
