package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
)

// Every tool that runs a command or a validation takes an expectation, of three words, and no
// other does; the mechanism of older systems is in no schema. Test tools take a number of tests,
// run_process exit codes, within their bounds.
//
// Covers: EXE-29, EXE-31, EXE-32, VAL-13
func TestWhatMayBeExpected(t *testing.T) {
	for _, tool := range Catalogue() {
		raw, err := json.Marshal(tool.Input)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "expected_failure") {
			t.Errorf("%s knows expected_failure", tool.Spec.Name)
		}
		p, takes := tool.Input.Prop("result_expectation")
		if runs := tool.Spec.Class == call.Execute && tool.Category != "runtime" && !startsNone[tool.Spec.Name]; takes != runs || tool.Spec.Expects != runs {
			t.Errorf("%s: class %d, takes an expectation %v, is held against it %v", tool.Spec.Name, tool.Spec.Class, takes, tool.Spec.Expects)
		}
		if takes && !slices.Equal(p.Schema.Enum, evidence.Expectations) {
			t.Errorf("%s expects %v", tool.Spec.Name, p.Schema.Enum)
		}
		if !takes {
			continue
		}
		base := `{"project":"p",`
		for name, value := range map[string]string{"executable": "x", "script": "x", "language": "sh", "command": "x", "parser": "none", "shell_id": "wc_shell_" + strings.Repeat("0", 32)} {
			if _, has := tool.Input.Prop(name); has {
				base += `"` + name + `":"` + value + `",`
			}
		}
		if id, _ := tool.Input.Prop("session_id"); id.Required {
			base += `"session_id":"s",`
		}
		for member, ok := range map[string]bool{`"result_expectation":"success"`: true, `"result_expectation":"failure"`: true, `"result_expectation":"observe"`: true,
			`"result_expectation":"FAILURE"`: false, `"result_expectation":""`: false, `"result_expectation":1`: false} {
			if err := accepts(tool, base+member+"}"); (err == nil) != ok {
				t.Errorf("%s %s: %v", tool.Spec.Name, member, err)
			}
		}
	}
	for member, ok := range map[string]bool{`"accepted_exit_codes":[0,255]`: true, `"accepted_exit_codes":[]`: true, `"accepted_exit_codes":[256]`: false,
		`"accepted_exit_codes":[-1]`: false, `"accepted_exit_codes":["x"]`: false, `"accepted_exit_codes":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`: true,
		`"accepted_exit_codes":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]`: false} {
		if err := accepts(runProcess, `{"project":"p","executable":"x",`+member+"}"); (err == nil) != ok {
			t.Errorf("run_process %s: %v", member, err)
		}
	}
	for _, tool := range []Tool{goTest, cargoTest, npmTest, pytest} {
		for member, ok := range map[string]bool{`"min_tests":1`: true, `"min_tests":100000`: true, `"min_tests":0`: false, `"min_tests":100001`: false,
			`"require_tests":true`: true, `"require_tests":"no"`: false} {
			if err := accepts(tool, `{"project":"p",`+member+"}"); (err == nil) != ok {
				t.Errorf("%s %s: %v", tool.Spec.Name, member, err)
			}
		}
	}
}

func accepts(tool Tool, args string) error {
	_, err := tool.Input.Normalise(json.RawMessage(args))
	return err
}
