package files

import (
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func TestWriteFile(t *testing.T) {
	g := newGround(t)
	g.file("a", "old content\n")
	sha := g.sha("a")
	out, f := ask(g, g.s.write, wire.WriteFileIn{Path: "new/b", Content: "x\r\ny\n"})
	if f != nil || !out.Created || out.Overwritten || !out.Changed || g.text("new/b") != "x\r\ny\n" || out.SHA256 != g.sha("new/b") || out.BytesWritten != 5 {
		t.Errorf("%+v %s", out, told(f))
	}
	before := g.snapshot()
	for _, tc := range []struct {
		in     wire.WriteFileIn
		kind   fault.Kind
		reason string
	}{
		{wire.WriteFileIn{Path: "a", Content: "x"}, fault.InvalidPath, reasonExists},
		{wire.WriteFileIn{Path: "a", Content: "x", Overwrite: true}, fault.InvalidArguments, ""},
		{wire.WriteFileIn{Path: "a", Content: "x", Overwrite: true, ExpectedSHA256: strings.Repeat("1", 64)}, fault.EditConflict, ""},
		{wire.WriteFileIn{Path: "a", Content: "x", Overwrite: true, ExpectedPrefix: ptr("new")}, fault.EditConflict, ""},
		{wire.WriteFileIn{Path: "gone", Content: "x", Overwrite: true, ExpectedSHA256: sha}, fault.InvalidPath, reasonNotFound},
		{wire.WriteFileIn{Path: "b", Content: strings.Repeat("x", wire.MaxWriteBytes+1)}, fault.InvalidArguments, ""},
		{wire.WriteFileIn{Path: "b", Content: "a\x00"}, fault.InvalidArguments, ""},
		{wire.WriteFileIn{Path: "a", Content: "x", Overwrite: true, ExpectedSHA256: "short"}, fault.InvalidArguments, ""},
	} {
		_, f := ask(g, g.s.write, tc.in)
		wants(g, f, tc.kind, tc.reason)
	}
	g.same(before)
	out, f = ask(g, g.s.write, wire.WriteFileIn{Path: "a", Content: "old content\n", Overwrite: true, ExpectedSHA256: sha})
	if f != nil || out.Changed || !out.Overwritten {
		t.Errorf("%+v %s", out, told(f))
	}
	out, f = ask(g, g.s.write, wire.WriteFileIn{Path: "a", Content: "new\n", Overwrite: true, ExpectedPrefix: ptr("old con")})
	if f != nil || !out.Changed || out.SHA256Before != sha || g.text("a") != "new\n" {
		t.Errorf("%+v %s", out, told(f))
	}
	out, f = ask(g, g.s.write, wire.WriteFileIn{Path: "a", Content: "newer\n", Overwrite: true, ExpectedSHA256: out.SHA256})
	if f != nil || g.text("a") != "newer\n" {
		t.Errorf("%+v %s", out, told(f))
	}
	noLeftovers(g)
}

func TestDeleteFiles(t *testing.T) {
	g := newGround(t)
	g.file("a", "a\n")
	g.file("d/b", "b\n")
	before := g.snapshot()
	_, f := ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{"a", "d"}})
	wants(g, f, fault.InvalidPath, reasonNotRegular)
	if f.Field != "paths[1]" {
		t.Error(f.Field)
	}
	_, f = ask(g, g.s.remove, wire.DeleteFilesIn{})
	wants(g, f, fault.InvalidArguments, "")
	_, f = ask(g, g.s.remove, wire.DeleteFilesIn{Paths: make([]string, wire.MaxDeletePaths+1)})
	wants(g, f, fault.InvalidArguments, "")
	g.same(before)
	out, f := ask(g, g.s.remove, wire.DeleteFilesIn{Paths: []string{"a", "gone", "no/dir", "./d/b", "d//b"}})
	if f != nil || !slices.Equal(out.Deleted, []string{"a", "d/b"}) || !slices.Equal(out.Missing, []string{"gone", "no/dir"}) {
		t.Errorf("%+v %s", out, told(f))
	}
	if g.exists("a") || g.exists("d/b") || !g.exists("d") {
		t.Error("not as asked for")
	}
	noLeftovers(g)
}
