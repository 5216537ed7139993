package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

func configCommand() command {
	return command{
		name: "config", short: "show how a server would be run, and what says so",
		long: `Shows every setting with its value and where that is from: a flag counts before a
variable, a variable before the configuration file, the file before the default. It takes
the flags of up, to try them. A running server keeps what it was started with.`,
		setup: func(fs *flag.FlagSet) action {
			load, asJSON := configFlags(fs), jsonFlag(fs)
			return func(_ context.Context, s streams, _ []string) error {
				e, err := load()
				if err != nil {
					return err
				}
				if *asJSON {
					return printJSON(s.out, shownConfig(e))
				}
				return showConfig(s, e)
			}
		},
	}
}

// configOut is `config --json`.
type configOut struct {
	File     string       `json:"file"` // empty: nowhere to look
	FileRead bool         `json:"file_read"`
	Settings []settingOut `json:"settings"`
}

type settingOut struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"` // default, file, env, flag
	Flag   string `json:"flag"`
	Env    string `json:"env"`
}

func shownConfig(e effective) configOut {
	out := configOut{File: e.file, FileRead: e.read}
	for _, s := range configTable {
		from := e.from[s.key]
		if from == "" {
			from = fromDefault
		}
		out.Settings = append(out.Settings, settingOut{s.key, s.show(e.Config), from, "--" + s.flag(), s.env()})
	}
	return out
}

func showConfig(s streams, e effective) error {
	t := newTable(s.out)
	for _, x := range shownConfig(e).Settings {
		value := x.Value
		if value == "" {
			value = "-"
		}
		t.row(x.Key, value, e.origin(x.Key))
	}
	t.flush()
	state := "there is none at"
	if e.read {
		state = "read from"
	}
	_, err := fmt.Fprintf(s.out, "\nconfiguration file: %s %s\n", state, clean(e.file))
	return err
}

// configDoc is docs/config.md.
func configDoc() string {
	var b strings.Builder
	b.WriteString(`# Settings

Made from the table in ` + "`cmd/webcodex/config_table.go`" + ` by ` + "`make generate`" + `.

A server runs with defaults and needs no file. What is chosen comes from one TOML file, from
variables, or from the flags of ` + "`webcodex up`" + `: a flag counts before a variable, a variable before
the file, the file before the default. ` + "`webcodex config`" + ` shows what holds and what says so.

The file is ` + "`config.toml`" + ` in the folder ` + "`webcodex`" + ` of the user's configuration directory
(` + "`~/.config`" + `, on macOS ` + "`~/Library/Application Support`" + `); ` + "`--config FILE`" + ` or ` + "`WEBCODEX_CONFIG`" + `
name another one, which then has to be there. A key that is none is an error.

`)
	b.WriteString("```toml\n")
	def, table := DefaultConfig(), ""
	for _, s := range configTable {
		name := s.key
		if in, key, ok := strings.Cut(s.key, "."); ok {
			if in != table {
				fmt.Fprintf(&b, "\n[%s]\n", in)
				table = in
			}
			name = key
		}
		value := s.show(def)
		if !strings.HasPrefix(s.form, "0 to") {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&b, "%s = %s\n", name, value)
	}
	b.WriteString("```\n\n| key | flag | variable | value | default | |\n|---|---|---|---|---|---|\n")
	for _, s := range configTable {
		value := s.show(def)
		if value == "" {
			value = "empty"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | `%s` | %s | `%s` | %s |\n", s.key, s.flag(), s.env(), s.form, value, s.help)
	}
	b.WriteString(`
Sizes take B, kB, MB, GB, TB and KiB, MiB, GiB, TiB; a number alone is bytes. Durations take d, h,
m, s and may be joined (` + "`1d12h`" + `).
`)
	return b.String()
}
