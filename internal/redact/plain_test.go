package redact

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pieces that rules are made of.
var pieces = []string{"-", "--", "_", ".", ":", "=", "==", ":=", "=>", " ", "\n", "\r\n", "\t", "\"", "'", "`", ",", "\\", "/", "@", "%20", "[", "]",
	"token", "Token", "TOKEN", "pass", "password", "PASS", "pwd", "auth", "Auth", "AUTH", "author", "pat", "PAT", "path", "key", "api", "Key", "KEY",
	"db", "connection", "string", "secret", "cookie", "basic", "bearer", "Bearer", "jwt", "credential", "user", "mysql", "curl", "docker", "login",
	"zip", "-p", "-P", "-u", "-a", "-w", "-hp", "ghp_", "sk-", "wc_pat_", "wcx_", "wc_exec_", "AKIA", "eyJ", "xoxb-", "npm_", "hf_", "SG.", "dapi", "AIza",
	"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "hunter2", "abcd", "x1", "Zz9", "0123456789abcdef", "A1b2C3d4E5f6G7h8",
	"configuration", "internal/redact", "é", "漢", "\u200d", "ſ", "\u212a", "\xff", "https://", "mail", "1", "7z", "SA", "ABCDEFGHIJ234567"}

func drawPieces(t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(1, 9).Draw(t, "pieces") {
		p := rapid.SampledFrom(pieces).Draw(t, "piece")
		switch rapid.IntRange(0, 9).Draw(t, "form") {
		case 0:
			p = base64.StdEncoding.EncodeToString([]byte(p + "=hunter2hunter2"))
		case 1:
			p = hex.EncodeToString([]byte(p + ": hunter22"))
		case 2:
			p = strings.Repeat(p, rapid.IntRange(1, 30).Draw(t, "repeat"))
		case 3:
			p = rapid.StringMatching(`[A-Za-z0-9]{8,40}`).Draw(t, "random")
		}
		b.WriteString(p)
	}
	return b.String()
}

// What needs no look has nothing that any rule would find.
func TestPlainHoldsNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawPieces(t)
		if valid := strings.ToValidUTF8(s, "\ufffd"); plain(valid) && scrubAll(valid) != valid {
			t.Fatalf("%q is taken for plain and gives %q", valid, scrubAll(valid))
		}
	})
}

// The texts that are most of what is stored need no look.
func TestOrdinaryTextIsPlain(t *testing.T) {
	for _, s := range []string{"", "go.mod", "internal/config/parser_test.go", "cmd/webcodex/stop_test.go", "go_test", "wc_exec_0123456789abcdef0123456789abcdef",
		"Fix the parser of configuration files, so that it reads comments", "Ändere die Prüfung: sie ist zu streng", "./...", "main",
		"the command ended with exit code 1", "src/components/Button/Button.module.css", "docs/decisions/0021-state-db.md"} {
		if !plain(s) {
			t.Errorf("%q is looked at", s)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range pieces {
		f.Add(s + "=hunter2hunter2")
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s = strings.ToValidUTF8(s, "\ufffd"); plain(s) && scrubAll(s) != s {
			t.Fatalf("%q gives %q", s, scrubAll(s))
		}
	})
}

func BenchmarkText(b *testing.B) {
	for name, s := range map[string]string{
		"title":       "Fix the parser of configuration files so that it reads comments",
		"instruction": strings.Repeat("Fix the parser of configuration files: it should read comments.\n", 60),
		"path":        "internal/config/parser_test.go",
		"password":    "the password is given with --password",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Text(s, 4000)
			}
		})
	}
}
