// Package testparse reads what test programs print, as it streams and in bounded memory, and
// says which tests ran and failed. It believes nothing it was not told in the program's own
// format, and never decides whether a run passed: the exit status does.
package testparse

import (
	"bytes"
	"path"
	"strings"

	"webcodex/runner"
	"webcodex/runner/wire"
)

// Kinds of parsers (wire.ProcessIn.Parser).
const (
	GoJSON     = "go-json"     // go test -json
	Cargo      = "cargo"       // cargo test --message-format=json
	CargoCheck = "cargo-check" // cargo check --message-format=json: no tests
	Rustfmt    = "rustfmt"     // cargo fmt --check: no tests
	GoVet      = "go-vet"      // go vet: no tests
	TAP        = "tap"         // the Test Anything Protocol
	JUnit      = "junit"       // a JUnit XML report
)

// Version of all parsers; a changed reading of the same output is a new one (VAL-19).
const Version = 1

// Parsers finds a parser by kind, fresh for one process; for runner.Options.Parsers.
func Parsers(kind string) (runner.Parser, bool) {
	switch kind {
	case GoJSON:
		return newGo(), true
	case Cargo:
		return newCargo(), true
	case CargoCheck:
		p := newCargo()
		p.report.Parser = CargoCheck
		return p, true
	case Rustfmt:
		return newRustfmt(), true
	case GoVet:
		return newGoVet(), true
	case TAP:
		return newTAP(), true
	case JUnit:
		return newJUnit(), true
	}
	return nil, false
}

// Bounds of a report and of what is remembered on the way to it.
const (
	maxFailed       = wire.MaxFailedTests
	maxDiagnostics  = wire.MaxDiagnostics
	maxMessageChars = 600
	maxNameChars    = 240
	maxFileChars    = 512
	// maxLine is the longest line that is read; the rest of a longer one is passed over.
	maxLine = 256 << 10
	// maxOpen is the number of tests at once whose output is looked at.
	maxOpen = 4096
)

// lines cuts a stream into lines of at most maxLine bytes.
type lines struct {
	buf  []byte
	each func(line []byte)
}

func (l *lines) write(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		if i >= 0 && len(l.buf) == 0 {
			l.each(part[:min(len(part), maxLine)])
		} else {
			l.buf = append(l.buf, part[:min(len(part), maxLine-len(l.buf))]...)
			if i >= 0 {
				l.each(l.buf)
				l.buf = l.buf[:0]
			}
		}
		if i < 0 {
			return
		}
		p = p[i+1:]
	}
}

// end hands out a last line without a newline.
func (l *lines) end() {
	if len(l.buf) > 0 {
		l.each(l.buf)
		l.buf = l.buf[:0]
	}
}

// clip keeps the first most characters as valid UTF-8.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := range s {
		if most == 0 {
			return s[:i] + "…"
		}
		most--
	}
	return s
}

// file is a source file as it may be told: relative names stay, of absolute ones only the last
// part is kept.
func file(name string) string {
	name = strings.TrimPrefix(name, "./")
	if strings.HasPrefix(name, "/") || len(name) > 2 && name[1] == ':' {
		if name = path.Base(strings.ReplaceAll(name, `\`, "/")); name == "/" {
			name = ""
		}
	}
	return clip(name, maxFileChars)
}

func addDiagnostic(r *wire.TestReport, d wire.Diagnostic) {
	for _, have := range r.Diagnostics {
		if have == d {
			return // the same file built twice says the same twice
		}
	}
	if len(r.Diagnostics) < maxDiagnostics {
		r.Diagnostics = append(r.Diagnostics, d)
	}
}
