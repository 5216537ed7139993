package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

func completionCommand() command {
	return command{
		name: "completion", args: "bash|zsh|fish", min: 1, max: 1,
		short: "print a completion script for a shell",
		long: `bash: source <(webcodex completion bash)
zsh:  source <(webcodex completion zsh)
fish: webcodex completion fish | source`,
		setup: func(*flag.FlagSet) action {
			return func(_ context.Context, s streams, args []string) error {
				switch args[0] {
				case "bash":
					completeBash(s.out)
				case "zsh":
					completeZsh(s.out)
				case "fish":
					completeFish(s.out)
				default:
					return usagef("completion: the shells are bash, zsh and fish")
				}
				return nil
			}
		},
	}
}

func flagNames(c command) []string {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.setup(fs)
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return append(names, "help")
}

// words is what may stand where a positional argument does; empty: a directory.
func words(c command) string {
	switch c.name {
	case "completion":
		return "bash zsh fish"
	case "post":
		return strings.Join(messageKinds(), " ")
	case "up", "mcp":
		return ""
	}
	return " "
}

func completeBash(w io.Writer) {
	fmt.Fprintf(w, `_webcodex() {
  local cur=${COMP_WORDS[COMP_CWORD]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W %q -- "$cur"))
    return
  fi
  case ${COMP_WORDS[1]} in
`, strings.Join(commandNames(), " "))
	for _, c := range commands() {
		fmt.Fprintf(w, "    %s)\n      case $cur in\n        -*) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n",
			c.name, strings.Join(flagNames(c), " "))
		switch list := words(c); {
		case list == "":
			fmt.Fprint(w, "        *) COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n")
		case list != " ":
			fmt.Fprintf(w, "        *) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", list)
		}
		fmt.Fprint(w, "      esac ;;\n")
	}
	fmt.Fprintf(w, "    help) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n  esac\n}\ncomplete -F _webcodex webcodex\n",
		strings.Join(commandNames(), " "))
}

func completeZsh(w io.Writer) {
	fmt.Fprint(w, "#compdef webcodex\n_webcodex() {\n  if (( CURRENT == 2 )); then\n    local -a c\n    c=(\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "      '%s:%s'\n", c.name, strings.ReplaceAll(c.short, "'", "'\\''"))
	}
	fmt.Fprint(w, "    )\n    _describe command c\n    return\n  fi\n  case $words[2] in\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "    %s) if [[ $PREFIX == -* ]]; then compadd -- %s; ", c.name, strings.Join(flagNames(c), " "))
		switch list := words(c); {
		case list == "":
			fmt.Fprint(w, "else _files -/; ")
		case list != " ":
			fmt.Fprintf(w, "else compadd -- %s; ", list)
		}
		fmt.Fprint(w, "fi ;;\n")
	}
	fmt.Fprint(w, "  esac\n}\ncompdef _webcodex webcodex\n")
}

func completeFish(w io.Writer) {
	fmt.Fprint(w, "complete -c webcodex -f\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "complete -c webcodex -n __fish_use_subcommand -a %s -d '%s'\n", c.name,
			strings.ReplaceAll(c.short, "'", `\'`))
		in := "'__fish_seen_subcommand_from " + c.name + "'"
		for _, f := range flagNames(c) {
			fmt.Fprintf(w, "complete -c webcodex -n %s -l %s\n", in, strings.TrimPrefix(f, "--"))
		}
		switch list := words(c); {
		case list == "":
			fmt.Fprintf(w, "complete -c webcodex -n %s -a '(__fish_complete_directories)'\n", in)
		case list != " ":
			fmt.Fprintf(w, "complete -c webcodex -n %s -a '%s'\n", in, list)
		}
	}
}
