package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"pgregory.net/rapid"

	"webcodex/eventlog"
)

//go:generate go test -run TestConfigDocument -update .

var update = flag.Bool("update", false, "write docs/config.md")

// alone takes the person's own settings away from a test.
func alone(t *testing.T) {
	t.Helper()
	t.Setenv("WEBCODEX_CONFIG", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, s := range configTable {
		t.Setenv(s.env(), "")
	}
}

func configFile(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// docs/config.md is the table: every key, flag, variable and default, and its example is a
// file that gives the defaults.
func TestConfigDocument(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, []byte(configDoc()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(doc) != configDoc() {
		t.Error("docs/config.md is stale: run go generate ./cmd/webcodex")
	}
	_, example, _ := strings.Cut(string(doc), "```toml\n")
	example, _, _ = strings.Cut(example, "```")
	alone(t)
	e, err := loadConfig(configFile(t, example), nil)
	if err != nil || e.Config != DefaultConfig() {
		t.Errorf("the example gives %+v, %v", e.Config, err)
	}
	for _, s := range configTable {
		if e.from[s.key] != fromFile {
			t.Errorf("%s is not in the example", s.key)
		}
		if !strings.Contains(string(doc), "| `"+s.key+"` | `--"+s.flag()+"` | `"+s.env()+"` |") {
			t.Errorf("%s is not in the table", s.key)
		}
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil || !bytes.Contains(readme, []byte("docs/config.md")) {
		t.Error("README does not lead to docs/config.md")
	}
}

// Every key is a flag of up and of config, and a variable; a flag counts before a variable, a
// variable before the file, the file before the default.
func TestConfigPrecedence(t *testing.T) {
	values := map[string][3]string{
		"durability": {"group", "process", "always"}, "listen": {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"},
		"max_concurrent_jobs": {"1", "64", "2"}, "max_persistent_shells": {"1", "64", "2"}, "persistent_shell_idle_timeout": {"1s", "1d", "2h"},
		"public_url": {"https://a.example", "https://b.example", "https://c.example"}, "hot_session_capacity_target": {"1", "2", "0"},
		"historical_session_retention_limit": {"1", "2", "0"}, "history.policy": {"tail", "full", "tail"}, "history.max_age": {"1d", "2h", "0"},
		"history.max_bytes": {"1GiB", "2MiB", "0"}, "log.max_bytes": {"1GiB", "20MiB", "0"}, "scrub.rate": {"1MiB", "2MiB", "0"}, "scrub.interval": {"1h", "2h", "3d"},
		"runner.allowed_roots": {"/a", "/b:/c d", ""}, "mcp.host_profile": {"direct", "host_code_mode", "direct"},
		"runner.listen": {"0.0.0.0:1", "nats://127.0.0.1:2", "tls://box:3"}, "runner.ws_listen": {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"},
		"runner.tls_cert": {"a", "b", "c"}, "runner.tls_key": {"a", "b", "c"}, "runner.url": {"wss://a.example", "tls://b:1", "wss://c.example/runners"},
	}
	up, show := flag.NewFlagSet("up", flag.ContinueOnError), flag.NewFlagSet("config", flag.ContinueOnError)
	upCommand().setup(up)
	configCommand().setup(show)
	for _, s := range configTable {
		v, ok := values[s.key]
		if !ok {
			t.Errorf("%s is not tested", s.key)
			continue
		}
		if up.Lookup(s.flag()) == nil || show.Lookup(s.flag()) == nil {
			t.Errorf("%s is no flag", s.key)
		}
		t.Run(s.key, func(t *testing.T) {
			alone(t)
			def := s.show(DefaultConfig())
			get := func(file string, flags map[string]string) (string, string) {
				t.Helper()
				e, err := loadConfig(file, flags)
				if err != nil {
					t.Fatal(err)
				}
				return s.show(e.Config), e.origin(s.key)
			}
			want := func(gotValue, gotFrom, value, from string) {
				t.Helper()
				if gotValue != value || gotFrom != from {
					t.Errorf("%s from %s, want %s from %s", gotValue, gotFrom, value, from)
				}
			}
			got, from := get("", nil)
			want(got, from, def, "default")
			body := s.key + " = \"" + v[0] + "\""
			if in, key, ok := strings.Cut(s.key, "."); ok {
				body = "[" + in + "]\n" + key + " = \"" + v[0] + "\""
			}
			file := configFile(t, body)
			got, from = get(file, nil)
			want(got, from, v[0], "the configuration file")
			t.Setenv(s.env(), v[1])
			got, from = get(file, nil)
			want(got, from, v[1], s.env())
			got, from = get(file, map[string]string{s.key: v[2]})
			want(got, from, v[2], "--"+s.flag())
		})
	}
}

// A file, a variable or a flag that cannot be right is refused, naming what is wrong and
// where; nothing is guessed.
func TestConfigRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ body, says string }{
		"unknown key":     {"hot_sessions = 3", `the key "hot_sessions"`},
		"unknown table":   {"[limits]\nx = 1", `the key "limits"`},
		"in a table":      {"[history]\nmax_agee = \"1d\"", `the key "history.max_agee"`},
		"quoted with dot": {"\"history.policy\" = \"tail\"", `the key "history.policy"`},
		"other case":      {"Durability = \"always\"", `the key "Durability"`},
		"no TOML":         {"durability = \"always\"\nlisten = \n", "line 2"},
		"twice":           {"durability = \"always\"\ndurability = \"group\"", "line 2"},
		"boolean":         {"durability = true", "not a boolean"},
		"fraction":        {"hot_session_capacity_target = 1.5", "not a number with a fraction"},
		"list":            {"listen = [\"127.0.0.1:1\"]", "not a list"},
		"table for value": {"[durability]\nx = 1", "not a table"},
		"value":           {"durability = \"sometimes\"", "durability in the configuration file: always, group or process"},
		"count":           {"hot_session_capacity_target = -1", "hot_session_capacity_target in the configuration file: a whole number from 0"},
		"no Jobs":         {"max_concurrent_jobs = 0", "max_concurrent_jobs in the configuration file: a whole number from 1 to 64"},
		"no shells":       {"max_persistent_shells = 0", "max_persistent_shells in the configuration file: a whole number from 1 to 64"},
		"long idle":       {"persistent_shell_idle_timeout = \"2d\"", "persistent_shell_idle_timeout in the configuration file: a duration from 1s to 1d"},
		"many Jobs":       {"max_concurrent_jobs = 65", "max_concurrent_jobs in the configuration file: a whole number from 1 to 64"},
		"size":            {"[history]\nmax_bytes = \"lots\"", "history.max_bytes in the configuration file: a size"},
		"duration":        {"[history]\nmax_age = \"90 days\"", "history.max_age in the configuration file: a duration"},
		"not loopback":    {"listen = \"0.0.0.0:80\"", "listen in the configuration file: a loopback address only"},
		"secret in URL":   {"public_url = \"https://user:MARKER@host\"", "public_url in the configuration file: the address"},
		"small log":       {"[log]\nmax_bytes = \"1kB\"", "at least 16MiB"},
		"too large":       {strings.Repeat("# filler\n", maxConfigBytes/9+1), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t)
			var out, errs bytes.Buffer
			code := runProgram(t.Context(), []string{"config", "--config", configFile(t, tc.body)}, strings.NewReader(""), &out, &errs)
			if code != exitUsage || !strings.Contains(errs.String(), tc.says) || strings.Contains(errs.String(), "MARKER") || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("exit %d: %s", code, errs.String())
			}
		})
	}
	alone(t)
	t.Setenv("WEBCODEX_SCRUB_RATE", "fast")
	if _, err := loadConfig("", nil); err == nil || !strings.HasPrefix(err.Error(), "WEBCODEX_SCRUB_RATE: a size") {
		t.Errorf("%v", err)
	}
	t.Setenv("WEBCODEX_SCRUB_RATE", "")
	if _, err := loadConfig("", map[string]string{"scrub.interval": "1s"}); err == nil || !strings.HasPrefix(err.Error(), "--scrub-interval: a duration of at least 1m") {
		t.Errorf("%v", err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none.toml"), fifo} {
		if _, err := loadConfig(dir, nil); codeOf(err) != exitUsage {
			t.Errorf("%v", err)
		}
		t.Setenv("WEBCODEX_CONFIG", dir)
		if _, err := loadConfig("", nil); codeOf(err) != exitUsage {
			t.Errorf("%v", err)
		}
		t.Setenv("WEBCODEX_CONFIG", "")
	}
}

// The default file is read where it is and missed where it is not.
func TestConfigDefaultFile(t *testing.T) {
	alone(t)
	e, err := loadConfig("", nil)
	if err != nil || e.read || e.file == "" {
		t.Fatalf("%+v, %v", e, err)
	}
	if err := os.MkdirAll(filepath.Dir(e.file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.file, []byte("durability = \"group\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err = loadConfig("", nil); err != nil || !e.read || e.Durability != eventlog.Group {
		t.Errorf("%+v, %v", e, err)
	}
	t.Setenv("WEBCODEX_CONFIG", configFile(t, "durability = \"process\""))
	if e, err = loadConfig("", nil); err != nil || e.Durability != eventlog.Process {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = loadConfig(configFile(t, ""), nil); err != nil || e.Durability != eventlog.Always || !e.read {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestConfigCommand(t *testing.T) {
	alone(t)
	t.Setenv("WEBCODEX_LISTEN", "127.0.0.1:9")
	file := configFile(t, "hot_session_capacity_target = 7\n[history]\npolicy = \"tail\"\n")
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := runProgram(t.Context(), append([]string{"config", "--config", file, "--durability", "group"}, args...), strings.NewReader(""), &out, &errs); code != exitOK {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		return out.String()
	}
	text := run()
	for _, line := range []string{`durability +group +--durability`, `listen +127\.0\.0\.1:9 +WEBCODEX_LISTEN`, `hot_session_capacity_target +7 +the configuration file`,
		`history\.policy +tail +the configuration file`, `history\.max_age +90d +default`, `public_url +- +default`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(text) {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	var got configOut
	if err := json.Unmarshal([]byte(run("--json")), &got); err != nil || got.File != file || !got.FileRead || len(got.Settings) != len(configTable) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, s := range configTable {
		if x := got.Settings[i]; x.Key != s.key || x.Env != s.env() || x.Flag != "--"+s.flag() {
			t.Errorf("%+v", x)
		}
	}
	if got.Settings[0].Source != fromFlag || got.Settings[1].Source != fromEnv || got.Settings[3].Source != fromFile || got.Settings[2].Source != fromDefault {
		t.Errorf("%+v", got.Settings)
	}
}

// What is shown of a value is read back as the same value, and any text is read or refused.
func TestConfigValuesGoRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(90_000*day)).Draw(t, "d"))
		var back time.Duration
		if err := setDuration(&back, showDuration(d), 0); err != nil || back != d {
			t.Fatalf("%s: %s, %v", showDuration(d), back, err)
		}
		n, sizeBack := rapid.Int64Range(0, 1<<52).Draw(t, "n"), int64(-1)
		if err := setBytes(&sizeBack, showBytes(n), 0); err != nil || sizeBack != n {
			t.Fatalf("%s: %d, %v", showBytes(n), sizeBack, err)
		}
		text := rapid.String().Draw(t, "text")
		for _, s := range configTable {
			c := DefaultConfig()
			if err := s.set(&c, text); err == nil {
				var again Config
				if err := s.set(&again, s.show(c)); err != nil {
					t.Fatalf("%s: %q is shown as %q, which is refused: %v", s.key, text, s.show(c), err)
				}
			}
		}
	})
}

func FuzzConfigFile(f *testing.F) {
	f.Add("durability = \"always\"\n[history]\nmax_age = \"1d\"\n")
	f.Add("[history.max_age]\nx = 1")
	f.Add("a.b.c = 1")
	f.Fuzz(func(t *testing.T, body string) {
		values, err := parseConfig(body)
		if err != nil {
			if codeOf(err) != exitUsage {
				t.Fatalf("%v", err)
			}
			return
		}
		var tree map[string]any
		if _, err := toml.Decode(body, &tree); err != nil {
			t.Fatalf("%q was read: %v", body, err)
		}
		for key := range values {
			if _, ok := settingOf(key); !ok {
				t.Fatalf("%q has the key %q", body, key)
			}
		}
	})
}
