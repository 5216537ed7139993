package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"webcodex/runner/wire"
)

// listing is a parser that says how much it was given, and what.
type listing struct{ out, err bytes.Buffer }

func (l *listing) Write(p []byte)    { l.out.Write(p) }
func (l *listing) WriteErr(p []byte) { l.err.Write(p) }
func (l *listing) Report() wire.TestReport {
	text := l.out.String()
	return wire.TestReport{Parser: fmt.Sprintf("%.40s|%.40s", text, l.err.String()), Run: len(text)}
}

func withListing(o *Options) {
	o.Parsers = func(string) (Parser, bool) { return &listing{}, true }
}

// A parser reads the streams, or the report that this very run wrote below the Project, or the
// Runner's own file; nothing of another run, from outside, or that is no file.
func TestReportsThatParsersRead(t *testing.T) {
	t.Parallel()
	g := newRig(t, withListing)
	outside := filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{outside: "secret", g.path("old"): "old", g.path("sub/x"): "x"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(g.path("old"), past, past); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in   wire.ProcessIn
		want string
	}{
		"streams":          {wire.ProcessIn{Args: []string{"-c", "printf out; printf err >&2"}}, "out|err"},
		"a report":         {wire.ProcessIn{Args: []string{"-c", "printf out; printf new > r"}, Report: "r"}, "new|"},
		"below cwd":        {wire.ProcessIn{Args: []string{"-c", "printf new > r2"}, Report: "r2", Cwd: "sub"}, "new|"},
		"rewritten":        {wire.ProcessIn{Args: []string{"-c", "printf new > old"}, Report: "old"}, "new|"},
		"of another run":   {wire.ProcessIn{Args: []string{"-c", "printf out"}, Report: "sub/x"}, "|"},
		"not there":        {wire.ProcessIn{Args: []string{"-c", "printf out"}, Report: "none"}, "|"},
		"a link outside":   {wire.ProcessIn{Args: []string{"-c", "ln -s " + outside + " l"}, Report: "l"}, "|"},
		"a pipe":           {wire.ProcessIn{Args: []string{"-c", "mkfifo p"}, Report: "p"}, "|"},
		"the Runner's own": {wire.ProcessIn{Args: []string{"-c", `printf out; printf mine > "${0#--f=}"`}, ReportArg: "--f="}, "mine|"},
	} {
		tc.in.Executable, tc.in.Parser = "sh", "x"
		r := g.do(g.make(wire.OpProcess, tc.in))
		if r.Process == nil || r.Process.Tests == nil || r.Process.Tests.Parser != tc.want {
			t.Errorf("%s: %+v %+v", name, r.Process, r.Fault)
			continue
		}
		// A report that was named and is not of this run is missed aloud.
		if missing := tc.in.Report != "" && tc.want == "|"; missing != slices.Contains(r.Process.Tests.Diagnostics, noReport) {
			t.Errorf("%s: %+v", name, r.Process.Tests.Diagnostics)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(g.scripts.path, "*")); len(left) > 0 {
		t.Errorf("report files stay: %v", left)
	}
	big := wire.ProcessIn{Executable: "sh", Parser: "x", Report: "big", Args: []string{"-c", fmt.Sprintf("head -c %d /dev/zero > big", maxReport+10)}}
	if r := g.do(g.make(wire.OpProcess, big)); r.Process == nil || r.Process.Tests.Run != maxReport+1 {
		t.Errorf("%+v", r.Process)
	}
	for _, bad := range []string{"../r", "/r", ".git/r", strings.Repeat("x", 300)} {
		r := g.do(g.make(wire.OpProcess, wire.ProcessIn{Executable: "true", Parser: "x", Report: bad}))
		if r.Process != nil || r.Fault == nil || r.Fault.Field != "report" {
			t.Errorf("%.20q: %+v", bad, r)
		}
	}
}
