package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/projections/session"
)

func TestFlagsStandAnywhere(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		json bool
		data string
		pos  []string
	}{
		{[]string{"a", "--json", "b"}, true, "", []string{"a", "b"}},
		{[]string{"--data", "x", "a"}, false, "x", []string{"a"}},
		{[]string{"a", "--", "--json"}, false, "", []string{"a", "--json"}},
		{[]string{"--", "-"}, false, "", []string{"-"}},
		{[]string{"a", "-", "--json=true"}, true, "", []string{"a", "-"}},
	} {
		fs := flag.NewFlagSet("t", flag.ContinueOnError)
		asJSON, data := jsonFlag(fs), dataFlag(fs)
		pos, err := parse(fs, tc.args)
		if err != nil || !slices.Equal(pos, tc.pos) || *asJSON != tc.json || *data != tc.data {
			t.Errorf("%q: %q, json %v, data %q, %v", tc.args, pos, *asJSON, *data, err)
		}
	}
}

// A Project root and the data directory never lie in one another, by any path.
func TestProjectAndDataKeepApart(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, d := range []string{"repo/sub", "repository", "data/inner"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(p string) string { return filepath.Join(base, p) }
	if err := os.Symlink(at("repo/sub"), at("link")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		root, data string
		apart      bool
	}{
		{"repo", "data", true},
		{"repo", "repository", true},
		{"repo", "repo", false},
		{"repo", "repo/sub", false},
		{"repo", "repo/sub/not/yet/there", false},
		{"repo", "link", false},
		{"repo", "link/not/yet", false},
		{"link", "repo", false},
		{"data/inner", "data", false},
		{"link", "data", true},
	} {
		if err := keepApart(at(tc.root), at(tc.data)); (err == nil) != tc.apart {
			t.Errorf("root %s, data %s: %v", tc.root, tc.data, err)
		}
	}
}

func TestListenTakesLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"127.0.0.1:0", "localhost:8787", ":0", "[::1]:1", "127.8.8.8:80"} {
		if _, err := loopback(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{"0.0.0.0:0", "[::]:0", "10.0.0.1:80", "example.com:80", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000", "[::ffff:10.0.0.1]:1"} {
		if _, err := loopback(bad); codeOf(err) != exitUsage {
			t.Errorf("%s is taken: %v", bad, err)
		}
	}
}

// The token stands in the ready block only where it was asked for, never in a snippet or a
// URL; the JSON is one line of six members.
func TestReadyBlock(t *testing.T) {
	t.Parallel()
	r := ready{Ready: true, MCPURL: "http://127.0.0.1:8787/mcp", Token: "wcx_secret", Project: "agent:c:p", DataDir: "/d", PID: 7,
		tokenFile: "/it's here/token", durable: "always"}
	for _, public := range []string{"", "https://name.example"} {
		r.public = public
		var b bytes.Buffer
		if err := printReady(&b, r, false, false); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if strings.Contains(text, r.Token) {
			t.Errorf("the token stands in the block: %s", text)
		}
		for _, want := range []string{"claude mcp add", "config.toml", "mcp.json", "ChatGPT", "webcodex mcp", `'/it'\''s here/token'`, r.Project, public} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in %s", want, text)
			}
		}
		b.Reset()
		if err := printReady(&b, r, false, true); err != nil || strings.Count(b.String(), r.Token) != 1 {
			t.Errorf("--show-token: %v, %s", err, b.String())
		}
	}
	var b bytes.Buffer
	if err := printReady(&b, r, true, false); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got) != 6 || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("%v: %s", err, b.String())
	}
}

// hostileText moves the cursor, rings, reorders and hides.
const hostileText = "a\x1b[2Jb\u009b31mc\u202ed\u200be\u2066f\x07g\rh\x00i"

// Text of callers reaches a person's terminal without a character that acts on it.
func TestHostileTextIsShownHarmless(t *testing.T) {
	t.Parallel()
	project := hostileText
	view := session.Page{Total: 1, Sessions: []session.Row{{Title: hostileText, Project: &project, UpdatedAt: hostileText}}}
	brief := session.Brief{}
	brief.Session.Title, brief.Session.Project = hostileText, &project
	brief.Task.Root = &session.Excerpt{Text: hostileText}
	brief.Progress.Changed = session.List[string]{Total: 1, Items: []string{hostileText}}
	brief.Workspace = session.BriefWorkspace{Clean: new(bool), Branch: &project, Head: &project}
	brief.NextActions.Items = []session.Action{{Tool: hostileText, Why: hostileText}}
	brief.Continuation = session.Continuation{Tool: "t", Arguments: map[string]any{"x": hostileText}}
	brief.Task.Decisions.Items = []session.Note{{Text: hostileText}}
	feedback := session.Feedback{Attempt: &session.Attempt{Instruction: brief.Task.Root, Changes: brief.Progress.Changed}, Suggested: brief.NextActions.Items}
	sum := session.Summary{Events: []session.Event{{Tool: hostileText, At: hostileText, Changed: []string{hostileText}}}}
	sum.Title = hostileText
	res := toolResult{}
	res.Output, _ = json.Marshal(map[string]string{"stdout": hostileText})
	res.Error = hostileText
	for name, show := range map[string]func(w io.Writer) error{
		"sessions": func(w io.Writer) error { return showSessions(streams{out: w}, view) },
		"handoff":  func(w io.Writer) error { return printBrief(w, brief) },
		"feedback": func(w io.Writer) error { return printFeedback(w, feedback) },
		"replay": func(w io.Writer) error {
			return showReplay(w, []replayLine{{At: hostileText, Events: []session.StepEvent{{Type: hostileText, Summary: hostileText}}}})
		},
		"replay --at": func(w io.Writer) error { return showSummary(w, sum) },
		"status": func(w io.Writer) error {
			return showStatus(streams{out: w}, serverStatus{Projects: []string{hostileText}, Refuses: hostileText})
		},
		"doctor": func(w io.Writer) error {
			return showChecks(streams{out: w}, true, []check{{"n", "ok", hostileText, hostileText}}, false)
		},
		"call": func(w io.Writer) error { return printOutput(streams{out: w, err: w}, res) },
		"ready": func(w io.Writer) error {
			return printReady(w, ready{Project: hostileText, DataDir: hostileText, tokenFile: hostileText}, false, false)
		},
		"an error":          func(w io.Writer) error { report(w, failf(1, "%s", hostileText)); return nil },
		"sessions --json":   func(w io.Writer) error { return printJSON(w, view) },
		"an unknown output": func(w io.Writer) error { return printRaw(w, res.Output) },
	} {
		var b bytes.Buffer
		if err := show(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b.Len() == 0 {
			t.Errorf("%s shows nothing", name)
		}
		for _, r := range b.String() {
			if r != '\n' && r != '\t' && hostile(r) {
				t.Errorf("%s lets %U through: %q", name, r, b.String())
				break
			}
		}
	}
}

// JSON for programs says exactly what was meant, however it is escaped.
func TestEscapedJSONIsTheSameText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{hostileText, "plain <&>", "😀 \U000E0001 tag"} {
		var b bytes.Buffer
		if err := printJSON(&b, s); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != s {
			t.Errorf("%q came back as %q (%v)", s, got, err)
		}
	}
}

// So does a tool's output for a person.
func TestPrintedOutputIsTheSameJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{hostileText, "😀 \U000E0041 tag\nline"} {
		res := toolResult{}
		res.Success = true
		res.Output, _ = json.Marshal(map[string]string{"stdout": text})
		var b bytes.Buffer
		if err := printOutput(streams{out: &b}, res); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || got["stdout"] != text {
			t.Errorf("%q came back as %q (%v)", text, got["stdout"], err)
		}
	}
}

// The completion scripts are valid where their shell is there, and know every command and flag.
func TestCompletionKnowsAll(t *testing.T) {
	t.Parallel()
	for shell, check := range map[string][]string{"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}} {
		var out, errOut bytes.Buffer
		if code := runProgram(t.Context(), []string{"completion", shell}, nil, &out, &errOut); code != exitOK {
			t.Fatalf("%s: %d, %s", shell, code, errOut.String())
		}
		for _, c := range commands() {
			for _, f := range flagNames(c) {
				if shell == "fish" {
					f = "-l " + strings.TrimPrefix(f, "--")
				}
				if !strings.Contains(out.String(), f) {
					t.Errorf("%s: %s %s is missing", shell, c.name, f)
				}
			}
			if !strings.Contains(out.String(), c.name) {
				t.Errorf("%s: %s is missing", shell, c.name)
			}
		}
		if _, err := exec.LookPath(check[0]); err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(check[0], append(check[1:], file)...).CombinedOutput(); err != nil {
			t.Errorf("%s does not read the script: %v: %s", shell, err, said)
		}
	}
}

// A stream that ends early is an error, not a short history.
func TestCutReplayIsAnError(t *testing.T) {
	t.Parallel()
	whole := `{"version":1,"hash":"a"}` + "\n" + `{"version":2,"prev":"a"}` + "\n" + `{"end":true}` + "\n"
	for n := range len(whole) - 1 {
		lines := 0
		if err := decodeLines(strings.NewReader(whole[:n]), func(replayLine) error { lines++; return nil }); err == nil {
			t.Errorf("cut at %d: no error after %d lines", n, lines)
		}
	}
	var got []uint64
	err := decodeLines(strings.NewReader(whole), func(l replayLine) error { got = append(got, l.Version); return nil })
	if err != nil || !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("%v, %v", got, err)
	}
}

// What others may read or another account owns is refused; what is damaged is not replaced.
func TestDataDirectoryIsOursAlone(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "data")
	if err := makeDataDir(dir, root); err != nil {
		t.Fatal(err)
	}
	first, err := loadSettings(dir)
	if err != nil || !first.Client.Valid() {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := loadSettings(dir); err != nil || again != first {
		t.Errorf("the client id changed: %+v, %v", again, err)
	}
	if c := checkRights(dir); c.Status != statusOK {
		t.Errorf("%+v", c)
	}
	if err := os.Chmod(filepath.Join(dir, settingsFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := checkRights(dir); c.Status != statusFail || c.Fix == "" {
		t.Errorf("a file that others may read: %+v", c)
	}
	if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte(`{"client_id":"../x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := loadSettings(dir); err == nil {
		t.Errorf("damaged settings were taken: %+v", s)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := makeDataDir(dir, root); codeOf(err) != exitAccess {
		t.Errorf("a directory that others may enter: %v", err)
	}
	if _, err := openArchive(t.Context(), dir); codeOf(err) != exitAccess {
		t.Errorf("reading in a directory that others may enter: %v", err)
	}
}
