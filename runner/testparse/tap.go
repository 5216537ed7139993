package testparse

import (
	"fmt"
	"regexp"
	"strings"

	"webcodex/runner/wire"
)

// Kinds of diagnostics of TAP and JUnit.
const (
	KindBailOut = "bail_out"      // a TAP producer gave up
	KindPlan    = "plan_mismatch" // other tests ended than were planned
	KindReport  = "report_broken" // a report could not be read to its end
)

// tapParser reads the Test Anything Protocol, with subtests as node and tape indent them. A line
// counts only after the protocol was announced, by its version or a plan, so that a program that
// prints "ok" is no test.
type tapParser struct {
	lines  lines
	report wire.TestReport
	levels []tapLevel // by indentation
	plan   int        // of the outermost level; 0: none yet
	// open is the listed failure that the lines now belong to, -1 none.
	open int
	note tapNote
}

// tapLevel is what ended on one level of indentation since the last result on the level above.
type tapLevel struct{ seen, failed int }

// tapNote is the YAML block or the comments behind a failure.
type tapNote struct {
	yaml   bool
	block  bool // the message goes on over several lines
	indent int
	told   bool // the block named its message
	text   excerpt
}

func newTAP() *tapParser {
	p := &tapParser{report: wire.TestReport{Parser: TAP, Version: Version}, open: -1}
	p.lines.each = p.line
	return p
}

// Write takes the next output.
func (p *tapParser) Write(b []byte) { p.lines.write(b) }

// Report is what was seen so far; the stream has ended.
func (p *tapParser) Report() wire.TestReport {
	p.lines.end()
	p.shut()
	if seen := p.seen(); p.report.Detected && p.plan > 0 && seen != p.plan {
		addDiagnostic(&p.report, wire.Diagnostic{Kind: KindPlan, Message: fmt.Sprintf("%d tests were planned and %d ended", p.plan, seen)})
	}
	return p.report
}

func (p *tapParser) seen() int {
	if len(p.levels) == 0 {
		return 0
	}
	return p.levels[0].seen
}

var (
	tapVersion   = regexp.MustCompile(`^TAP version \d+$`)
	tapPlan      = regexp.MustCompile(`^1\.\.(\d{1,9})(?:\s*#.*)?$`)
	tapResult    = regexp.MustCompile(`^(not )?ok(?:\s+(\d{1,9}))?(?:\s+-)?(?:\s+(.*))?$`)
	tapDirective = regexp.MustCompile(`(?i)(?:^|\s)#\s*(skip|todo)\S*(?:\s.*)?$`)
	tapField     = regexp.MustCompile(`^(error|message|location|fileName|lineNumber):\s*(.*)$`)
	tapPlace     = regexp.MustCompile(`^(.+?):(\d+)(?::\d+)?$`)
	escape       = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]")
)

// maxTAPDepth bounds the nesting of subtests that is told apart.
const maxTAPDepth = 32

func (p *tapParser) line(b []byte) {
	raw := strings.TrimRight(escape.ReplaceAllString(string(b), ""), "\r \t")
	text := strings.TrimLeft(raw, " ")
	indent := len(raw) - len(text)
	if p.note.yaml {
		p.yaml(text, indent)
		return
	}
	switch {
	case tapVersion.MatchString(text):
		p.report.Detected = true
	case tapPlan.MatchString(text):
		p.report.Detected = true
		if indent == 0 && p.plan == 0 {
			p.plan = atoi(tapPlan.FindStringSubmatch(text)[1])
		}
	case !p.report.Detected:
	case strings.HasPrefix(text, "Bail out!"):
		addDiagnostic(&p.report, wire.Diagnostic{Kind: KindBailOut, Message: clip(text, maxMessageChars)})
	case text == "---" && p.open >= 0:
		p.note = tapNote{yaml: true, indent: indent}
	case strings.HasPrefix(text, "#"):
		p.comment(text)
	case tapResult.MatchString(text) && indent%4 == 0 && indent/4 < maxTAPDepth:
		p.result(tapResult.FindStringSubmatch(text), indent/4)
	}
}

func (p *tapParser) comment(text string) {
	if p.open < 0 || strings.HasPrefix(text, "# Subtest") {
		return
	}
	p.note.text.add(strings.TrimSpace(strings.TrimPrefix(text, "#")) + "\n")
}

// result counts what ended on a level. One with subtests says nothing new, unless it failed and
// none of them did.
func (p *tapParser) result(m []string, depth int) {
	p.shut()
	for len(p.levels) <= depth+1 {
		p.levels = append(p.levels, tapLevel{})
	}
	below := p.levels[depth+1]
	clear(p.levels[depth+1:])
	p.levels[depth].seen++
	if below.failed > 0 {
		p.levels[depth].failed++
	}
	name, directive := m[3], ""
	if d := tapDirective.FindStringSubmatchIndex(name); d != nil {
		directive, name = name[d[2]:d[3]], name[:d[0]]
	}
	failed := m[1] != "" && directive == ""
	switch {
	case below.seen > 0 && (!failed || below.failed > 0):
	case directive != "":
		p.report.Skipped++
	case failed:
		p.levels[depth].failed++
		p.report.Run++
		p.report.Failed++
		if len(p.report.FailedTests) < maxFailed {
			p.open = len(p.report.FailedTests)
			p.report.FailedTests = append(p.report.FailedTests, wire.FailedTest{Name: clip(strings.TrimSpace(name), maxNameChars)})
		}
	default:
		p.report.Run++
		p.report.Passed++
	}
}

// yaml reads one line of the block behind a failure: what it says of place and message.
func (p *tapParser) yaml(text string, indent int) {
	f := &p.report.FailedTests[p.open]
	switch m := tapField.FindStringSubmatch(text); {
	case text == "..." && indent <= p.note.indent, indent < p.note.indent && text != "":
		p.shut()
	case m != nil && (!p.note.block || indent <= p.note.indent):
		value := strings.Trim(m[2], `'"`)
		p.note.block = false
		switch m[1] {
		case "location":
			if at := tapPlace.FindStringSubmatch(value); at != nil {
				f.File, f.Line = file(at[1]), atoi(at[2])
			}
		case "fileName":
			f.File = file(value)
		case "lineNumber":
			f.Line = atoi(value)
		default:
			if p.note.told {
				return
			}
			p.note.told = true
			if p.note.block = strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">"); !p.note.block {
				p.note.text.add(value)
			}
		}
	case p.note.block && (indent > p.note.indent || text == ""):
		p.note.text.add(text + "\n")
	default:
		p.note.block = false
	}
}

// shut ends what belongs to the last failure.
func (p *tapParser) shut() {
	if p.open >= 0 {
		p.report.FailedTests[p.open].Message = p.note.text.String()
	}
	p.open, p.note = -1, tapNote{}
}
