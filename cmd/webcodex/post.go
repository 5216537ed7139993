package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"

	"webcodex/commands/board"
	"webcodex/eventlog/event"
)

func postCommand() command {
	return command{
		name: "post", args: `SESSION KIND "TEXT"|-`, min: 3, max: 3, short: "put a message on a Session's board",
		long: `Posts to the board that the windows of a Session read. KIND is one of
` + strings.Join(messageKinds(), ", ") + `.
With - the text is read from stdin; -- stands before one that begins with a dash. Prints the
message's id.

  webcodex post wc_sess_… guidance "Leave the API as it is." --priority high --ack
  webcodex post wc_sess_… answer "Yes." --reply-to wc_msg_…`,
		setup: func(fs *flag.FlagSet) action {
			data, asJSON := dataFlag(fs), jsonFlag(fs)
			a := map[string]any{}
			text := func(name, field, usage string) {
				fs.Func(name, usage, func(v string) error { a[field] = v; return nil })
			}
			text("reply-to", "reply_to", "the `MESSAGE` that this answers")
			text("supersedes", "supersedes", "the `MESSAGE` of the same kind that this replaces")
			text("priority", "priority", "`PRIORITY`: low, normal or high")
			text("key", "delivery_key", "your own `KEY` of this message: with it a repeated command posts once")
			var tags []string
			fs.Func("tag", "a `LABEL`; may be given again", func(v string) error {
				tags = append(tags, v)
				return nil
			})
			ack := fs.Bool("ack", false, "show it to windows until they acknowledge or resolve it")
			return func(ctx context.Context, s streams, args []string) error {
				dir, err := dataDir(*data)
				if err != nil {
					return err
				}
				id, err := sessionArg(args[0])
				if err != nil {
					return err
				}
				if a["message"], err = messageText(s.in, args[2]); err != nil {
					return err
				}
				if a["kind"] = args[1]; len(tags) > 0 {
					a["tags"] = tags
				}
				if *ack {
					a["requires_ack"] = true
				}
				return post(ctx, s, dir, id, a, *asJSON)
			}
		},
	}
}

func messageKinds() []string {
	var out []string
	for _, k := range event.MessageKinds() {
		out = append(out, string(k))
	}
	return out
}

// messageText is the argument, or stdin without the line end that closes it.
func messageText(stdin io.Reader, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxArguments+1))
	if err != nil {
		return "", usagef("the text cannot be read: %v", short(err))
	}
	if len(b) > maxArguments {
		return "", usagef("the text is larger than 4 MiB")
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
}

func post(ctx context.Context, s streams, dir string, id event.SessionID, a map[string]any, asJSON bool) error {
	b := &boardWindow{id: id}
	if err := b.open(ctx, dir); err != nil {
		return err
	}
	defer b.w.close()
	var out board.PostOut
	raw, err := b.call(ctx, "post_session_message", a, &out)
	if err != nil {
		return err
	}
	if asJSON {
		return printRaw(s.out, raw)
	}
	text := string(out.MessageID)
	if out.Replayed {
		text += "  (was there already)"
	}
	_, err = fmt.Fprintln(s.out, clean(text))
	return err
}
