package gitops

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"webcodex/runner/wire"
)

func sources(t *testing.T, r *repo) (agents, claude wire.InstructionSource) {
	t.Helper()
	got := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{Instructions: true}).Instructions
	if got == nil || len(got.Sources) != 2 || got.Sources[0].Path != "AGENTS.md" || got.Sources[1].Path != "CLAUDE.md" {
		t.Fatalf("%+v", got)
	}
	return got.Sources[0], got.Sources[1]
}

// Instruction files are named and fingerprinted as they are at each observation, and only
// regular files within the Project.
//
// Covers: STA-16
func TestInstructionFiles(t *testing.T) {
	r := newRepo(t)
	want := func(name string, got wire.InstructionSource, status string, bytes int64, hashed bool) {
		t.Helper()
		if got.Status != status || got.Bytes != bytes || (got.SHA256 != "") != hashed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	agents, claude := sources(t, r)
	want("none", agents, wire.SourceNotFound, 0, false)
	want("none", claude, wire.SourceNotFound, 0, false)
	r.write("AGENTS.md", "do this\n")
	agents, _ = sources(t, r)
	want("written", agents, wire.SourceLoaded, 8, true)
	if agents.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte("do this\n"))) {
		t.Errorf("%+v", agents)
	}
	r.write("AGENTS.md", "do that\n")
	if again, _ := sources(t, r); again.Status != wire.SourceLoaded || again.SHA256 == agents.SHA256 {
		t.Errorf("after a change: %+v", again)
	}
	for _, tc := range []struct {
		name   string
		make   func(path string) error
		status string
		bytes  int64
		hashed bool
	}{
		{"a link that leads out", func(p string) error { return os.Symlink("/etc/passwd", p) }, wire.SourceOutside, 0, false},
		{"a link up and out", func(p string) error { return os.Symlink("../../../../etc/passwd", p) }, wire.SourceOutside, 0, false},
		{"a link inside", func(p string) error { return os.Symlink("AGENTS.md", p) }, wire.SourceLoaded, 8, true},
		{"a link to nothing", func(p string) error { return os.Symlink("gone", p) }, wire.SourceUnreadable, 0, false},
		{"a directory", func(p string) error { return os.Mkdir(p, 0o755) }, wire.SourceNotRegular, 0, false},
		{"a FIFO", func(p string) error { return syscall.Mkfifo(p, 0o644) }, wire.SourceNotRegular, 0, false},
		{"as large as may be", func(p string) error { return os.WriteFile(p, make([]byte, maxInstructBytes), 0o644) }, wire.SourceLoaded, maxInstructBytes, true},
		{"too large", func(p string) error { return os.WriteFile(p, make([]byte, maxInstructBytes+1), 0o644) }, wire.SourceTooLarge, maxInstructBytes + 1, false},
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o644) }, wire.SourceLoaded, 0, true},
	} {
		path := filepath.Join(r.dir, "CLAUDE.md")
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := tc.make(path); err != nil {
			t.Fatal(err)
		}
		_, claude = sources(t, r)
		want(tc.name, claude, tc.status, tc.bytes, tc.hashed)
	}
}

// Only the root is looked at, and an answer holds no text.
//
// Covers: STA-14
func TestInstructionTextStaysOut(t *testing.T) {
	r := newRepo(t)
	r.write("AGENTS.md", "MARKER_OF_THE_BODY\n")
	if err := os.Mkdir(filepath.Join(r.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("sub/AGENTS.md", "MARKER_OF_THE_BODY\n")
	out := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{Instructions: true})
	if s := fmt.Sprintf("%+v %+v", out, *out.Instructions); strings.Contains(s, "MARKER") || strings.Contains(s, "sub/") {
		t.Error(s)
	}
	if out := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{}); out.Instructions != nil {
		t.Errorf("looked although nobody asked: %+v", out.Instructions)
	}
}
