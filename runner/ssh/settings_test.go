package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/ssh/sshtest"
)

const someone = "host = \"h.example\"\nuser = \"u\"\nagent = true\n"

// A name is what EXE-04 allows; each bound holds at its value and not one past it.
// Covers: EXE-04
func TestNamesAndDirectories(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a": true, "build-1_x.y": true, strings.Repeat("n", 80): true, strings.Repeat("n", 81): false,
		"": false, "a..b": false, "a/b": false, "ä": false, "a b": false, "a\n": false, ".": true,
	} {
		if ValidName(name) != ok {
			t.Errorf("%q: %v", name, !ok)
		}
	}
	if !ValidCwd(strings.Repeat("d", 4096)) || ValidCwd(strings.Repeat("d", 4097)) || ValidCwd("a\x00") || ValidCwd("a\n") || !ValidCwd("") {
		t.Error("the bounds of a remote directory")
	}
}

// What the operator wrote is taken whole or not at all, and a key that is none is an error.
func TestSettingsAreStrict(t *testing.T) {
	t.Parallel()
	table := func(name, body string) string { return "[ssh.resources." + name + "]\n" + body }
	many := ""
	for i := range maxResources + 1 {
		many += table("r"+strings.Repeat("x", i), someone)
	}
	for name, text := range map[string]string{
		"unknown key":     table("a", someone+"password = \"x\"\n"),
		"unknown table":   "[other]\n",
		"no host":         table("a", "user = \"u\"\nagent = true\n"),
		"no user":         table("a", "host = \"h\"\nagent = true\n"),
		"no key":          table("a", "host = \"h\"\nuser = \"u\"\n"),
		"port":            table("a", someone+"port = 65536\n"),
		"port below":      table("a", someone+"port = -1\n"),
		"name":            table("\"a/b\"", someone),
		"relative file":   table("a", someone+"identity_files = [\"id\"]\n"),
		"seven keys":      table("a", someone+"identity_files = [\"/1\",\"/2\",\"/3\",\"/4\",\"/5\",\"/6\",\"/7\"]\n"),
		"jump to nothing": table("a", someone+"jump = \"b\"\n"),
		"circle":          table("a", someone+"jump = \"b\"\n") + table("b", someone+"jump = \"a\"\n"),
		"itself":          table("a", someone+"jump = \"a\"\n"),
		"directory":       table("a", someone+"default_cwd = \"a\\nb\"\n"),
		"too many":        many,
		"no TOML":         "[",
	} {
		if _, err := parseSettings(text, "/home/u"); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	s, err := parseSettings(table("a", someone+"description = \"one\"\n")+table("b", someone+"jump = \"a\"\n")+table("c", someone+"jump = \"b\"\n")+
		table("d", someone+"jump = \"c\"\n"), "/home/u")
	must(t, err)
	if n := len(s.targets["d"].hops); n != maxHops {
		t.Errorf("%d hops", n)
	}
	if a := s.targets["a"].hops[0]; a.Port != 22 || a.KnownHosts[0] != "/home/u/.ssh/known_hosts" {
		t.Errorf("%+v", a)
	}
	if _, err := parseSettings(table("a", someone)+table("b", someone+"jump = \"a\"\n")+table("c", someone+"jump = \"b\"\n")+
		table("d", someone+"jump = \"c\"\n")+table("e", someone+"jump = \"d\"\n"), "/home/u"); err == nil {
		t.Error("five hops were taken")
	}
	changed, err := parseSettings(table("a", someone+"port = 2222\n")+table("b", someone+"jump = \"a\"\n")+table("x", someone), "/home/u")
	must(t, err)
	if changed.targets["b"].generation == s.targets["b"].generation {
		t.Error("a change on the way is no new generation")
	}
	described, err := parseSettings(table("a", someone+"description = \"two\"\n"), "/home/u")
	must(t, err)
	if described.targets["a"].generation != s.targets["a"].generation {
		t.Error("another description is a new generation")
	}
}

// Settings that cannot be used refuse every resource, without a word of what they say; settings
// that are not there have none.
func TestUnusableSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "ssh.toml")
	r := New(Options{File: file, Home: dir})
	defer r.Close()
	w := &world{t: t, dir: dir, file: file, r: r, Host: &sshtest.Host{Port: "no port", Log: &sshtest.Buffer{}}, user: "nobody-of-note"}
	if f := w.refused("build"); f.Kind != fault.SSHResourceNotFound {
		t.Errorf("no settings: %+v", f)
	}
	w.write("[ssh.resources.build]\nsecret = \"marker\"\n")
	f := w.refused("build")
	if f.Kind != fault.Unavailable || f.Reason != "ssh_settings_invalid" || strings.Contains(f.Message+f.Next, "marker") {
		t.Errorf("bad settings: %+v", f)
	}
	w.write("[ssh.resources.build]\n" + someone)
	must(t, os.Chmod(file, 0o666))
	if f := w.refused("build"); f.Reason != "ssh_settings_invalid" {
		t.Errorf("settings that others may write: %+v", f)
	}
	w.write("#" + strings.Repeat("x", maxFile))
	if f := w.refused("build"); f.Reason != "ssh_settings_invalid" {
		t.Errorf("settings that are too large: %+v", f)
	}
}
