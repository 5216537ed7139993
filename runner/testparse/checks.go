package testparse

import (
	"regexp"
	"strings"
	"sync"

	"webcodex/runner/wire"
)

// Kinds of diagnostics of the checks, which run no test.
const (
	KindFormat = "format_difference" // a place that is not formatted as the formatter would
	KindVet    = "vet"               // what go vet found
)

// checker reads the lines of both streams of a program; either may be nil.
type checker struct {
	mu          sync.Mutex
	out, err    lines
	report      wire.TestReport
	lastMessage string
}

func newChecker(kind string, out, err func(*checker, string)) *checker {
	c := &checker{report: wire.TestReport{Parser: kind, Version: Version}}
	each := func(read func(*checker, string)) func([]byte) {
		return func(b []byte) {
			if read != nil {
				read(c, strings.TrimRight(escape.ReplaceAllString(string(b), ""), "\r"))
			}
		}
	}
	c.out.each, c.err.each = each(out), each(err)
	return c
}

// Write takes the next standard output.
func (c *checker) Write(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.write(b)
}

// WriteErr takes the next standard error.
func (c *checker) WriteErr(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err.write(b)
}

// Report is what was seen so far; the streams have ended.
func (c *checker) Report() wire.TestReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.end()
	c.err.end()
	return c.report
}

func (c *checker) found(kind, name string, line int, message string) {
	c.report.Detected = true
	c.report.Errors++
	addDiagnostic(&c.report, wire.Diagnostic{Kind: kind, File: file(name), Line: line, Message: clip(strings.TrimSpace(message), maxMessageChars)})
}

var (
	// formatDiff heads each place of rustfmt --check, in the form of today and of earlier.
	formatDiff = regexp.MustCompile(`^Diff in (.+?)(?: at line |:)(\d{1,9}):$`)
	rustError  = regexp.MustCompile(`^error(?:\[E\d+\])?: (.*)$`)
	rustPlace  = regexp.MustCompile(`^ +--> (.+?):(\d{1,9}):\d+$`)
)

func newRustfmt() *checker {
	return newChecker(Rustfmt, func(c *checker, line string) {
		if m := formatDiff.FindStringSubmatch(line); m != nil {
			c.found(KindFormat, m[1], atoi(m[2]), "not formatted as rustfmt does")
		}
	}, func(c *checker, line string) {
		if m := rustError.FindStringSubmatch(line); m != nil {
			c.lastMessage = m[1]
		} else if m := rustPlace.FindStringSubmatch(line); m != nil && c.lastMessage != "" {
			c.found(KindCompile, m[1], atoi(m[2]), c.lastMessage)
			c.lastMessage = ""
		}
	})
}

func newGoVet() *checker {
	return newChecker(GoVet, nil, func(c *checker, line string) {
		kind := KindVet
		if strings.HasPrefix(line, "vet: ") {
			kind = KindCompile // vet could not read the package
		}
		switch m := sourceLine.FindStringSubmatch(line); {
		case m != nil:
			c.found(kind, m[1], atoi(m[2]), m[3])
		case strings.HasPrefix(line, "package "), strings.HasPrefix(line, "no required module"), strings.HasPrefix(line, "pattern "):
			c.found(KindSetup, "", 0, line)
		}
	})
}
