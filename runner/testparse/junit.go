package testparse

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"

	"webcodex/runner/wire"
)

// Bounds of a JUnit report.
const (
	maxJUnitBytes = 16 << 20
	maxJUnitDepth = 64
)

// junitParser reads a JUnit XML report, which is one document: it is kept and read at the end. A
// document that is not whole proves nothing.
type junitParser struct {
	doc  []byte
	over bool // it was larger than what is read
}

func newJUnit() *junitParser { return &junitParser{} }

// Write takes the next output.
func (p *junitParser) Write(b []byte) {
	n := min(len(b), maxJUnitBytes-len(p.doc))
	p.doc = append(p.doc, b[:n]...)
	p.over = p.over || n < len(b)
}

// Report is what the document says.
func (p *junitParser) Report() wire.TestReport {
	none := wire.TestReport{Parser: JUnit, Version: Version}
	doc := p.doc[max(0, begins(p.doc)):]
	if begins(p.doc) < 0 {
		return none
	}
	r := &junitReader{report: none, in: xml.NewDecoder(bytes.NewReader(doc))}
	if err := r.read(); err != nil || p.over {
		none.Diagnostics = []wire.Diagnostic{{Kind: KindReport, Message: "the JUnit report is not whole, or not XML"}}
		return none
	}
	return r.report
}

// begins is where the document begins in what was printed, -1 where there is none.
func begins(doc []byte) int {
	at := -1
	for _, mark := range []string{"<?xml", "<testsuites", "<testsuite"} {
		if i := bytes.Index(doc, []byte(mark)); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return at
}

// junitReader walks one document.
type junitReader struct {
	report wire.TestReport
	in     *xml.Decoder
	open   []string
	// Of the test case that is read.
	test            wire.FailedTest
	failed, skipped bool
	text            excerpt
	inside          bool // a failure's text
}

var errJUnit = errors.New("not a JUnit report")

func (r *junitReader) read() error {
	for {
		token, err := r.in.Token()
		if errors.Is(err, io.EOF) && r.report.Detected && len(r.open) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(r.open) == maxJUnitDepth || len(r.open) == 0 && r.report.Detected {
				return errJUnit
			}
			r.open = append(r.open, t.Name.Local)
			r.start(t)
		case xml.EndElement:
			r.open = r.open[:len(r.open)-1]
			r.end(t.Name.Local)
			if len(r.open) == 0 && r.report.Detected {
				return nil // what a program prints behind its report is not part of it
			}
		case xml.CharData:
			if r.inside {
				r.text.add(string(t))
			}
		case xml.Directive: // a document type could define entities
			return errJUnit
		}
	}
}

func (r *junitReader) start(t xml.StartElement) {
	switch t.Name.Local {
	case "testsuite", "testsuites":
		r.report.Detected = true
	case "testcase":
		r.test = wire.FailedTest{Name: clip(attr(t, "name"), maxNameChars), Package: clip(attr(t, "classname"), maxFileChars),
			File: file(attr(t, "file")), Line: max(atoi(attr(t, "line")), 0)}
		r.failed, r.skipped, r.text = false, false, excerpt{}
	case "failure", "error":
		if r.directlyIn("testcase") {
			if m := attr(t, "message"); !r.failed && m != "" {
				r.test.Message = clip(strings.TrimSpace(m), maxMessageChars)
			}
			r.failed, r.inside = true, true
		}
	case "skipped":
		r.skipped = r.skipped || r.directlyIn("testcase")
	}
}

// directlyIn reports whether the element that was just opened lies directly in another.
func (r *junitReader) directlyIn(name string) bool {
	return len(r.open) >= 2 && r.open[len(r.open)-2] == name
}

func (r *junitReader) end(name string) {
	switch name {
	case "failure", "error":
		r.inside = false
	case "testcase":
		r.settle()
	}
}

// pythonPlace is where pytest says that a test failed.
var pythonPlace = regexp.MustCompile(`(?m)^(\S+\.py):(\d+): `)

func (r *junitReader) settle() {
	switch {
	case r.failed:
		r.report.Run++
		r.report.Failed++
		if len(r.report.FailedTests) == maxFailed {
			return
		}
		if all := pythonPlace.FindAllStringSubmatch(string(r.text.b), -1); len(all) > 0 && r.test.Line == 0 {
			last := all[len(all)-1]
			r.test.File, r.test.Line = file(last[1]), atoi(last[2])
		}
		if r.test.Message == "" {
			r.test.Message = r.text.String()
		}
		r.report.FailedTests = append(r.report.FailedTests, r.test)
	case r.skipped:
		r.report.Skipped++
	default:
		r.report.Run++
		r.report.Passed++
	}
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
