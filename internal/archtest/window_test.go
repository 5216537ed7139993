package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// readers of a caller's window: the pipeline that carries it, and what stands beside answers.
// No tool that works on a Session, a Project or a file may look at it.
var readers = []string{"commands/call", "commands/peer", "commands/attention", "commands/material"}

// Covers: WIN-05, WIN-06
func TestOnlyWhatStandsBesideAnswersReadsWindows(t *testing.T) {
	seen := map[string]bool{}
	for path, p := range tree(t).packages {
		if !strings.HasPrefix(path, "commands/") || strings.HasPrefix(path, "commands/internal/") {
			continue
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Window" || s.Sel.Name == "Windows") {
					seen[path] = true
					if !slices.Contains(readers, path) {
						t.Errorf("%s reads the caller's window", f.name)
					}
				}
				return true
			})
		}
	}
	if !seen["commands/peer"] || !seen["commands/attention"] {
		t.Errorf("the readers were not found: %v", seen)
	}
}

// analysts of what became of a peer's message: where the facts are kept, and what shows them beside
// the message. Whatever judges progress, attention or a completion does not know of them.
var analysts = []string{"projections/window", "commands/peer"}

// Covers: WIN-16, WIN-17
func TestFactsOfProjectionDecideNothing(t *testing.T) {
	seen := 0
	for path, p := range tree(t).packages {
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"FirstProjected", "LastProjected", "Projections"}, s.Sel.Name) {
					if seen++; !slices.Contains(analysts, path) {
						t.Errorf("%s reads %s", f.name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if seen == 0 {
		t.Error("the facts were not found")
	}
}
