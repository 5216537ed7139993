// Command webcodex serves a repository to MCP hosts: server and Runner in one process, the
// truth in an embedded log. This package only wires the parts together: flags, the data
// directory, the control socket, signals, and what a person at the terminal reads.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"webcodex/runner/supervise"
)

// streams are the process's three, as arguments so that nothing reaches for globals.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command is one subcommand: enough to start it, to explain it and to complete it.
type command struct {
	name  string
	args  string // synopsis of the positional arguments
	short string // one line, for the overview
	long  string // what a person needs to know beyond the flags
	min   int    // positional arguments
	max   int
	// setup declares the flags and gives the function that runs after they were read.
	setup func(fs *flag.FlagSet) action
}

// action runs a command whose flags were read. Its error becomes the exit code (exit.go).
type action func(ctx context.Context, s streams, args []string) error

// commands is the program, in the order of its overview.
func commands() []command {
	return []command{
		demoCommand(), upCommand(), serveCommand(), runnerCommand(), mcpCommand(), callCommand(),
		sessionsCommand(), handoffCommand(), feedbackCommand(), boardCommand(), postCommand(), replayCommand(), historyCommand(), eraseCommand(), statusCommand(), tokenCommand(), backupCommand(), restoreCommand(),
		doctorCommand(), verifyCommand(), configCommand(), versionCommand(), completionCommand(),
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == superviseName {
		os.Exit(supervise.Main()) // started by a Runner of this program, for one detached Job
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := runProgram(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// runProgram is the whole program with everything outside as an argument; it gives the exit code.
func runProgram(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := streams{in: stdin, out: stdout, err: stderr}
	if len(args) == 0 {
		overview(stderr)
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(rest) == 1 {
			if c, ok := find(rest[0]); ok {
				usageOf(stdout, c)
				return exitOK
			}
		}
		overview(stdout)
		return exitOK
	case "-version", "--version":
		name = "version"
	}
	c, ok := find(name)
	if !ok {
		return report(stderr, usagef("there is no command %q: `webcodex help` lists them", clean(name)))
	}
	return runCommand(ctx, c, rest, s)
}

func runCommand(ctx context.Context, c command, args []string, s streams) int {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	act := c.setup(fs)
	pos, err := parse(fs, args)
	switch {
	case err == flag.ErrHelp:
		usageOf(s.out, c)
		return exitOK
	case err != nil:
		err = usagef("%s: %s (`webcodex help %s` explains)", c.name, clean(err.Error()), c.name)
	case len(pos) < c.min:
		err = usagef("%s: an argument is missing: webcodex %s %s", c.name, c.name, c.args)
	case len(pos) > c.max:
		err = usagef("%s: one argument too many: webcodex %s %s", c.name, c.name, c.args)
	default:
		err = act(ctx, s, pos)
	}
	return report(s.err, err)
}

// parse reads flags wherever they stand among the positional arguments; after -- all is
// positional.
func parse(fs *flag.FlagSet, args []string) (pos []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		if consumed := len(args) - len(rest); consumed > 0 && args[consumed-1] == "--" {
			return append(pos, rest...), nil
		}
		if len(rest) == 0 {
			return pos, nil
		}
		pos, args = append(pos, rest[0]), rest[1:]
	}
}

// given tells whether a flag was set on the command line, be it to its default.
func given(fs *flag.FlagSet, name string) (set bool) {
	fs.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

func overview(w io.Writer) {
	fmt.Fprint(w, `WebCodex serves a repository to MCP hosts and keeps all that happened in a log.

usage: webcodex COMMAND [flags] [arguments]

`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s  %s\n", c.name, c.short)
	}
	fmt.Fprint(w, "\nwebcodex help COMMAND explains one. To see it all work: webcodex demo\n")
}

func usageOf(w io.Writer, c command) {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.setup(fs)
	fmt.Fprintf(w, "webcodex %s: %s\n\nusage: webcodex %s", c.name, c.short, c.name)
	any := false
	fs.VisitAll(func(*flag.Flag) { any = true })
	if any {
		fmt.Fprint(w, " [flags]")
	}
	if c.args != "" {
		fmt.Fprint(w, " ", c.args)
	}
	fmt.Fprintf(w, "\n\n%s\n", c.long)
	if !any {
		return
	}
	fmt.Fprint(w, "\nflags:\n")
	fs.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  --%-22s %s", f.Name+" "+value, text)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0s" {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
}
