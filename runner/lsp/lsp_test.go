package lsp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/leak"
	"webcodex/runner"
	"webcodex/runner/wire"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// world is a Go module with a real gopls.
type world struct {
	t   *testing.T
	dir string
	s   *Service
	p   *runner.Project
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "a b's module"), s: New(t.TempDir())}
	for name, text := range files {
		w.write(name, text)
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	t.Cleanup(w.s.Close)
	w.p = &runner.Project{ID: event.ProjectID("p-00000001"), Name: "module", Path: w.dir, Root: root}
	return w
}

func withGopls(t *testing.T, files map[string]string) *world {
	t.Helper()
	if kinds[0].find() == "" {
		t.Skip("gopls is not installed")
	}
	return newWorld(t, files)
}

func (w *world) write(name, text string) {
	w.t.Helper()
	at := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func must[Out any](t *testing.T, out Out, err error) Out {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%v)", err, fault.As(err).Unwrap())
	}
	return out
}

func refused[Out any](t *testing.T, kind fault.Kind, _ Out, err error) {
	t.Helper()
	if fault.KindOf(err) != kind {
		t.Errorf("%v, not %s", err, kind)
	}
}

var module = map[string]string{
	"go.mod":     "module example.org/m\n\ngo 1.24\n",
	"add/add.go": "// Package add adds.\npackage add\n\n// Sum is a + b; 𝔸 is outside of the BMP.\nfunc Sum(a, b int) int { return a + b }\n",
	"main.go":    "package main\n\nimport \"example.org/m/add\"\n\nfunc main() { 𝔸 := add.Sum(1, 2); println(𝔸) }\n",
}

// column of a text in a line, in code points from 1.
func column(line, text string) int { return len([]rune(line[:strings.Index(line, text)])) + 1 }

// What each tool tells is what gopls finds in the files, in lines and columns of code points, in a
// directory with a space and a quote in its name.
func TestAsksAServer(t *testing.T) {
	t.Parallel()
	w := withGopls(t, module)
	ctx := t.Context()
	call := "func main() { 𝔸 := add.Sum(1, 2); println(𝔸) }"
	at := wire.NavigateIn{Path: "main.go", Line: 5, Column: column(call, "Sum")}

	def := must2(t)(w.s.definition(ctx, w.p, at))
	if len(def.Locations) != 1 || def.Locations[0].Path != "add/add.go" || def.Locations[0].Line != 5 || def.Locations[0].Column != 6 ||
		!strings.HasPrefix(def.Locations[0].Preview, "func Sum") || def.Provider.Server != "gopls" || def.Provider.SHA256 == "" {
		t.Errorf("%+v", def)
	}
	refs := must2(t)(w.s.references(ctx, w.p, wire.NavigateIn{Path: "add/add.go", Line: 5, Column: 6, IncludeDeclaration: true}))
	if refs.Total != 2 || refs.Returned != 2 {
		t.Errorf("%+v", refs)
	}
	if refs := must2(t)(w.s.references(ctx, w.p, wire.NavigateIn{Path: "add/add.go", Line: 5, Column: 6, Limit: 1, IncludeDeclaration: true})); !refs.Truncated || refs.Returned != 1 || refs.Total != 2 {
		t.Errorf("%+v", refs)
	}
	h := must3(t)(w.s.hover(ctx, w.p, at))
	if h.Hover == nil || !strings.Contains(h.Hover.Value, "Sum is a + b") {
		t.Errorf("%+v", h)
	}
	// After a character of two UTF-16 units the columns are still those of code points.
	last := must3(t)(w.s.hover(ctx, w.p, wire.NavigateIn{Path: "main.go", Line: 5, Column: column(call, "println(𝔸") + len("println(")}))
	if last.Hover == nil || last.Hover.Span == nil || last.Hover.Span.Column != column(call, "println(")+len("println(") || !strings.Contains(last.Hover.Value, "var 𝔸 int") {
		t.Errorf("%+v %+v", last.Hover, last)
	}
	syms, err := w.s.documentSymbols(ctx, w.p, wire.NavigateIn{Path: "add/add.go"})
	if must(t, syms, err); len(syms.Symbols) != 1 || syms.Symbols[0].Name != "Sum" || syms.Symbols[0].Kind != "function" || syms.Symbols[0].Line != 5 {
		t.Errorf("%+v", syms)
	}
	found, err := w.s.workspaceSymbols(ctx, w.p, wire.NavigateIn{Query: "Sum"})
	if must(t, found, err); len(found.Symbols) == 0 || found.Symbols[0].Path != "add/add.go" {
		t.Errorf("%+v", found)
	}
	calls, err := w.s.callHierarchy(ctx, w.p, wire.NavigateIn{Path: "add/add.go", Line: 5, Column: 6, Direction: wire.CallsIncoming})
	if must(t, calls, err); len(calls.Roots) != 1 || len(calls.Edges) != 1 || calls.Edges[0].From.Name != "main" || len(calls.Edges[0].Calls) != 1 {
		t.Errorf("%+v", calls)
	}
	status, err := w.s.status(ctx, w.p, struct{}{})
	if must(t, status, err); len(status.Languages) != 1 || status.Languages[0].Files != 2 || status.Servers[0].State != wire.ServerReady {
		t.Errorf("%+v", status)
	}
}

func must2(t *testing.T) func(wire.PlacesOut, error) wire.PlacesOut {
	return func(o wire.PlacesOut, err error) wire.PlacesOut { t.Helper(); return must(t, o, err) }
}

func must3(t *testing.T) func(wire.HoverOut, error) wire.HoverOut {
	return func(o wire.HoverOut, err error) wire.HoverOut { t.Helper(); return must(t, o, err) }
}

// An answer is of the files as they are at that moment: after an edit, a new file, one that went,
// and an edit of a file that the server was told of before.
//
// Covers: STA-13
func TestTellsTheTruthOfNow(t *testing.T) {
	t.Parallel()
	w := withGopls(t, module)
	ctx := t.Context()
	find := func(query string) int {
		out, err := w.s.workspaceSymbols(ctx, w.p, wire.NavigateIn{Query: query})
		return must(t, out, err).Returned
	}
	check := func(file string) wire.DiagnosticsOut {
		out, err := w.s.diagnostics(ctx, w.p, wire.NavigateIn{Path: file})
		return must(t, out, err)
	}
	if d := check("main.go"); d.Status != wire.DiagnosticsCurrent || d.Clean == nil || !*d.Clean {
		t.Fatalf("%+v", d)
	}
	w.write("add/add.go", "package add\n\nfunc Plus(a, b int) int { return a + b }\n")
	if d := check("main.go"); d.Clean == nil || *d.Clean || d.Errors == 0 || d.Diagnostics[0].Line != 5 {
		t.Errorf("after an edit elsewhere: %+v", d)
	}
	w.write("main.go", "package main\n\nimport \"example.org/m/add\"\n\nfunc main() { println(add.Plus(1, 2)) }\n")
	if d := check("main.go"); d.Clean == nil || !*d.Clean {
		t.Errorf("after an edit here: %+v", d)
	}
	if find("Plus") != 1 || find("Newcomer") != 0 {
		t.Error("an edit does not show")
	}
	w.write("more/more.go", "package more\n\nfunc Newcomer() {}\n")
	if find("Newcomer") != 1 {
		t.Error("a new file does not show")
	}
	if err := os.Remove(filepath.Join(w.dir, "more/more.go")); err != nil {
		t.Fatal(err)
	}
	if find("Newcomer") != 0 {
		t.Error("a removed file still shows")
	}
}

// More new files at once than a server takes notice of make it read the Project anew.
func TestManyNewFiles(t *testing.T) {
	t.Parallel()
	w := withGopls(t, module)
	find := func() int {
		out, err := w.s.workspaceSymbols(t.Context(), w.p, wire.NavigateIn{Query: "Newcomer", Limit: wire.MaxFoundSymbols})
		return must(t, out, err).Returned
	}
	if find() != 0 {
		t.Error("found before it is there")
	}
	for i := range maxNew + 1 {
		w.write(fmt.Sprintf("p%d/new.go", i), fmt.Sprintf("package p%d\n\nfunc Newcomer%d() {}\n", i, i))
	}
	if n := find(); n != maxNew+1 {
		t.Errorf("%d of %d", n, maxNew+1)
	}
}

// What cannot be asked is refused before a server is started.
func TestRefusesWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, module)
	w.write("big.go", "package big\n"+strings.Repeat("// x\n", maxDocument/5+1))
	w.write("binary.go", "package \x00\n")
	w.write("notes.txt", "text\n")
	w.write(".git/config.go", "package git\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(w.dir, "out.go")); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("mkfifo", filepath.Join(w.dir, "pipe.go")).Run(); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]fault.Kind{"big.go": fault.DocumentTooLarge, "binary.go": fault.InvalidPath, "notes.txt": fault.UnsupportedLanguage,
		".git/config.go": fault.InvalidPath, "out.go": fault.InvalidPath, "pipe.go": fault.InvalidPath, "none.go": fault.InvalidPath,
		"../x.go": fault.InvalidPath, "/etc/x.go": fault.InvalidPath, "": fault.InvalidPath} {
		out, err := w.s.hover(t.Context(), w.p, wire.NavigateIn{Path: path, Line: 1, Column: 1})
		refused(t, kind, out, err)
	}
	out, err := w.s.callHierarchy(t.Context(), w.p, wire.NavigateIn{Path: "main.go", Line: 1, Column: 1, Direction: "up"})
	refused(t, fault.InvalidArguments, out, err)
	for _, q := range []string{"", strings.Repeat("x", wire.MaxSymbolQueryChars+1)} {
		out, err := w.s.workspaceSymbols(t.Context(), w.p, wire.NavigateIn{Query: q})
		refused(t, fault.InvalidArguments, out, err)
	}
	if len(w.s.running) != 0 {
		t.Error("a server was started")
	}
}

// A place that the file does not have is refused, at the bound and one past it.
func TestRefusesAPlaceThatIsNot(t *testing.T) {
	t.Parallel()
	w := withGopls(t, module)
	for _, at := range [][2]int{{0, 1}, {1, 0}, {7, 1}, {5, 200}, {wire.MaxLine, wire.MaxColumn}} {
		out, err := w.s.hover(t.Context(), w.p, wire.NavigateIn{Path: "main.go", Line: at[0], Column: at[1]})
		refused(t, fault.InvalidPosition, out, err)
	}
}

// A server that is killed is started again for the next request; one that goes on ending is left
// alone, and so it is said.
func TestAServerThatEnds(t *testing.T) {
	t.Parallel()
	w := withGopls(t, module)
	ask := func() error {
		_, err := w.s.documentSymbols(t.Context(), w.p, wire.NavigateIn{Path: "main.go"})
		return err
	}
	for range failures {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		p := w.only()
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.dead
		w.forgotten()
	}
	if err := ask(); fault.KindOf(err) != fault.LSPServerFailed {
		t.Errorf("%v", err)
	}
	if state, _ := w.s.state(id{w.p.ID, kinds[0]}); state != wire.ServerFailed {
		t.Error(state)
	}
}

func (w *world) only() *provider {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, e := range w.s.running {
		return e.p
	}
	w.t.Fatal("no server runs")
	return nil
}

func (w *world) forgotten() {
	w.t.Helper()
	for range 500 {
		w.s.mu.Lock()
		n := len(w.s.running)
		w.s.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatal("the dead server is still known")
}

// Who gives up is answered at once, and the server is told so and goes on serving others.
func TestARequestCanBeCancelled(t *testing.T) {
	t.Parallel()
	w := withGopls(t, module)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.s.workspaceSymbols(ctx, w.p, wire.NavigateIn{Query: "Sum"}); err == nil {
		t.Error("it was answered")
	}
	out, err := w.s.workspaceSymbols(t.Context(), w.p, wire.NavigateIn{Query: "Sum"})
	if must(t, out, err); out.Returned == 0 {
		t.Errorf("%+v", out)
	}
}

// Leaving a Project ends its servers.
func TestLeavingAProjectEndsItsServers(t *testing.T) {
	t.Parallel()
	w := withGopls(t, module)
	if _, err := w.s.documentSymbols(t.Context(), w.p, wire.NavigateIn{Path: "main.go"}); err != nil {
		t.Fatal(err)
	}
	p := w.only()
	w.s.Leave(w.p.ID)
	select {
	case <-p.dead:
	default:
		t.Error("it still runs")
	}
}
