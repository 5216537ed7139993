package files_test

import (
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/files"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// What is wrong with a request by itself is refused before anything is recorded or started,
// with the field and the reason.
func TestWrongRequestsLeaveNothing(t *testing.T) {
	e := calltest.New(t, nil)
	id := event.SessionID(work(e, nil))
	answer(e, nil, fault.New(fault.Internal, "the Runner was asked"))
	sha := strings.Repeat("0", 64)
	bad := map[string]string{"/etc/passwd": "absolute", "../x": "outside_project", "a/../../x": "outside_project", "a\x00": "nul",
		strings.Repeat("x", 256): "too_long", strings.Repeat("x/", 2100): "too_long", ".": "empty",
		".git/config": "git_internal", "d/.GIT /hooks/x": "git_internal", "git~1/x": "git_internal"}
	type refusal struct {
		spec  *call.Spec
		a     args
		kind  fault.Kind
		field string
		why   string
	}
	changes := func(list ...args) args { return args{"changes": list} }
	edits := func(e args) args { return changes(args{"kind": "edit", "path": "a", "edits": []args{e}}) }
	create := func(path string) args { return args{"kind": "create", "path": path, "content": "x"} }
	list := []refusal{
		{&files.Edit, edits(args{"kind": "replace_exact", "old_text": "a"}), fault.InvalidArguments, "changes[0].edits[0].new_text", ""},
		{&files.Edit, edits(args{"kind": "replace_exact", "old_text": "", "new_text": "a"}), fault.InvalidArguments, "changes[0].edits[0].old_text", ""},
		{&files.Edit, changes(args{"kind": "delete", "path": "a"}), fault.InvalidArguments, "changes[0].expected_sha256", ""},
		{&files.Edit, changes(args{"kind": "rename", "path": "a", "to_path": "b"}), fault.InvalidArguments, "changes[0].expected_sha256", ""},
		{&files.Edit, changes(args{"kind": "rename", "path": "a", "expected_sha256": sha}), fault.InvalidArguments, "changes[0].to_path", ""},
		{&files.Edit, changes(args{"kind": "create", "path": "a"}), fault.InvalidArguments, "changes[0].content", ""},
		{&files.Edit, changes(args{"kind": "create", "path": "a", "content": "x", "to_path": "b"}), fault.InvalidArguments, "changes[0].to_path", ""},
		{&files.Edit, changes(create("a"), create("./a")), fault.InvalidArguments, "changes[1].path", "duplicate_path"},
		{&files.Edit, changes(create("a"), create("a/b")), fault.InvalidArguments, "changes[1].path", "duplicate_path"},
		{&files.Edit, changes(), fault.InvalidArguments, "changes", ""},
		{&files.Write, args{"path": "a", "content": "x\x00"}, fault.InvalidArguments, "content", ""},
		{&files.Write, args{"path": "a", "content": "x", "overwrite": true, "expected_sha256": "1"}, fault.InvalidArguments, "expected_sha256", ""},
		{&files.Delete, args{"paths": []string{}}, fault.InvalidArguments, "paths", ""},
	}
	for path, why := range bad {
		list = append(list,
			refusal{&files.Edit, changes(create("fine"), create(path)), fault.InvalidPath, "changes[1].path", why},
			refusal{&files.Edit, changes(args{"kind": "rename", "path": "a", "to_path": path, "expected_sha256": sha}), fault.InvalidPath, "changes[0].to_path", why},
			refusal{&files.Write, args{"path": path, "content": ""}, fault.InvalidPath, "path", why},
			refusal{&files.Delete, args{"paths": []string{"a", path}}, fault.InvalidPath, "paths[1]", why})
	}
	before := len(e.Commits(id))
	for _, tc := range list {
		tc.a["project"], tc.a["session_id"] = alpha, string(id)
		_, err := e.Call(tc.spec, tc.a)
		f := fault.As(err)
		if f == nil || f.Kind != tc.kind || f.Field != tc.field || f.Reason != tc.why || f.StateChanged || f.Details["session_recorded"] != nil {
			t.Errorf("%s %.80v: %+v, want %s %s (%s)", tc.spec.Name, tc.a, f, tc.kind, tc.field, tc.why)
		}
	}
	if n := len(e.Commits(id)) - before; n != 0 || len(e.Fleet.Starts()) != 0 {
		t.Errorf("%d commits, %d starts", n, len(e.Fleet.Starts()))
	}
}
