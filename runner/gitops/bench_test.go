package gitops

import (
	"fmt"
	"os/exec"
	"testing"

	"webcodex/runner/wire"
)

// BenchmarkGitStatus compares a status by way of the op, with everything that keeps a hostile
// repository quiet, with plain git.
func BenchmarkGitStatus(b *testing.B) {
	for _, files := range []int{10, 50_000} {
		r := benchRepo(b, files)
		b.Run(fmt.Sprintf("op/%d", files), func(b *testing.B) {
			for b.Loop() {
				if _, err := gitStatus(b.Context(), r.p, wire.GitStatusIn{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("git/%d", files), func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command("git", "status", "--porcelain=v2", "-z", "--branch", "-uall")
				cmd.Dir = r.dir
				if _, err := cmd.Output(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchRepo(b *testing.B, files int) *repo {
	b.Setenv("HOME", b.TempDir())
	r := newRepoIn(b, b.TempDir())
	for i := range files {
		r.write(fmt.Sprintf("dir%03d/file%05d", i/500, i), "x\n")
	}
	r.commit("base")
	r.write("dir000/file00000", "y\n")
	return r
}
