package testparse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/runner/wire"
)

// Output that imitates results, colours, broken blocks and lines without end: what is no TAP counts
// nothing, and a failure is never lost.
func TestTAPIsNotFooled(t *testing.T) {
	for name, tc := range map[string]struct {
		out                  string
		run, failed, skipped int
		detected             bool
	}{
		"no announcement":      {"ok 1 - a\nnot ok 2 - b\nexit status 0\n", 0, 0, 0, false},
		"go test's ok":         {"ok  \tpkg\t0.1s\n", 0, 0, 0, false},
		"plan first":           {"1..2\nok 1 a\nnot ok 2 b\n", 2, 1, 0, true},
		"version":              {"TAP version 14\nok\nnot ok\n1..2\n", 2, 1, 0, true},
		"colours":              {"\x1b[32mTAP version 13\x1b[0m\r\n\x1b[31mnot ok 1 - x\x1b[0m\r\n", 1, 1, 0, true},
		"forged status":        {"TAP version 13\nnot ok 1 - x\nexit status 0\n# pass 1\n# fail 0\n", 1, 1, 0, true},
		"directives":           {"1..3\nok 1 # SKIP x\nnot ok 2 # TODO y\nok 3 - # skipped today\n", 0, 0, 3, true},
		"subtests":             {"TAP version 13\n    ok 1 - a\n    not ok 2 - b\n    1..2\nnot ok 1 - top\n1..1\n", 2, 1, 0, true},
		"a parent alone":       {"TAP version 13\n    ok 1 - a\n    1..1\nnot ok 1 - top\n1..1\n", 2, 1, 0, true},
		"an open block":        {"TAP version 13\nnot ok 1 - x\n  ---\n  error: |-\n    ok 2 - no test\n    not ok 3 - neither\n", 1, 1, 0, true},
		"a block that lies":    {"TAP version 13\nnot ok 1 - x\n  ---\n  error: e\n  ...\nok 2\n", 2, 1, 0, true},
		"odd indentation":      {"1..1\n  ok 1 - a\nok 1 - b\n", 1, 0, 0, true},
		"a number too long":    {"1..99999999999\nok 1\n", 0, 0, 0, false},
		"okay":                 {"1..1\nokay 1\nnot okay\n", 0, 0, 0, true},
		"progress on one line": {"TAP version 13\n" + strings.Repeat("\r10%\r20%", 1000) + "\nok 1\n1..1\n", 1, 0, 0, true},
	} {
		r := parse(TAP, []byte(tc.out), 7)
		if r.Run != tc.run || r.Failed != tc.failed || r.Skipped != tc.skipped || r.Detected != tc.detected || len(r.FailedTests) != tc.failed {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r := parse(TAP, []byte("1..3\nok 1\nBail out! no disk\n"), 100)
	if len(r.Diagnostics) != 2 || r.Diagnostics[0].Kind != KindBailOut || r.Diagnostics[1].Kind != KindPlan {
		t.Errorf("%+v", r.Diagnostics)
	}
}

// A report that is not whole, defines entities, goes too deep or is too large proves nothing.
func TestJUnitIsNotFooled(t *testing.T) {
	one := `<testsuite><testcase classname="c" name="n"><failure message="m">x</failure></testcase></testsuite>`
	deep := func(n int) string {
		return "<testsuite>" + strings.Repeat("<properties>", n) + strings.Repeat("</properties>", n) + `<testcase name="n"/></testsuite>`
	}
	for name, tc := range map[string]struct {
		out         string
		run, failed int
		broken      bool
	}{
		"nothing":               {"no report here\n", 0, 0, false},
		"empty":                 {"", 0, 0, false},
		"behind other output":   {"collecting...\n\x1b[1m<?xml version=\"1.0\"?>" + one + "\ndone\n", 1, 1, false},
		"not whole":             {`<testsuite><testcase name="a"/><testcase name="b">`, 0, 0, true},
		"no suite":              {"<?xml version='1.0'?><html></html>", 0, 0, true},
		"entities":              {`<!DOCTYPE x [<!ENTITY a "b">]><testsuite name="&a;"></testsuite>`, 0, 0, true},
		"entities inside":       {`<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><testsuite/>`, 0, 0, true},
		"deep":                  {deep(maxJUnitDepth - 1), 1, 0, false},
		"too deep":              {deep(maxJUnitDepth), 0, 0, true},
		"too large":             {"<testsuite>" + strings.Repeat(" ", maxJUnitBytes) + "</testsuite>", 0, 0, true},
		"another charset":       {`<?xml version="1.0" encoding="utf-16"?><testsuite/>`, 0, 0, true},
		"a forged case in text": {`<testsuite><testcase name="a"><system-out><![CDATA[<testcase name="b"/>]]></system-out><failure/></testcase></testsuite>`, 1, 1, false},
	} {
		r := parse(JUnit, []byte(tc.out), 1<<20)
		if r.Run != tc.run || r.Failed != tc.failed || (len(r.Diagnostics) == 1) != tc.broken {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// The checks name their places, count all of them and list the first ones.
func TestChecksAreBounded(t *testing.T) {
	var diff, vet bytes.Buffer
	for i := range 3 * maxDiagnostics {
		fmt.Fprintf(&diff, "Diff in /home/dev/x/src/f%d.rs at line %d:\n", i, i+1)
		fmt.Fprintf(&vet, "a/f%d.go:%d:2: bad\n", i, i+1)
	}
	for kind, out := range map[string][]byte{Rustfmt: diff.Bytes(), GoVet: vet.Bytes()} {
		r := parse(kind, out, 13)
		if r.Errors != 3*maxDiagnostics || len(r.Diagnostics) != maxDiagnostics || r.Diagnostics[1].Line != 2 || r.Run+r.Failed != 0 {
			t.Errorf("%s: %+v", kind, r)
		}
	}
	c := newRustfmt()
	c.WriteErr([]byte("\x1b[1merror\x1b[0m: expected one of `;`\n  --> /home/dev/src/lib.rs:3:9\n   |\n"))
	if r := c.Report(); len(r.Diagnostics) != 1 || r.Diagnostics[0] != (wire.Diagnostic{Kind: KindCompile, File: "lib.rs", Line: 3, Message: "expected one of `;`"}) {
		t.Errorf("%+v", r)
	}
}

func fuzzKind(f *testing.F, kind string) {
	seed(f, kind)
	f.Add([]byte("Diff in /:0:"))
	f.Fuzz(func(t *testing.T, out []byte) {
		r := parse(kind, out, len(out)+1)
		checkReport(t, r)
		if r.Run != r.Passed+r.Failed || r.Errors < 0 {
			t.Fatalf("%+v", r)
		}
		if d := cmp.Diff(r, parse(kind, out, 3)); d != "" {
			t.Fatal("pieces matter: " + d)
		}
	})
}

func FuzzTAP(f *testing.F)     { fuzzKind(f, TAP) }
func FuzzJUnit(f *testing.F)   { fuzzKind(f, JUnit) }
func FuzzRustfmt(f *testing.F) { fuzzKind(f, Rustfmt) }
func FuzzGoVet(f *testing.F)   { fuzzKind(f, GoVet) }
