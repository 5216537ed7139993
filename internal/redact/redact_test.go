package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"webcodex/internal/redact"
)

// body is what must never be seen in a result; tests build secrets from it so that this file
// holds none itself.
const body = "q7Zk2Mx9Wd4Rt6Yb1Nc8"

var (
	pem = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + strings.Repeat(body+body+body+"\n", 3) + "aGVsbG8=\n-----END OPENSSH " + "PRIVATE KEY-----"
	jwt = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiI" + body + ".c2lnbmF0dXJl" + body
)

// hiding texts hold body (or a given secret) in a form that must be found.
var hiding = []struct{ name, text, secret string }{
	{"authorization header", "curl -H 'Authorization: Bearer " + body + "' https://example.com", ""},
	{"authorization header, short", "Authorization: Bearer hunter", "hunter"},
	{"authorization, no scheme", `"Authorization": "` + body + `"`, ""},
	{"authorization digest", `Authorization: Digest username="bob", response="` + body + `"`, ""},
	{"proxy authorization basic", "Proxy-Authorization: Basic Ym9iOmh1bnRlcjI=", "Ym9iOmh1bnRlcjI"},
	{"bearer alone", "use bearer " + body + " for it", ""},
	{"bearer in two arguments", `["Bearer", "` + body + `"]`, ""},
	{"bearer letters", "Bearer correcthorsebattery", "correcthorse"},
	{"github classic", "token is ghp_" + body, ""},
	{"github oauth", "gho_" + body, ""},
	{"github server", "x-access-token:ghs_" + body + "@github.com", ""},
	{"github fine grained", "github_pat_" + body + "_" + body, ""},
	{"inside a word", "my_ghp_" + body, ""},
	{"openai", "sk-" + body, ""},
	{"openai project", "sk-proj-" + body + "-x", ""},
	{"stripe", "sk_live_" + body, ""},
	{"slack", "xoxb-1234-" + body, ""},
	{"aws id", "AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7"},
	{"aws secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY", "wJalrXUtn"},
	{"random with slashes alone", "the key q7Zk2Mx9Wd4Rt6/Yb1Nc8/" + "Xk29fLq0PzR7vW3mN8 was there", "Xk29fLq0"},
	{"jwt", "cookie jar " + jwt, ""},
	{"own token", "wc_" + "pat_" + body, ""},
	{"own local token", "wcx_" + body, ""},
	{"nkey seed", "SU" + "AM7V5YS3HKD6QIWE4SBPJU6RVIVRGKNYKV2OUEK4PHMDVQRE5QWCBH6A", "5YS3HKD6"},
	{"pem", "before\n" + pem + "\nafter", ""},
	{"pem in json", strings.ReplaceAll(pem, "\n", `\n`), ""},
	{"pem quoted", strings.ReplaceAll(pem, "\n", "\n> "), ""},
	{"pem on one line", strings.ReplaceAll(pem, "\n", " "), ""},
	{"pem without end", pem[:len(pem)-60], ""},
	{"pem without begin", pem[40:], ""},
	{"flag", "deploy --token abc now", "abc"},
	{"flag with equals", "deploy --password=hunter2", "hunter2"},
	{"flag quoted", `deploy --api-key "a b c"`, "a b c"},
	{"flag in two arguments", `{"args": ["--token", "abc"]}`, `"abc"`},
	{"flag in two single-quoted arguments", `['--db-password', 'horse']`, "horse"},
	{"go flag", "prog -token abc123", "abc123"},
	{"curl user", "curl -u bob:hunter2 https://example.com", "hunter2"},
	{"glued short flag", "mysql -phunter2 -u root", "hunter2"},
	{"glued short flag behind others", "/usr/bin/mysqldump -h db -u root --quick -phunter2 shop", "hunter2"},
	{"glued short flag, digits", "mysql -u root -p12345678", "12345678"},
	{"glued short flag, quoted", `mysql -uroot -p'horse battery' shop`, "battery"},
	{"glued short flag in two arguments", `["mysql", "-u", "root", "-phorse"]`, "horse"},
	{"glued short flag in lines of arguments", "[\n  \"mariadb\",\n  \"-phorse\"\n]", "horse"},
	{"glued short flag after a table", "mysqldump shop orders -phorse", "horse"},
	{"glued short flag of the second command", "cd /srv && mysql -phorse <dump.sql", "horse"},
	{"sshpass", "sshpass -phorse ssh bob@example.com", "horse"},
	{"sshpass, short", "sshpass -pabc ssh bob@example.com", "abc"},
	{"sshpass apart", "sshpass -p horse ssh bob@example.com", "horse"},
	{"sshpass quoted", `sshpass -p 'horse-battery' ssh bob@example.com`, "horse"},
	{"login", "docker login -u bob -p horse registry.example.com", "horse"},
	{"archive", "7z x -phorse a.7z", "horse"},
	{"redis", "redis-cli -h db -a horse ping", "horse"},
	{"sql", "sqlcmd -S db -U sa -Phorse1", "horse1"},
	{"curl user glued", "curl -sS -ubob:hunter2 https://example.com", "hunter2"},
	{"env", "API_KEY=" + body + " make", ""},
	{"env export", "export DB_PASSWORD='horse battery'", "horse"},
	{"env one word", "SECRET=horse make", "horse"},
	{"yaml", "password: hunter2", "hunter2"},
	{"yaml word", "password: horse\nuser: bob", "horse"},
	{"json", `{"client_secret":"horse"}`, "horse"},
	{"json in json", `{\"clientSecret\": \"horse\"}`, "horse"},
	{"camel", `accessToken: "horse"`, "horse"},
	{"go code literal", `password := "horse"`, "horse"},
	{"url userinfo", "postgres://bob:hunter2@db.example.com/x", "hunter2"},
	{"url userinfo with at", "https://bob:hun@ter2@example.com/x", "ter2"},
	{"url token only", "https://" + body + body + "@example.com", ""},
	{"userinfo alone", "bob:hunter2@db:5432", "hunter2"},
	{"url query", "https://example.com/x?access_token=" + body + "&y=1", ""},
	{"cookie", "Cookie: sid=horse; theme=dark", "horse"},
	{"base64", base64.StdEncoding.EncodeToString([]byte("ghp_" + body)), "Z2hwX"},
	{"base64 of a header", base64.StdEncoding.EncodeToString([]byte("Authorization: Bearer " + body)), "QXV0aG9yaX"},
	{"base64 of userinfo", base64.StdEncoding.EncodeToString([]byte("bob:hunter2@example.com")), "Ym9iOmh1"},
	{"base64 url", base64.RawURLEncoding.EncodeToString([]byte("password=hunter2??>>")), "cGFzc3dvcm"},
	{"base64 wrapped", wrap(base64.StdEncoding.EncodeToString([]byte("some words first, then ghp_"+body+" and some more words")), 24), "NeDlX"},
	{"base64 twice", base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("ghp_" + body)))), "WjJod1"},
	{"hex", hex.EncodeToString([]byte("ghp_" + body)), "6768705f"},
	{"percent", url.QueryEscape("Authorization: Bearer " + body), ""},
	{"percent of userinfo", url.PathEscape("bob:hunter2@example.com"), "hunter2"},
	{"percent twice", "next=" + url.QueryEscape(url.QueryEscape("password=hunter2")), "hunter2"},
	{"percent inside", "gh%70_" + body, ""},
	{"zero width inside", "ghp_q7Zk\u200b2Mx9Wd4Rt6Yb1Nc8", "2Mx9Wd4R"},
	{"random", "use Xk29fLq0PzR7vW3mN8sB1tYc6HdJ4gA5 there", "Xk29fLq0"},
	{"random hex of 32", "key 9f86d081884c7d659a2feaa0c55ad015", "9f86d081"},
}

func wrap(s string, width int) string {
	var out strings.Builder
	for i := 0; i < len(s); i += width {
		out.WriteString(s[i:min(i+width, len(s))] + "\n")
	}
	return out.String()
}

// Covers: HND-13
func TestTextHidesSecretsAsTheyOccur(t *testing.T) {
	for _, tc := range hiding {
		t.Run(tc.name, func(t *testing.T) {
			secret := tc.secret
			if secret == "" {
				secret = body
			}
			if !strings.Contains(tc.text, secret) {
				t.Fatalf("the row is wrong: %q does not hold %q", tc.text, secret)
			}
			for _, text := range []string{tc.text, "first\n" + tc.text + "\nlast", "(" + tc.text + ")"} {
				got := redact.Text(text, 4000)
				if strings.Contains(got, secret) || !strings.Contains(got, redact.Mark) {
					t.Errorf("Text(%q) = %q", text, got)
				}
				if again := redact.Text(got, 4000); again != got {
					t.Errorf("not stable: %q, then %q", got, again)
				}
			}
			if !redact.Secret(tc.text) {
				t.Errorf("Secret(%q) = false", tc.text)
			}
		})
	}
}

// Covers: HND-13
func TestTextLeavesPathsCommandsCodeAndProse(t *testing.T) {
	for _, text := range []string{
		"",
		"Fix the failing test in projections/session/core.go and keep the tokens_total field.",
		"Open /home/bob/src/webcodex/internal/redact/redact_test.go:120 and C:\\Users\\bob\\src\\main.go",
		`see \\server\share\dir and file:///etc/hosts and https://example.com/a/b?page=2#top`,
		"git clone git@github.com:owner/name.git && git checkout 3f786850e387550fdab836ed7e6dc881de23001b",
		"sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"wc_sess_0123456789abcdef0123456789abcdef and evt_0123456789abcdef0123456789abcdef",
		"550e8400-e29b-41d4-a716-446655440000",
		"go test ./... -run TestTokenBucketRefillsAfterTheWindowHasPassed2 -count=50",
		"TestHandoffBriefIsDeterministicAcrossRestartsAndClockSteps2026",
		"golang.org/x/sys v0.0.0-20230129092748-24d4a6f8daec h1:W09IVJc94icq4NjY3clb7Lk8O1qJ8BdBEF8z0ibU0rE=",
		"the bearer token middleware; Bearer authentication and bearer-only routes",
		"func (t *Token) next() string { token := lex(); return token.text }",
		"type Token string; const password = os.Getenv(\"DB\")",
		"token: string; secret: Optional[str]",
		"password is required, the token expired, secret: missing",
		"export TOKEN=$TOKEN; PASSWORD=${PASSWORD:-} API_KEY=$(cat key)",
		"webcodex up --show-token please, and --max-tokens 4096",
		"tokenizer=bert-base-uncased max_tokens=4096 token_count: 12 password_file=/etc/pw",
		"npm:left-pad@1.3.0 mailto:bob@example.com ssh://git@example.com/x",
		"ratio 10:30 at home, user@example.com, http://127.0.0.1:8787/mcp",
		"scikit-learn task-based-dispatch-and-observation-of-long-running-jobs sk-learn",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"Größe ändern, 日本語のテキスト, emoji 👩‍👩‍👧 stay",
		"agent:3f9a1c2e:web-codex-0a1b2c3d",
		"mysql -u root -p shop, mysql -p$MYSQL_PWD, mysql -p\"$PW\" shop and mysql -p",
		"start mysql with docker run -p3306:3306 mysql:8, then docker run -p 8080:80 web",
		"ssh -p2222 host, mkdir -pv a/b, nc -p8080, git log -p -u, cp -pr a b, docker compose -p shop up",
		"sshpass -p is not safe; unzip -p a.zip file; curl -u bob https://example.com; zip -r a.zip dir",
		"the mysql service must be up before the tests run -parallel 4",
		"mysql -p[password] and mysql -p<password> are the same",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"20261129120000000000000000000000000001",
	} {
		if got := redact.Text(text, 4000); got != text {
			t.Errorf("Text(%q) = %q", text, got)
		}
		if redact.Secret(text) {
			t.Errorf("Secret(%q) = true", text)
		}
	}
}

// Covers: HND-13
func TestTextIsBoundedInCharactersAndValid(t *testing.T) {
	for _, tc := range []struct {
		in   string
		max  int
		want string
	}{
		{"abc", 2, "ab"},
		{"abc", 3, "abc"},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"äöü€𝄞x", 5, "äöü€𝄞"},
		{"a\xffb", 10, "a\ufffdb"},
		{"a\xed\xa0\x80b", 10, "a\ufffdb"}, // a lone surrogate
		{"\xf0\x9f\x98", 10, "\ufffd"},
		{strings.Repeat("ä ", 100000), 240, strings.Repeat("ä ", 120)},
	} {
		got := redact.Text(tc.in, tc.max)
		if got != tc.want {
			t.Errorf("Text(%q, %d) = %q, want %q", tc.in, tc.max, got, tc.want)
		}
	}
	long := strings.Repeat("word ", 900) + "ghp_" + body
	if got := redact.Text(long, 4505); strings.Contains(got, "ghp_") {
		t.Errorf("a secret across the bound shows its head: %q", got[len(got)-40:])
	}
}

func TestForTerminalShowsWhatWouldActOnATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 日":           "plain ä 日",
		"a\x1b[31mred":        `a\x1b[31mred`,
		"a\u009b31m":          `a\x9b31m`,
		"a\u202eb\u2066c":     `a\u202eb\u2066c`,
		"a\u200bb\ufeffc":     `a\u200bb\ufeffc`,
		"one\ntwo\r\n\tthree": `one\ntwo\r\n\tthree`,
		"a\x00\x7f":           `a\x00\x7f`,
		"a\u2028b":            `a\u2028b`,
		"bad\xff":             "bad\ufffd",
	} {
		if got := redact.ForTerminal(in); got != want {
			t.Errorf("ForTerminal(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := redact.ForTerminalBlock("one\r\ntwo\n\tx\x1b"), "one\ntwo\n\tx\\x1b"; got != want {
		t.Errorf("ForTerminalBlock = %q, want %q", got, want)
	}
}

// Covers: EVT-25
func TestPathIsProjectRelative(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.go": "a/b.go", "./a//b/": "a/b", ".": ".", "a b/ü/日.txt": "a b/ü/日.txt", "-rf": "-rf", "..a/b..": "..a/b..",
		"dist/main.d41d8cd98f00b204e9800998ecf8427e.js": "dist/main.d41d8cd98f00b204e9800998ecf8427e.js",
		"keys/ghp_" + body + "/x":                       "keys/" + redact.Mark + "/x",
		"x/password=hunter2":                            "x/" + redact.Mark,
		"internal/token/token.go":                       "internal/token/token.go",
	} {
		if got, ok := redact.Path(in); !ok || got != want {
			t.Errorf("Path(%q) = %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{
		"", "/etc/passwd", "../x", "a/../b", "a/..", `..\x`, `a\..\b`, `C:\x`, "c:/x", `\\host\share`, "~/x", "~",
		"https://example.com/x", "file:/etc/hosts", "data:text/plain,x", "a\x00b", "a\nb", "a\x1bb", "a\u0085b", "a\xff",
		strings.Repeat("a/", 257),
	} {
		if got, ok := redact.Path(in); ok {
			t.Errorf("Path(%q) = %q, true", in, got)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, tc := range hiding {
		f.Add(tc.text, 100)
		f.Add(tc.text, 7)
	}
	f.Add("password: correct horse", 17)
	f.Add("token=[redacted", 9)
	f.Add("a\xff\u200b%%41%3", 3)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(limit, 5000)
		got := redact.Text(s, limit)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > max(limit, 0) {
			t.Fatalf("Text(%q, %d) = %q", s, limit, got)
		}
		if again := redact.Text(got, limit); again != got {
			t.Fatalf("not stable: %q, then %q (from %q, %d)", got, again, s, limit)
		}
		redact.Secret(s)
		if p, ok := redact.Path(s); ok {
			if again, ok := redact.Path(p); !ok || again != p {
				t.Fatalf("Path(%q) = %q, then %q, %v", s, p, again, ok)
			}
		}
		if one := redact.ForTerminal(s); redact.ForTerminal(one) != one || strings.ContainsAny(one, "\n\x1b") {
			t.Fatalf("ForTerminal(%q) = %q", s, one)
		}
	})
}
