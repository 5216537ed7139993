package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxArguments bounds what `call` reads from a file or from stdin; the server has its own.
const maxArguments = 4 << 20

func callCommand() command {
	return command{
		name: "call", args: "TOOL ['JSON'|@FILE|-]", min: 1, max: 2, short: "make one tool call as an MCP client",
		long: `Calls a tool of the running server. The arguments are a JSON object: given directly, in a
file (@FILE), or on stdin (-). Prints the tool's output, with --json the whole CallToolResult.
Exit status 1 where the tool refused or failed; a command or test that ran and failed is a
result, not an error.

  webcodex call list_projects
  webcodex call run_shell '{"project": "agent:…", "command": "make test"}'`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				given, err := arguments(s.in, args[1:])
				if err != nil {
					return err
				}
				return callTool(ctx, s, dir, args[0], given, *asJSON)
			}
		},
	}
}

// arguments reads the JSON object of a call; it is passed on as it stands, so that numbers
// keep all their digits.
func arguments(stdin io.Reader, args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return json.RawMessage("{}"), nil
	}
	b := []byte(args[0])
	if args[0] == "-" || strings.HasPrefix(args[0], "@") {
		r := stdin
		if name, ok := strings.CutPrefix(args[0], "@"); ok {
			f, err := os.Open(name)
			if err != nil {
				return nil, usagef("the arguments cannot be read: %v", short(err))
			}
			defer f.Close()
			r = f
		}
		var err error
		if b, err = io.ReadAll(io.LimitReader(r, maxArguments+1)); err != nil {
			return nil, usagef("the arguments cannot be read: %v", short(err))
		}
		if len(b) > maxArguments {
			return nil, usagef("the arguments are larger than 4 MiB")
		}
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' || !json.Valid(b) {
		return nil, usagef("the arguments are no JSON object: give '{…}', @FILE or -")
	}
	return b, nil
}

func callTool(ctx context.Context, s streams, dir, tool string, args json.RawMessage, asJSON bool) error {
	w, err := openWindow(ctx, dir)
	if errors.Is(err, errNoServer) {
		return failf(exitNoServer, "no server runs on this data directory: start one with `webcodex up`")
	}
	if err != nil {
		return err
	}
	defer w.close()
	res, err := w.call(ctx, tool, args)
	if err != nil {
		return err
	}
	if asJSON {
		raw := *res.Raw
		if !res.IsError {
			// The text is the same JSON with every digit of its numbers.
			raw.StructuredContent = json.RawMessage(res.Text)
		}
		if err := printJSON(s.out, &raw); err != nil {
			return err
		}
		if res.IsError {
			return quietly(exitFailed)
		}
		return nil
	}
	if res.IsError {
		return res.fault()
	}
	return printOutput(s, res)
}

// printOutput shows a tool's output to a person.
func printOutput(s streams, res toolResult) error {
	var b bytes.Buffer
	if err := json.Indent(&b, res.Output, "", "  "); err != nil {
		return err
	}
	if _, err := s.out.Write(append(escapeJSON(b.Bytes()), '\n')); err != nil {
		return err
	}
	if !res.Success && res.Error != "" {
		fmt.Fprintf(s.err, "webcodex: %s\n", clean(res.Error))
	}
	return nil
}

// printRaw prints encoded JSON as one line that a terminal can show.
func printRaw(w io.Writer, raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return err
	}
	_, err := w.Write(append(escapeJSON(b.Bytes()), '\n'))
	return err
}
