package archtest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	required = regexp.MustCompile(`(?m)^\s*(?:require )?([a-z0-9.-]+\.[a-z]+/\S+) v[0-9]`)
	row      = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// A dependency is a promise to read its releases: docs/dependencies.md says why each is there.
func TestDependenciesAreExplained(t *testing.T) {
	s := tree(t)
	var modules []string
	for _, m := range required.FindAllStringSubmatch(s.text(t, "go.mod"), -1) {
		modules = append(modules, m[1])
	}
	direct := map[string]string{} // module: a file that imports it
	for _, p := range s.packages {
		for _, f := range p.files {
			for _, imp := range f.imports() {
				if m := moduleOf(modules, imp); m != "" {
					direct[m] = f.name
				}
			}
		}
	}
	explained := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(s.text(t, "docs/dependencies.md"), -1) {
		explained[m[1]] = true
		if direct[m[1]] == "" {
			t.Errorf("docs/dependencies.md explains %s, which nothing imports", m[1])
		}
	}
	for m, by := range direct {
		if !explained[m] {
			t.Errorf("%s imports %s: add a line to docs/dependencies.md that says why this one", by, m)
		}
	}
}

func moduleOf(modules []string, imp string) string {
	i := slices.IndexFunc(modules, func(m string) bool { return imp == m || strings.HasPrefix(imp, m+"/") })
	if i < 0 {
		return ""
	}
	return modules[i]
}

func TestDecisionsAreListed(t *testing.T) {
	s := tree(t)
	const dir = "docs/decisions"
	index := s.text(t, dir+"/README.md")
	for _, f := range s.texts {
		if path.Dir(f.name) == dir && path.Base(f.name) != "README.md" && !strings.Contains(index, "("+path.Base(f.name)+")") {
			t.Errorf("%s is not in the list of %s/README.md", f.name, dir)
		}
	}
}

// text is the body of one file of the repository.
func (s *source) text(t *testing.T, name string) string {
	t.Helper()
	for _, f := range s.texts {
		if f.name == name {
			return f.body
		}
	}
	t.Fatalf("there is no %s", name)
	return ""
}
