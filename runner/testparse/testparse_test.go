package testparse

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"webcodex/runner/wire"
)

var update = flag.Bool("update", false, "write the golden reports")

func parse(kind string, out []byte, chunk int) wire.TestReport {
	p, ok := Parsers(kind)
	if !ok {
		panic("no parser " + kind)
	}
	write := p.Write
	if c, ok := p.(*checker); ok && kind == GoVet {
		write = c.WriteErr
	}
	for len(out) > 0 {
		n := min(chunk, len(out))
		write(out[:n])
		out = out[n:]
	}
	return p.Report()
}

func kindOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), "-")
	return map[string]string{"go": GoJSON, "cargo": Cargo, "cargocheck": CargoCheck, "rustfmt": Rustfmt, "govet": GoVet, "tap": TAP, "junit": JUnit}[name]
}

// What real runs of go test and cargo test printed, and what is read from it, in whatever
// pieces it arrives.
func TestRecordedRuns(t *testing.T) {
	files, err := filepath.Glob("testdata/*-*.*")
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want.json") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".want.json"
			got := parse(kindOf(file), out, len(out))
			if *update {
				b, _ := json.MarshalIndent(got, "", "  ")
				if err := os.WriteFile(golden, append(b, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			var want wire.TestReport
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			for _, chunk := range []int{len(out), 1, 1000} {
				if d := cmp.Diff(want, parse(kindOf(file), out, chunk)); d != "" {
					t.Errorf("in pieces of %d:\n%s", chunk, d)
				}
			}
		})
	}
}

func TestUnknownParser(t *testing.T) {
	if _, ok := Parsers("xunit"); ok {
		t.Error("there is no such parser")
	}
}

// Any number of failures, lines of any length: the report stays bounded and the counts exact.
func TestBounds(t *testing.T) {
	p := newGo()
	const n = 1000
	for i := range n {
		fmt.Fprintf(writer{p}, `{"Action":"run","Package":"p","Test":"T%d"}`+"\n", i)
		out, _ := json.Marshal(strings.Repeat("😀", 3000))
		fmt.Fprintf(writer{p}, `{"Action":"output","Package":"p","Test":"T%d","Output":%s}`+"\n", i, out)
		fmt.Fprintf(writer{p}, `{"Action":"fail","Package":"p","Test":"T%d"}`+"\n", i)
	}
	p.Write(bytes.Repeat([]byte("x"), 3*maxLine)) // a line that never ends
	r := p.Report()
	if r.Run != n || r.Failed != n || len(r.FailedTests) != maxFailed {
		t.Errorf("run %d, failed %d, listed %d", r.Run, r.Failed, len(r.FailedTests))
	}
	for _, f := range r.FailedTests {
		if utf8.RuneCountInString(f.Message) > maxMessageChars+1 {
			t.Errorf("message of %d characters", utf8.RuneCountInString(f.Message))
		}
	}
	if cap(p.lines.buf) > 2*maxLine {
		t.Errorf("a buffer of %d bytes", cap(p.lines.buf))
	}
}

type writer struct{ p *goParser }

func (w writer) Write(b []byte) (int, error) { w.p.Write(b); return len(b), nil }

func seed(f *testing.F, kind string) {
	files, _ := filepath.Glob("testdata/*-*.*")
	for _, file := range files {
		if kindOf(file) != kind {
			continue
		}
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b)
		}
	}
}

func checkReport(t *testing.T, r wire.TestReport) {
	t.Helper()
	if r.Run < 0 || r.Passed < 0 || r.Failed < 0 || r.Skipped < 0 || len(r.FailedTests) > maxFailed || len(r.Diagnostics) > maxDiagnostics {
		t.Fatalf("%+v", r)
	}
	for _, f := range r.FailedTests {
		if !utf8.ValidString(f.Name+f.Package+f.File+f.Message) || strings.HasPrefix(f.File, "/") {
			t.Fatalf("%+v", f)
		}
	}
	for _, d := range r.Diagnostics {
		if !utf8.ValidString(d.Message+d.File) || strings.HasPrefix(d.File, "/") {
			t.Fatalf("%+v", d)
		}
	}
}

func FuzzGo(f *testing.F) {
	seed(f, GoJSON)
	f.Fuzz(func(t *testing.T, out []byte) {
		r := parse(GoJSON, out, len(out)+1)
		checkReport(t, r)
		if r.Run != r.Passed+r.Failed {
			t.Fatalf("%+v", r)
		}
		if d := cmp.Diff(r, parse(GoJSON, out, 3)); d != "" {
			t.Fatal("pieces matter: " + d)
		}
	})
}

func FuzzCargo(f *testing.F) {
	seed(f, Cargo)
	f.Add([]byte("running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nthread 'a' panicked at 'old form', src/x.rs:3:4\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		r := parse(Cargo, out, len(out)+1)
		checkReport(t, r)
		if d := cmp.Diff(r, parse(Cargo, out, 3)); d != "" {
			t.Fatal("pieces matter: " + d)
		}
	})
}
