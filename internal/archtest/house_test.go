package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds of the house.
const (
	maxLines  = 500 // of a Go file
	maxCovers = 8   // requirement ids a test may claim
)

func TestFilesAreShort(t *testing.T) {
	for _, p := range tree(t).packages {
		for _, f := range p.files {
			if f.lines > maxLines {
				t.Errorf("%s has %d lines; split it at a border of meaning (at most %d)", f.name, f.lines, maxLines)
			}
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	for dir, p := range tree(t).packages {
		comments := 0
		for _, f := range p.files {
			if !f.test && f.ast.Doc != nil {
				comments++
			}
			if f.test && f.ast.Doc != nil && onlyTests(p) {
				comments++
			}
		}
		if comments != 1 {
			t.Errorf("%s has %d package comments, want one", dir, comments)
		}
	}
}

func onlyTests(p *pkg) bool {
	return !slices.ContainsFunc(p.files, func(f goFile) bool { return !f.test })
}

// vague names say nothing about what a package is for, so that anything gathers in it.
var vague = []string{"util", "utils", "common", "types", "helpers", "misc", "base", "shared", "lib"}

func TestPackagesAreNamedAfterWhatTheyHold(t *testing.T) {
	for dir := range tree(t).packages {
		if slices.Contains(vague, path.Base(dir)) {
			t.Errorf("%s: name the package after what it holds", dir)
		}
	}
}

func TestExportedNamesAreExplained(t *testing.T) {
	for _, p := range tree(t).packages {
		for _, f := range p.files {
			if f.test || f.ast.Name.Name == "main" {
				continue
			}
			for _, d := range f.ast.Decls {
				for _, n := range unexplained(d) {
					t.Errorf("%s: %s is exported without a doc comment", f.at(n), n.Name)
				}
			}
		}
	}
}

// unexplained gives the exported names of a declaration that have no comment: neither their
// own, nor one on the group, nor one beside them on the line.
func unexplained(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && !promised(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Doc != nil {
			return nil
		}
		var out []*ast.Ident
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
					out = append(out, s.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if s.Doc == nil && s.Comment == nil && n.IsExported() {
						out = append(out, n)
					}
				}
			}
		}
		return out
	}
	return nil
}

// promised are methods whose meaning is given by an interface everybody knows, and methods of
// types that nobody outside sees.
func promised(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return false
	}
	recv := d.Recv.List[0].Type
	if s, ok := recv.(*ast.StarExpr); ok {
		recv = s.X
	}
	if x, ok := recv.(*ast.IndexExpr); ok {
		recv = x.X
	}
	if id, ok := recv.(*ast.Ident); ok && !id.IsExported() {
		return true
	}
	return slices.Contains([]string{
		"Error", "Unwrap", "Is", "As", "String", "GoString", "Close", "Len", "Less", "Swap",
		"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "Read", "Write", "ServeHTTP",
	}, d.Name.Name)
}

// foreign are texts that must not be in any file: paths of somebody's machine, hosts of
// registries. They are written in pieces so that this file holds none itself.
var foreign = []*regexp.Regexp{
	regexp.MustCompile(`/wo` + `rk/(main|shared|[a-z]+/)`),
	regexp.MustCompile(`/ro` + `ot/(go|\.cache|\.npm)`),
	regexp.MustCompile(`registry\.npm` + `js\.org|proxy\.golang` + `\.org|/artifac` + `tory/`),
}

func TestNoPathsOfAMachine(t *testing.T) {
	for _, f := range tree(t).texts {
		for _, re := range foreign {
			if m := re.FindString(f.body); m != "" {
				t.Errorf("%s holds %q, which means something on one machine only", f.name, m)
			}
		}
	}
}

var (
	requirement = regexp.MustCompile(`[A-Z]{3,4}-[0-9]{2,3}`)
	covers      = regexp.MustCompile(`Covers:(.*)`)
	coversList  = regexp.MustCompile(`^ [A-Z]{3,4}-[0-9]{2,3}(, [A-Z]{3,4}-[0-9]{2,3})*$`)
)

func TestCoversTagsAreReadable(t *testing.T) {
	for _, p := range tree(t).packages {
		for _, f := range p.files {
			docs := map[*ast.CommentGroup]bool{}
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && f.test && isTest(fn.Name.Name) && fn.Doc != nil {
					docs[fn.Doc] = true
					checkCovers(t, f, fn)
				}
			}
			for _, c := range f.ast.Comments {
				if covers.MatchString(c.Text()) && !docs[c] && requirement.MatchString(c.Text()) {
					t.Errorf("%s: a Covers tag belongs right above a test", f.at(c))
				}
			}
		}
	}
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")
}

func checkCovers(t *testing.T, f goFile, fn *ast.FuncDecl) {
	ids := map[string]bool{}
	for _, line := range strings.Split(fn.Doc.Text(), "\n") {
		m := covers.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if !coversList.MatchString(m[1]) {
			t.Errorf("%s: write \"Covers: ABC-01, DEF-02\" and nothing else on the line, not %q", f.at(fn), line)
		}
		for _, id := range requirement.FindAllString(m[1], -1) {
			ids[id] = true
		}
	}
	if len(ids) > maxCovers {
		t.Errorf("%s: %s claims %d requirements; a test of %d or fewer says what broke", f.at(fn), fn.Name.Name, len(ids), maxCovers)
	}
}

var link = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)]*)?\)`)

func TestLinksBetweenDocumentsHold(t *testing.T) {
	s := tree(t)
	there := map[string]bool{".": true}
	for _, name := range s.names {
		for ; name != "."; name = path.Dir(name) {
			there[name] = true
		}
	}
	for _, f := range s.texts {
		if !strings.HasSuffix(f.name, ".md") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(f.body, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if to := path.Join(path.Dir(f.name), m[1]); !there[to] {
				t.Errorf("%s links to %s, which is not there", f.name, m[1])
			}
		}
	}
}
