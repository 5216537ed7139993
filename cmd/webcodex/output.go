package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

func jsonFlag(fs *flag.FlagSet) *bool {
	return fs.Bool("json", false, "print JSON for programs")
}

// printJSON prints v as one line. Controls and characters that reorder or hide text, which
// encoding/json leaves raw above U+007F, are escaped: the line may end on a terminal.
func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(append(escapeJSON(bytes.TrimRight(b.Bytes(), "\n")), '\n'))
	return err
}

// escapeJSON escapes hostile characters inside encoded JSON. Outside of strings JSON holds
// only ASCII, so every such character stands in a string.
func escapeJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case r < 0x7f || !hostile(r):
			out = append(out, b[:n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[n:]
	}
	return out
}

// table prints aligned columns; cells are sanitised here.
type table struct {
	w *tabwriter.Writer
}

func newTable(w io.Writer) table {
	return table{tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)}
}

func (t table) row(cells ...string) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, clean(c))
	}
	fmt.Fprintln(t.w)
}

func (t table) flush() { t.w.Flush() }

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
