package testparse

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"webcodex/runner/wire"
)

// cargoMessage is one line of cargo's --message-format=json.
type cargoMessage struct {
	Reason  string `json:"reason"`
	Message struct {
		Message string `json:"message"`
		Level   string `json:"level"`
		Code    *struct {
			Code string `json:"code"`
		} `json:"code"`
		Spans []struct {
			File    string `json:"file_name"`
			Line    int    `json:"line_start"`
			Primary bool   `json:"is_primary"`
		} `json:"spans"`
	} `json:"message"`
}

// Sections of a test program's output.
const (
	inRun     = iota // results line by line
	inOutput         // what failed tests printed
	inSummary        // the list of failed tests
)

// tally counts results.
type tally struct{ passed, failed, skipped int }

type cargoParser struct {
	lines   lines
	report  wire.TestReport
	section int
	// current is the program running now, by its lines; its summary line replaces it.
	current tally
	failing []string // names of its failed tests, in order
	said    map[string]*cargoFailure
	open    *cargoFailure // whose output is being read
}

type cargoFailure struct {
	file     string
	line     int
	head     excerpt
	panicked excerpt
	inPanic  bool
}

func newCargo() *cargoParser {
	p := &cargoParser{report: wire.TestReport{Parser: Cargo, Version: Version}, said: map[string]*cargoFailure{}}
	p.lines.each = p.line
	return p
}

// Write takes the next output.
func (p *cargoParser) Write(b []byte) { p.lines.write(b) }

// Report is what was seen so far; the stream has ended.
func (p *cargoParser) Report() wire.TestReport {
	p.lines.end()
	p.settle(p.current)
	return p.report
}

var (
	runningLine = regexp.MustCompile(`^running \d+ tests?$`)
	resultLine  = regexp.MustCompile(`^test (.+?)(?: - [a-z ]+)? \.\.\. (ok|FAILED|ignored)(?:,.*)?$`)
	totalLine   = regexp.MustCompile(`^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;`)
	outputLine  = regexp.MustCompile(`^---- (.+?)(?: stdout| stderr)? ----$`)
	// Places of a panic, in the form of Rust 1.73 and later, and of earlier.
	panicLine = regexp.MustCompile(`^thread .* panicked at ([^':]+):(\d+):\d+:$`)
	panicOld  = regexp.MustCompile(`^thread .* panicked at '(.*)', ([^':]+):(\d+):\d+$`)
)

func (p *cargoParser) line(b []byte) {
	b = bytes.TrimRight(b, "\r")
	if bytes.HasPrefix(b, []byte(`{"reason":"`)) {
		p.message(b)
		return
	}
	text := string(b)
	if runningLine.MatchString(text) && p.section != inOutput {
		p.report.Detected = true
		p.settle(p.current)
		return
	}
	switch p.section {
	case inOutput:
		p.output(text)
	default:
		p.result(text)
	}
}

// result reads a line outside of what tests printed.
func (p *cargoParser) result(text string) {
	if m := totalLine.FindStringSubmatch(text); m != nil {
		p.settle(tally{atoi(m[1]), atoi(m[2]), atoi(m[3])})
		return
	}
	if text == "failures:" {
		if p.section == inRun {
			p.section = inOutput
		}
		return
	}
	m := resultLine.FindStringSubmatch(text)
	if m == nil || p.section != inRun {
		return
	}
	switch m[2] {
	case "ok":
		p.current.passed++
	case "ignored":
		p.current.skipped++
	case "FAILED":
		if p.current.failed++; len(p.failing) < maxFailed {
			p.failing = append(p.failing, m[1])
		}
	}
}

// output reads what failed tests printed; until the list of their names nothing in it is
// taken for a result.
func (p *cargoParser) output(text string) {
	if text == "failures:" {
		p.section, p.open = inSummary, nil
		return
	}
	if m := outputLine.FindStringSubmatch(text); m != nil && slices.Contains(p.failing, m[1]) && p.said[m[1]] == nil {
		p.open = &cargoFailure{}
		p.said[m[1]] = p.open
		return
	}
	if p.open != nil {
		p.open.add(text)
	}
}

func (f *cargoFailure) add(text string) {
	f.head.add(text + "\n")
	if m := panicLine.FindStringSubmatch(text); m != nil && f.line == 0 {
		f.file, f.line, f.inPanic = file(m[1]), atoi(m[2]), true
		f.panicked.frozen = true
		return
	}
	if m := panicOld.FindStringSubmatch(text); m != nil && f.line == 0 {
		f.file, f.line = file(m[2]), atoi(m[3])
		f.panicked.frozen = true
		f.panicked.add(m[1])
		return
	}
	if strings.HasPrefix(text, "stack backtrace:") || strings.HasPrefix(text, "note: ") {
		f.inPanic = false
	}
	if f.inPanic {
		f.panicked.add(text + "\n")
	}
}

func (f *cargoFailure) message() string {
	if s := f.panicked.String(); s != "" {
		return s
	}
	return f.head.String()
}

// settle ends a test program with its results.
func (p *cargoParser) settle(t tally) {
	p.report.Passed += t.passed
	p.report.Failed += t.failed
	p.report.Skipped += t.skipped
	p.report.Run += t.passed + t.failed
	for _, name := range p.failing {
		if len(p.report.FailedTests) == maxFailed {
			break
		}
		f := p.said[name]
		if f == nil {
			f = &cargoFailure{}
		}
		p.report.FailedTests = append(p.report.FailedTests, wire.FailedTest{Name: clip(name, maxNameChars),
			File: f.file, Line: f.line, Message: f.message()})
	}
	p.current, p.failing, p.open, p.section = tally{}, nil, nil, inRun
	clear(p.said)
}

// message reads a diagnostic of the compiler; only errors are kept.
func (p *cargoParser) message(b []byte) {
	var m cargoMessage
	if json.Unmarshal(b, &m) != nil {
		return
	}
	p.report.Detected = true
	if m.Reason == "compiler-message" && m.Message.Level == "warning" && len(m.Message.Spans) > 0 {
		p.report.Warnings++
	}
	if m.Reason != "compiler-message" || m.Message.Level != "error" || strings.HasPrefix(m.Message.Message, "aborting due to") {
		return
	}
	p.report.Errors++
	d := wire.Diagnostic{Kind: KindCompile, Message: m.Message.Message}
	if m.Message.Code != nil && m.Message.Code.Code != "" {
		d.Message += " [" + m.Message.Code.Code + "]"
	}
	d.Message = clip(d.Message, maxMessageChars)
	for _, s := range m.Message.Spans {
		if s.Primary {
			d.File, d.Line = file(s.File), s.Line
			break
		}
	}
	addDiagnostic(&p.report, d)
}
