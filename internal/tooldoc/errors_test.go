package tooldoc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"webcodex/internal/fault"
)

// docs/errors.md has each error kind once, with the recovery that it has by itself, and no other.
func TestErrorsDocument(t *testing.T) {
	raw, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .+ \\| `(\\w+)` \\|$").FindAllStringSubmatch(string(raw), -1) {
		if m[1] == "error_kind" {
			continue
		}
		if told[m[1]] != "" {
			t.Errorf("%s stands there twice", m[1])
		}
		told[m[1]] = m[2]
	}
	for _, kind := range kinds(t) {
		if want := string(fault.New(fault.Kind(kind), "").Recovery); told[kind] != want {
			t.Errorf("docs/errors.md says %q of %s, want %q", told[kind], kind, want)
		}
		delete(told, kind)
	}
	for kind := range told {
		t.Errorf("docs/errors.md has %s, which is none", kind)
	}
}

// kinds are the constants of fault.Kind, as its source has them.
func kinds(t *testing.T) (out []string) {
	files, err := filepath.Glob("../fault/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Kind" {
				kind, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, kind)
			}
			return true
		})
	}
	if len(out) < 50 {
		t.Fatalf("only %d kinds were found", len(out))
	}
	return out
}
