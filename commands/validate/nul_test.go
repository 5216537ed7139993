package validate_test

import (
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/validate"
	"webcodex/internal/fault"
)

// A NUL byte is refused as what it is, before anything is dispatched: no Runner is asked for a word
// on it.
func TestNULIsRefusedBeforeDispatch(t *testing.T) {
	e := calltest.New(t, nil)
	for _, tc := range []struct {
		spec *call.Spec
		kind fault.Kind
		in   args
	}{
		{&validate.GoVet, fault.InvalidPath, args{"cwd": "a\x00b"}},
		{&validate.CargoCheck, fault.InvalidPath, args{"cwd": "\x00"}},
		{&validate.RunValidation, fault.InvalidPath, args{"executable": "x", "parser": "tap", "cwd": "a\x00"}},
		{&validate.Pytest, fault.InvalidArguments, args{"keyword": "a\x00b"}},
	} {
		tc.in["project"] = alpha
		f := e.Refused(calltest.Owner(), tc.spec, tc.in, tc.kind)
		if f.Reason != "nul" || f.Next == "" && tc.kind == fault.InvalidArguments || f.Field != "cwd" && tc.kind == fault.InvalidPath {
			t.Errorf("%s: %+v", tc.spec.Name, f)
		}
	}
	if n := len(e.Fleet.Starts()); n != 0 {
		t.Errorf("%d runs were started", n)
	}
}
