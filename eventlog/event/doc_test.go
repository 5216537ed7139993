package event

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const docFile = "../../docs/events.md"

// docs/events.md is made from the types and their comments; a stale one fails.
func TestEventsDocument(t *testing.T) {
	if *update {
		for _, name := range Names() {
			writeMissing(t, name)
		}
	}
	want := renderDocument(t)
	if *update {
		if err := os.MkdirAll(filepath.Dir(docFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(docFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/events.md is stale: run go generate ./eventlog/event")
	}
}

// source holds the comments of the package's types and fields.
type source struct {
	types  map[string]string            // by type name
	fields map[string]map[string]string // by type and field name
}

func parseSource(t *testing.T) source {
	t.Helper()
	s := source{map[string]string{}, map[string]map[string]string{}}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, spec := range d.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					s.add(ts, d.Doc)
				}
			}
			return true
		})
	}
	return s
}

func (s source) add(ts *ast.TypeSpec, outer *ast.CommentGroup) {
	doc := ts.Doc
	if doc == nil {
		doc = outer
	}
	s.types[ts.Name.Name] = oneLine(doc)
	st, ok := ts.Type.(*ast.StructType)
	if !ok {
		return
	}
	m := map[string]string{}
	for _, f := range st.Fields.List {
		c := f.Comment
		if f.Doc != nil {
			c = f.Doc
		}
		for _, n := range f.Names {
			m[n.Name] = oneLine(c)
		}
	}
	s.fields[ts.Name.Name] = m
}

func oneLine(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(c.Text()), " "), "|", "\\|")
}

func renderDocument(t *testing.T) []byte {
	t.Helper()
	src := parseSource(t)
	var b bytes.Buffer
	b.WriteString(docHead)
	nested := map[string]reflect.Type{}
	for _, name := range Names() {
		v, _ := New(name)
		typ := reflect.TypeOf(v).Elem()
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", name, sentence(src.types[typ.Name()], typ.Name()))
		table(&b, src, typ, nested)
		for _, file := range sortedKeys(goldens(t, name)) {
			fmt.Fprintf(&b, "\nExample: [`%s`](../eventlog/event/%s)\n", filepath.Base(file), filepath.ToSlash(file))
		}
	}
	b.WriteString("\n# Parts\n")
	for done := map[string]bool{}; len(done) < len(nested); {
		for _, n := range sortedKeys(nested) {
			if done[n] {
				continue
			}
			done[n] = true
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", n, sentence(src.types[n], n))
			table(&b, src, nested[n], nested)
		}
	}
	return b.Bytes()
}

const docHead = `# Events

Made from the types in ` + "`eventlog/event`" + ` by ` + "`go generate ./eventlog/event`" + `; do not edit.

What the log stores: each commit holds one or more of these, all or none. Names and fields are
append-only. A changed meaning is a new name. The envelope around them is in ` + "`eventlog/event/commit.go`" + `.
`

// sentence drops the type's own name from the front of its comment.
func sentence(doc, name string) string {
	rest, ok := strings.CutPrefix(doc, name+" ")
	if !ok || rest == "" {
		return doc
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

func table(b *bytes.Buffer, src source, typ reflect.Type, nested map[string]reflect.Type) {
	if typ.NumField() == 0 {
		b.WriteString("\nNo fields.\n")
		return
	}
	b.WriteString("\n| field | type | |\n|---|---|---|\n")
	for i := range typ.NumField() {
		f := typ.Field(i)
		_, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		note := src.fields[typ.Name()][f.Name]
		if opts != "" {
			note = strings.TrimSpace("optional. " + note)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", jsonName(f), typeName(f.Type, nested), note)
	}
}

func typeName(t reflect.Type, nested map[string]reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem(), nested)
	case reflect.Slice:
		return "list of " + typeName(t.Elem(), nested)
	case reflect.Struct:
		nested[t.Name()] = t
		return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Bool:
		return "boolean"
	}
	if t.Name() != "string" {
		return "string (" + t.Name() + ")"
	}
	return "string"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
