package files

import (
	"os"
	"path/filepath"
	"testing"

	"webcodex/internal/fault"
)

// Apply writes through no link, over no directory and nothing of git's, and one such path keeps all
// others from being changed.
func TestApplyStaysInside(t *testing.T) {
	g := newGround(t)
	g.file("a", "one\n")
	g.file("dir/b", "two\n")
	g.file(".git/config", "x")
	g.must(os.Symlink("../outside", filepath.Join(g.dir, "out")))
	g.must(os.Symlink("dir", filepath.Join(g.dir, "in")))
	before := g.snapshot()
	c := Changer{g.s}
	for path, reason := range map[string]string{"out/secret": reasonSymlinkOutside, "in/b": reasonSymlink, "dir": reasonNotRegular, ".git/config": reasonGitInternal,
		"x/.GIT/y": reasonGitInternal, "../x": reasonOutside, "/x": reasonAbsolute, "a/below": reasonNotDirectory} {
		_, err := c.Apply(t.Context(), g.p, []Wanted{{Path: "a", Content: []byte("changed")}, {Path: path, Content: []byte("x")}})
		if f := fault.As(err); f == nil || f.Kind != fault.InvalidPath || f.Reason != reason {
			t.Errorf("%s: %+v", path, f)
		}
		g.same(before)
	}
	changed, err := c.Apply(t.Context(), g.p, []Wanted{{Path: "a", Content: []byte("changed"), Program: true}, {Path: "in", Gone: true}, {Path: "new/x", Content: []byte("y")}})
	if err != nil || len(changed) != 3 || g.text("a") != "changed" || g.text("new/x") != "y" {
		t.Error(changed, err)
	}
	if info, err := os.Stat(filepath.Join(g.dir, "a")); err != nil || info.Mode()&0o111 != 0o111 {
		t.Error(info.Mode(), err)
	}
}
