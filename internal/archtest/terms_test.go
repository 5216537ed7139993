package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	auditSession = regexp.MustCompile(`(?i)\b(action[- ])?audit[- ]session`)
	lowSession   = regexp.MustCompile(`\bsessions?\b`)
	spaces       = regexp.MustCompile(`\s+`)
	// inCode is what stands in code marks, and names that hold the word.
	inCode = regexp.MustCompile("`[^`]*`|webcodex sessions|MCP sessions?|an? era with sessions|sessions? of a transport")
)

// Two systems are called sessions: a Workflow Session, Session for short, and an Action Audit
// Session, which is not part of this program. What a model, a host or a person reads names the
// one it means; a session in small letters is one of the MCP transport.
//
// Covers: SES-01
func TestSessionsAreNamedByTheirKind(t *testing.T) {
	s := tree(t)
	for _, x := range s.texts {
		for _, m := range auditSession.FindAllString(x.body, -1) {
			if strings.HasPrefix(x.name, "internal/archtest/") {
				continue
			}
			if m != "Action Audit Session" {
				t.Errorf("%s says %q: an Action Audit Session is named in full", x.name, m)
			}
		}
	}
	if terms := s.text(t, "docs/architecture.md"); !strings.Contains(terms, "**Workflow Session**") || !strings.Contains(terms, "Action Audit Session") {
		t.Error("docs/architecture.md does not tell the two kinds apart")
	}
	for _, doc := range []string{"README.md", "docs/architecture.md", "docs/contract.md"} {
		if first, _, _ := strings.Cut(spaces.ReplaceAllString(s.text(t, doc), " "), "Session"); !strings.HasSuffix(strings.Trim(first, "*"), "Workflow ") {
			t.Errorf("%s speaks of a Session before it says which kind", doc)
		}
	}
	sentences := 0
	for dir, p := range s.packages {
		for _, f := range p.files {
			if f.test || strings.HasPrefix(dir, "mcp/internal") {
				continue
			}
			for n, sentence := range shown(f.ast, dir == "mcp") {
				sentences++
				if lowSession.MatchString(inCode.ReplaceAllString(sentence, "")) {
					t.Errorf("%s: %q: write Session where a Workflow Session is meant, MCP session for the transport's", f.at(n), sentence)
				}
			}
		}
	}
	if sentences < 300 {
		t.Errorf("only %d sentences were found", sentences)
	}
}

// shown are the sentences of a file that leave the program: refusals, and in mcp the texts of
// the catalogue too.
func shown(f *ast.File, catalogue bool) map[ast.Node]string {
	out := map[ast.Node]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := callee(n)
			if slices.Contains([]string{"New", "Wrap", "WithNext", "refuse"}, name) || catalogue && slices.Contains([]string{"Str", "Enum", "Bool", "Int", "Knob", "List"}, name) {
				for _, a := range n.Args {
					if text, ok := literal(a); ok && strings.Contains(text, " ") {
						out[a] = text
					}
				}
			}
		case *ast.KeyValueExpr:
			if k, ok := n.Key.(*ast.Ident); ok && catalogue && (k.Name == "Title" || k.Name == "Description") {
				if text, ok := literal(n.Value); ok {
					out[n] = text
				}
			}
		}
		return true
	})
	return out
}

func callee(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// literal is a string, put together where it stands in pieces.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, okA := literal(e.X)
		b, okB := literal(e.Y)
		return a + b, okA && okB && e.Op == token.ADD
	}
	return "", false
}

// Kinds of Workflow Sessions are made only where Workflow Sessions are: no other plane answers
// with one.
//
// Covers: SES-55
func TestKindsOfSessionsBelongToSessions(t *testing.T) {
	kinds := []string{"UnknownSessionID", "UnknownSessionRef", "SessionExpired", "SessionClosed", "UpgradeDenied", "SessionGuardDenied",
		"SessionProjectMismatch", "SessionAuthorityDenied"}
	may := []string{"commands/call", "commands/session", "commands/board", "commands/external", "projections/session"}
	// The handoff as a resource, the replay, exit codes and a carried Session that has gone are
	// about Workflow Sessions too.
	read := map[string][]string{"cmd/webcodex": {"SessionAuthorityDenied", "UnknownSessionID"}, "mcp": {"SessionAuthorityDenied", "UnknownSessionID"},
		"commands/history": {"UnknownSessionID"},
		"internal/fault":   kinds}
	found := map[string]bool{}
	for dir, p := range tree(t).packages {
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if x, isIdent := selectorBase(sel, ok); !isIdent || x != "fault" || !slices.Contains(kinds, sel.Sel.Name) {
					return true
				}
				found[sel.Sel.Name] = true
				if !slices.Contains(may, dir) && !slices.Contains(read[dir], sel.Sel.Name) {
					t.Errorf("%s uses %s, which belongs to Workflow Sessions", f.at(sel), sel.Sel.Name)
				}
				return true
			})
		}
	}
	for _, k := range kinds {
		if !found[k] {
			t.Errorf("no place makes %s", k)
		}
	}
}

func selectorBase(sel *ast.SelectorExpr, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	x, isIdent := sel.X.(*ast.Ident)
	if !isIdent {
		return "", false
	}
	return x.Name, true
}
