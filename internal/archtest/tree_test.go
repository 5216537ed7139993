package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// source is the repository as these tests see it.
type source struct {
	packages map[string]*pkg // by import path below the module
	names    []string        // every file
	texts    []text          // every text file, Go or not
}

type pkg struct {
	files []goFile
}

type goFile struct {
	name  string // slash-separated, from the repository's root
	test  bool
	lines int
	set   *token.FileSet
	ast   *ast.File
}

type text struct {
	name string
	body string
}

func (f goFile) imports() []string {
	out := make([]string, 0, len(f.ast.Imports))
	for _, i := range f.ast.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // the parser has accepted it
		out = append(out, path)
	}
	return out
}

func (f goFile) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)
}

var load = sync.OnceValues(read)

func tree(t *testing.T) *source {
	t.Helper()
	s, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.packages) < 5 || len(s.texts) < 20 {
		t.Fatalf("found %d packages and %d files: this is not the repository", len(s.packages), len(s.texts))
	}
	return s
}

// unread are folders that are not ours or not text.
var unread = []string{".git", "node_modules"}

func read() (*source, error) {
	s := &source{packages: map[string]*pkg{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(unread, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return s.add(filepath.ToSlash(rel), path)
	})
	return s, err
}

func (s *source) add(name, path string) error {
	s.names = append(s.names, name)
	if strings.Contains(name, "/testdata/") { // what tests read is theirs
		return nil
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.IndexByte(string(body[:min(len(body), 8000)]), 0) >= 0 {
		return nil
	}
	s.texts = append(s.texts, text{name, string(body)})
	if !strings.HasSuffix(name, ".go") {
		return nil
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, body, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := "."
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir = name[:i]
	}
	if s.packages[dir] == nil {
		s.packages[dir] = &pkg{}
	}
	s.packages[dir].files = append(s.packages[dir].files, goFile{
		name: name, test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(string(body), "\n"), set: set, ast: parsed,
	})
	return nil
}
