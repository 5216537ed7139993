package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "webcodex"

func TestEveryPackageIsOnTheMap(t *testing.T) {
	pkgs := tree(t).packages
	for path, p := range pkgs {
		if _, ok := importMap[path]; !ok {
			t.Errorf("%s (%s) is not on the import map: say in map_test.go why it is there and what it may import", path, p.files[0].name)
		}
	}
	for path, e := range importMap {
		if pkgs[path] == nil {
			t.Errorf("%s is on the import map and not in the tree", path)
		}
		if e.why == "" {
			t.Errorf("%s: the map does not say why it is there", path)
		}
	}
}

func TestImportsPointOneWay(t *testing.T) {
	for path, p := range tree(t).packages {
		may := slices.Concat(importMap[path].may, leaves)
		for _, f := range p.files {
			if f.test {
				continue
			}
			for _, imp := range f.imports() {
				ours, ok := strings.CutPrefix(imp, module+"/")
				if ok && !matches(may, ours) {
					t.Errorf("%s imports %s, which %s may not", f.name, ours, path)
				}
			}
		}
	}
}

func TestLibrariesStayWhereTheyBelong(t *testing.T) {
	for path, p := range tree(t).packages {
		for _, f := range p.files {
			for _, imp := range f.imports() {
				for _, l := range libraries {
					if (imp == l.module || strings.HasPrefix(imp, l.module+"/")) && !matches(l.may, path) {
						t.Errorf("%s imports %s: %s", f.name, imp, l.why)
					}
				}
			}
		}
	}
}

// A Runner on another machine carries what it executes with, not the server's log.
func TestRunnerDoesNotPullInTheServer(t *testing.T) {
	args := []string{"list", "-deps"}
	for path := range tree(t).packages {
		if path == "runner" || strings.HasPrefix(path, "runner/") && path != "runner/link/server" {
			args = append(args, module+"/"+path)
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/runner") {
		t.Fatalf("go list does not name the runner: %s", out)
	}
	for _, d := range deps {
		if d == module+"/eventlog" || strings.HasPrefix(d, "github.com/nats-io/nats-server") {
			t.Errorf("the Runner pulls in %s", d)
		}
	}
}

func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if p == "..." || p == path {
			return true
		}
		base, ok := strings.CutSuffix(p, "/...")
		return ok && strings.HasPrefix(path, base+"/")
	})
}
