package testparse

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"webcodex/runner/wire"
)

// goEvent is one line of go test -json (cmd/test2json) and of the build output in it.
type goEvent struct {
	Action      string
	Package     string
	Test        string
	Output      string
	ImportPath  string
	FailedBuild string
}

type goTest struct{ pkg, name string }

// goRun is what is remembered of a test that has not ended.
type goRun struct {
	out  excerpt
	file string
	line int
	// Of a panic: its stack is being read, it is go test's time limit, the last frame's
	// function is the test's.
	stack, timeout, within bool
}

type goParser struct {
	lines  lines
	report wire.TestReport
	open   map[goTest]*goRun
	// parents had a failing subtest: their own failure says nothing new.
	parents map[goTest]bool
	// packages holds output outside of tests, for failures that no test explains.
	packages map[string]*excerpt
	failed   map[string]bool // packages with a failed test or build
	building *wire.Diagnostic
}

func newGo() *goParser {
	p := &goParser{report: wire.TestReport{Parser: GoJSON, Version: Version}, open: map[goTest]*goRun{},
		parents: map[goTest]bool{}, packages: map[string]*excerpt{}, failed: map[string]bool{}}
	p.lines.each = p.event
	return p
}

// Write takes the next output.
func (p *goParser) Write(b []byte) { p.lines.write(b) }

// Report is what was seen so far; the stream has ended.
func (p *goParser) Report() wire.TestReport {
	p.lines.end()
	p.endDiagnostic()
	return p.report
}

func (p *goParser) event(line []byte) {
	if !bytes.HasPrefix(line, []byte("{")) {
		return
	}
	var e goEvent
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		return
	}
	p.report.Detected = true
	switch {
	case strings.HasPrefix(e.Action, "build-"):
		p.build(e)
	case e.Test == "":
		p.inPackage(e)
	default:
		p.inTest(goTest{e.Package, e.Test}, e)
	}
}

func (p *goParser) inTest(t goTest, e goEvent) {
	switch e.Action {
	case "run":
		if len(p.open) < maxOpen {
			p.open[t] = &goRun{}
		}
	case "output":
		if r := p.open[t]; r != nil {
			r.output(t.name, e.Output)
		}
	case "pass":
		p.report.Run++
		p.report.Passed++
		delete(p.open, t)
	case "skip":
		p.report.Skipped++
		delete(p.open, t)
	case "fail":
		p.report.Run++
		p.report.Failed++
		p.fail(t)
		delete(p.open, t)
	}
}

func (p *goParser) fail(t goTest) {
	p.failed[t.pkg] = true
	if i := strings.LastIndexByte(t.name, '/'); i > 0 && len(p.parents) < maxOpen {
		p.parents[goTest{t.pkg, t.name[:i]}] = true
	}
	r := p.open[t]
	if r == nil {
		r = &goRun{}
	}
	if p.parents[t] && r.line == 0 {
		delete(p.parents, t)
		return
	}
	if len(p.report.FailedTests) < maxFailed {
		p.report.FailedTests = append(p.report.FailedTests, wire.FailedTest{Name: clip(t.name, maxNameChars),
			Package: clip(t.pkg, maxFileChars), File: r.file, Line: r.line, Message: r.out.String()})
	}
}

// panicked ends the tests that took their package down and so have no end of their own, like
// one that ran into go test's time limit. Others that were waiting are neither.
func (p *goParser) panicked(pkg string) {
	var ended []goTest
	for t := range p.open {
		if t.pkg == pkg {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(ended, func(a, b goTest) int { return strings.Compare(a.name, b.name) })
	for _, t := range ended {
		if p.open[t].out.frozen {
			p.report.Run++
			p.report.Failed++
			p.fail(t)
		}
		delete(p.open, t)
	}
}

// inPackage handles what no test owns: the end of a package, and what it printed.
func (p *goParser) inPackage(e goEvent) {
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "FAIL") || strings.HasPrefix(e.Output, "ok  ") || len(p.packages) >= maxOpen {
			return
		}
		x := p.packages[e.Package]
		if x == nil {
			x = &excerpt{}
			p.packages[e.Package] = x
		}
		x.add(e.Output)
	case "fail":
		p.panicked(e.Package)
		// A build that failed has said so itself; a test that failed is listed.
		if e.FailedBuild == "" && !p.failed[e.Package] {
			message := "the package failed without a failing test"
			if x := p.packages[e.Package]; x != nil && x.String() != "" {
				message = x.String()
			}
			addDiagnostic(&p.report, wire.Diagnostic{Kind: KindPackage, File: clip(e.Package, maxFileChars), Message: message})
		}
		fallthrough
	case "pass", "skip":
		delete(p.packages, e.Package)
		delete(p.failed, e.Package)
	}
}

// Kinds of diagnostics.
const (
	KindCompile = "compile_error"  // a place in a source file that does not build
	KindSetup   = "setup_error"    // the build could not begin
	KindPackage = "package_failed" // a test program failed outside of its tests
)

// sourceLine is a compiler's or vet's "file:line[:column]: message".
var sourceLine = regexp.MustCompile(`^(?:vet: )?(.+?\.[A-Za-z]+):(\d+)(?::\d+)?: (.*)$`)

func (p *goParser) build(e goEvent) {
	if e.Action != "build-output" {
		p.endDiagnostic()
		return
	}
	text := strings.TrimRight(e.Output, "\r\n")
	switch m := sourceLine.FindStringSubmatch(text); {
	case text == "" || strings.HasPrefix(text, "#"):
		p.endDiagnostic()
	case strings.HasPrefix(text, "\t") && p.building != nil:
		p.building.Message += "\n" + strings.TrimSpace(text)
	case m != nil:
		p.endDiagnostic()
		n, _ := strconv.Atoi(m[2])
		p.building = &wire.Diagnostic{Kind: KindCompile, File: file(m[1]), Line: n, Message: m[3]}
	default:
		p.endDiagnostic()
		p.building = &wire.Diagnostic{Kind: KindSetup, Message: text}
	}
}

func (p *goParser) endDiagnostic() {
	if p.building != nil {
		p.building.Message = clip(p.building.Message, maxMessageChars)
		addDiagnostic(&p.report, *p.building)
		p.building = nil
	}
}

var (
	// logLine is what t.Log, t.Error and the like print.
	logLine = regexp.MustCompile(`^ +([^\s:]+\.go):(\d+): `)
	// frameLine is a stack frame's place, stackLine begins a goroutine's frames.
	frameLine = regexp.MustCompile(`^\t(\S.*\.go):(\d+)(?: \+0x[0-9a-f]+)?$`)
	stackLine = regexp.MustCompile(`^goroutine \d+ .*\[`)
	// standard is where Go's own packages lie.
	standard = regexp.MustCompile(`/(?:go|go\d[^/]*|golang|libexec|toolchain@[^/]*)/src/|/src/(?:runtime|testing)/`)
)

// output keeps what explains a failure: the last lines logged, or a panic without its stack.
func (r *goRun) output(name, text string) {
	line := strings.TrimRight(text, "\r\n")
	trimmed := strings.TrimLeft(line, " ")
	for _, frame := range []string{"=== ", "--- PASS", "--- FAIL", "--- SKIP"} {
		if strings.HasPrefix(trimmed, frame) {
			return
		}
	}
	if !r.out.frozen && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
		r.out, r.file, r.line = excerpt{frozen: true}, "", 0
		r.timeout = strings.HasPrefix(line, "panic: test timed out")
	}
	if r.stack = r.stack || r.out.frozen && stackLine.MatchString(line); r.stack {
		r.frame(name, line)
		return
	}
	r.out.add(text)
	if m := logLine.FindStringSubmatch(line); m != nil && !r.out.frozen {
		r.file, r.line = file(m[1]), atoi(m[2])
	}
}

// frame finds where a panic came from: the first place that is not Go's own; where go test
// ended the test for its time, the first one in the test itself.
func (r *goRun) frame(name, line string) {
	m := frameLine.FindStringSubmatch(line)
	if m == nil {
		top, _, _ := strings.Cut(name, "/")
		r.within = strings.Contains(line, "."+top+"(") || strings.Contains(line, "."+top+".")
		return
	}
	if r.line == 0 && !standard.MatchString(m[1]) && (r.within || !r.timeout) {
		r.file, r.line = file(m[1]), atoi(m[2])
	}
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// excerpt keeps the end of a text; frozen, its beginning.
type excerpt struct {
	b      []byte
	frozen bool
}

const maxExcerpt = 4 * maxMessageChars

func (x *excerpt) add(s string) {
	if x.frozen {
		x.b = append(x.b, s[:min(len(s), maxExcerpt-len(x.b))]...)
		return
	}
	if x.b = append(x.b, s...); len(x.b) > 2*maxExcerpt {
		x.b = append(x.b[:0], x.b[len(x.b)-maxExcerpt:]...)
	}
}

// String is at most maxMessageChars characters.
func (x *excerpt) String() string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(x.b), "\uFFFD"))
	if x.frozen {
		return clip(s, maxMessageChars)
	}
	return lastChars(s, maxMessageChars)
}

func lastChars(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return "…" + string(r[len(r)-most:])
}
