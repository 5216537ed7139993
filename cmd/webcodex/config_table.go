package main

import (
	"flag"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/retention"
	"webcodex/eventlog"
	"webcodex/runner"
	link "webcodex/runner/link/client"
	"webcodex/runner/shell"
)

// setting is one thing an operator may choose. The table below is all there is: the file's
// keys, the flags of `up`, the variables and docs/config.md are made from it.
type setting struct {
	key  string // in the file, with its table: history.max_age
	form string // what a value looks like
	help string // one sentence
	// set reads a value into c; its error says what a value looks like and quotes none.
	set  func(c *Config, value string) error
	show func(c Config) string
}

// flag and env are the key in the other two places.
func (s setting) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.key) }
func (s setting) env() string {
	return "WEBCODEX_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// Bounds of the counts.
const (
	maxHotSessions      = 100_000
	maxRetainedSessions = retention.MaxLimit
)

var configTable = []setting{
	{"durability", "always, group or process", "what an answer promises: always and group survive a power cut, process survives kill -9",
		func(c *Config, v string) error {
			if c.Durability = eventlog.Durability(v); !c.Durability.Valid() {
				return usagef("always, group or process")
			}
			return nil
		}, func(c Config) string { return string(c.Durability) }},
	{"listen", "HOST:PORT", "where hosts connect, on loopback; port 0 picks a free one; empty: the port that the data directory remembers",
		func(c *Config, v string) error {
			c.Listen = v
			if v == "" {
				return nil
			}
			_, err := loopback(v)
			return err
		}, func(c Config) string { return c.Listen }},
	{"public_url", "https://NAME", "address under which a tunnel reaches this server; empty: none",
		func(c *Config, v string) error {
			c.PublicURL = v
			return checkPublicURL(v)
		}, func(c Config) string { return c.PublicURL }},
	{"hot_session_capacity_target", "0 to 100000", "how many Sessions are kept in memory, a count and not bytes; the others are read from disk when they are named",
		func(c *Config, v string) error { return setCount(&c.HotSessions, v, maxHotSessions) },
		func(c Config) string { return strconv.Itoa(c.HotSessions) }},
	{"historical_session_retention_limit", "0 to 1000000", "how many Closed Sessions are kept; the oldest beyond it are removed, Active ones never",
		func(c *Config, v string) error { return setCount(&c.RetainedSessions, v, maxRetainedSessions) },
		func(c Config) string { return strconv.Itoa(c.RetainedSessions) }},
	{"max_concurrent_jobs", "1 to 64", "how many Jobs the Runner runs at once; more wait in line, and calls that are waited for take no part in it",
		func(c *Config, v string) error {
			if err := setCount(&c.Jobs, v, runner.MaxJobs); err != nil || c.Jobs == 0 {
				return usagef("a whole number from 1 to %d", runner.MaxJobs)
			}
			return nil
		}, func(c Config) string { return strconv.Itoa(c.Jobs) }},
	{"max_persistent_shells", "1 to 64", "how many persistent shells the Runner of this process keeps",
		func(c *Config, v string) error {
			if err := setCount(&c.Shells, v, shell.MaxShells); err != nil || c.Shells == 0 {
				return usagef("a whole number from 1 to %d", shell.MaxShells)
			}
			return nil
		}, func(c Config) string { return strconv.Itoa(c.Shells) }},
	{"persistent_shell_idle_timeout", "a duration like 30m", "how long a persistent shell may be unused before it is ended, 1s to 1d",
		func(c *Config, v string) error {
			if err := setDuration(&c.ShellIdle, v, shell.MinIdle); err != nil || c.ShellIdle > shell.MaxIdle {
				return usagef("a duration from 1s to 1d")
			}
			return nil
		}, func(c Config) string { return showDuration(c.ShellIdle) }},
	{"history.policy", "full or tail", "what the log keeps for replay: full keeps what the next two allow, tail only what is alive",
		func(c *Config, v string) error {
			if c.History.Policy = v; v != HistoryFull && v != HistoryTail {
				return usagef("full or tail")
			}
			return nil
		}, func(c Config) string { return c.History.Policy }},
	{"history.max_age", "a duration like 90d or 12h", "how old a commit may get that nothing alive needs; 0: no bound",
		func(c *Config, v string) error { return setDuration(&c.History.MaxAge, v, 0) },
		func(c Config) string { return showDuration(c.History.MaxAge) }},
	{"history.max_bytes", "a size like 4GiB", "how large the log may get before its oldest blocks leave; 0: no bound",
		func(c *Config, v string) error { return setBytes(&c.History.MaxBytes, v, 0) },
		func(c Config) string { return showBytes(c.History.MaxBytes) }},
	{"log.max_bytes", "a size like 20GiB", "the log's budget, at least 16MiB: at 80 % its oldest blocks leave, whatever history.max_bytes allows, and at 90 % new work is refused; 0: 70 % of the space that was free at the first start",
		func(c *Config, v string) error { return setBytes(&c.LogMaxBytes, v, minLogBytes) },
		func(c Config) string { return showBytes(c.LogMaxBytes) }},
	{"scrub.rate", "a size like 16MiB", "how many bytes a second the background check of the log may read; 0: it is off",
		func(c *Config, v string) error { return setBytes(&c.ScrubRate, v, 0) },
		func(c Config) string { return showBytes(c.ScrubRate) }},
	{"scrub.interval", "a duration like 24h", "how often the background check of the log begins anew",
		func(c *Config, v string) error { return setDuration(&c.ScrubInterval, v, time.Minute) },
		func(c Config) string { return showDuration(c.ScrubInterval) }},
	{"mcp.host_profile", "direct or host_code_mode", "the form of guidance for MCP hosts that tell none of their own with X-WebCodex-MCP-Profile; empty: direct",
		func(c *Config, v string) error {
			if c.HostProfile = v; v != "" && !slices.Contains(call.Profiles, v) {
				return usagef("direct or host_code_mode")
			}
			return nil
		}, func(c Config) string { return c.HostProfile }},
	{"runner.allowed_roots", "DIR:DIR", "directories below which callers may register and create Projects; empty: only what the owner names is served",
		func(c *Config, v string) error { return setRoots(&c.AllowedRoots, v) },
		func(c Config) string { return c.AllowedRoots }},
	{"runner.listen", "HOST:PORT", "where Runners on other machines connect, with TLS 1.3; nats://HOST:PORT on loopback: without; empty: nowhere",
		func(c *Config, v string) error {
			c.Runners.Listen = v
			_, err := c.Runners.address()
			return err
		}, func(c Config) string { return c.Runners.Listen }},
	{"runner.ws_listen", "HOST:PORT", "where a proxy with HTTPS brings Runners in over WebSocket, on loopback; empty: nowhere",
		func(c *Config, v string) error {
			c.Runners.WSListen = v
			if v == "" {
				return nil
			}
			_, err := loopback(v)
			return err
		}, func(c Config) string { return c.Runners.WSListen }},
	{"runner.tls_cert", "a file", "certificate chain (PEM) of runner.listen, read again when it changes; empty: one of the server's own, which enrolment codes name",
		func(c *Config, v string) error { c.Runners.TLSCert = v; return nil }, func(c Config) string { return c.Runners.TLSCert }},
	{"runner.tls_key", "a file", "private key (PEM) of runner.tls_cert",
		func(c *Config, v string) error { c.Runners.TLSKey = v; return nil }, func(c Config) string { return c.Runners.TLSKey }},
	{"runner.url", "tls://HOST:PORT or wss://HOST", "the server's address that enrolment codes tell Runners; empty: that of the listener",
		func(c *Config, v string) error {
			if c.Runners.URL = v; v != "" && link.CheckURL(v) != nil {
				return usagef("tls://HOST:PORT, or wss://HOST of a proxy with HTTPS")
			}
			return nil
		}, func(c Config) string { return c.Runners.URL }},
}

// minLogBytes is the smallest budget: the log leaves in whole blocks of 4 MiB, and in a smaller
// one nothing could leave before new work is refused.
const minLogBytes = 16 << 20

func settingOf(key string) (setting, bool) {
	for _, s := range configTable {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

// configFlags declares --config and a flag for each setting. The function gives the Config
// that file, variables and flags make together, and where each value is from.
func configFlags(fs *flag.FlagSet) func() (effective, error) {
	file := configFlag(fs)
	values := map[string]*string{}
	for _, s := range configTable {
		values[s.key] = fs.String(s.flag(), s.show(DefaultConfig()), fmt.Sprintf("`%s`: %s", word(s), s.help))
	}
	return func() (effective, error) {
		flags := map[string]string{}
		for _, s := range configTable {
			if given(fs, s.flag()) {
				flags[s.key] = *values[s.key]
			}
		}
		return loadConfig(*file, flags)
	}
}

// configFlag declares --config alone.
func configFlag(fs *flag.FlagSet) *string {
	return fs.String("config", "", "configuration `FILE`; default: WEBCODEX_CONFIG, else config.toml in the user's configuration directory")
}

// word is how the usage calls a value.
func word(s setting) string {
	switch {
	case strings.HasPrefix(s.form, "a size"):
		return "SIZE"
	case strings.HasPrefix(s.form, "a duration"):
		return "TIME"
	case s.form == "HOST:PORT":
		return "HOST:PORT"
	case s.form == "a file":
		return "FILE"
	case s.key == "public_url", s.key == "runner.url":
		return "URL"
	case s.key == "durability":
		return "MODE"
	case s.key == "history.policy":
		return "POLICY"
	}
	return "N"
}

func checkPublicURL(v string) error {
	if v == "" {
		return nil
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Trim(u.Path, "/") != "" {
		return usagef("the address hosts on the internet use, https://NAME without a path")
	}
	return nil
}

// setRoots reads directories as PATH has them.
func setRoots(to *string, v string) error {
	*to = ""
	if v == "" {
		return nil
	}
	roots, err := runner.CheckAllowedRoots(strings.Split(v, ":"))
	if err != nil {
		return usagef("absolute directories with a colon between them")
	}
	*to = strings.Join(roots, ":")
	return nil
}

func setCount(to *int, v string, most int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > most {
		return usagef("a whole number from 0 to %d", most)
	}
	*to = n
	return nil
}

// units of sizes; what stands alone is bytes.
var units = []struct {
	name  string
	bytes float64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}}

// setBytes reads a size; 0 is always one, else least is the smallest.
func setBytes(to *int64, v string, least int64) error {
	text, unit := strings.TrimSpace(v), 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	n *= unit
	switch {
	case err != nil || n < 0 || n > math.MaxInt64/2 || n != math.Trunc(n):
		return usagef("a size, for example 512MiB or 4GiB")
	case n > 0 && n < float64(least):
		return usagef("0, or at least %s", showBytes(least))
	}
	*to = int64(n)
	return nil
}

func showBytes(n int64) string {
	for _, u := range units[:4] {
		if b := int64(u.bytes); n >= b && n%b == 0 {
			return strconv.FormatInt(n/b, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

const day = 24 * time.Hour

// setDuration reads a duration that may begin with days; least is the smallest.
func setDuration(to *time.Duration, v string, least time.Duration) error {
	bad := usagef("a duration, for example 90d or 12h30m")
	text, days := strings.TrimSpace(v), int64(0)
	if n, rest, ok := strings.Cut(text, "d"); ok {
		var err error
		if days, err = strconv.ParseInt(n, 10, 64); err != nil || days < 0 || days > 100_000 {
			return bad
		}
		text = rest
	}
	var rest time.Duration
	if text != "" && text != "0" || v == "" {
		var err error
		if rest, err = time.ParseDuration(text); err != nil || rest < 0 {
			return bad
		}
	}
	d := time.Duration(days)*day + rest
	if d < least {
		return usagef("a duration of at least %s", showDuration(least))
	}
	*to = d
	return nil
}

func showDuration(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	}
	return d.String()
}
