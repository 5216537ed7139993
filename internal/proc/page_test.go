package proc_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"webcodex/internal/proc"
)

// A stream that is read page by page, with pages of any size, is read whole and once; no page
// cuts a character, and what is no longer kept is told exactly.
func TestPagesJoinToTheStream(t *testing.T) {
	text := strings.Repeat("😀é漢a\r\n", 500)
	for _, keep := range []int{len(text), 1000} {
		tail := proc.NewTail(keep)
		tail.Write([]byte(text))
		for limit := utf8.UTFMax; limit < 20; limit++ {
			p := tail.Page(0, limit, true)
			first, seen := p.Offset, p.Text
			for p.Next < p.Total {
				next := tail.Page(p.Next, limit, true)
				if next.Offset != p.Next || next.Next <= next.Offset {
					t.Fatalf("page of %d at %d: %+v", limit, p.Next, next)
				}
				p, seen = next, seen+next.Text
			}
			if seen != text[first:] || int(p.Total) != len(text) || first > p.Kept+3 || first < p.Kept {
				t.Fatalf("keep %d, pages of %d: %d bytes from %d, kept from %d", keep, limit, len(seen), first, p.Kept)
			}
		}
	}
}

func TestPageBorders(t *testing.T) {
	tail := proc.NewTail(64)
	tail.Write([]byte("one\ntwo\nthree\xf0\x9f\x98"))
	for i, c := range []struct {
		page proc.Page
		want string
	}{
		{tail.Page(0, 100, true), "one\ntwo\nthree 0 13 16 0"},
		{tail.Page(0, 100, false), "one\ntwo\nthree\ufffd\ufffd\ufffd 0 16 16 0"},
		{tail.Page(4, 4, true), "two\n 4 8 16 0"},
		{tail.Page(99, 4, true), " 16 16 16 0"},
		{tail.Page(-7, 4, true), "one\n 0 4 16 0"},
		{tail.LastPage(1, 100, true), "three 8 13 16 0"},
		{tail.LastPage(2, 100, true), "two\nthree 4 13 16 0"},
		{tail.LastPage(9, 100, true), "one\ntwo\nthree 0 13 16 0"},
		{tail.LastPage(0, 100, true), " 16 16 16 0"},
		{tail.LastPage(9, 6, true), "ree 10 13 16 0"},
	} {
		if got := fmt.Sprintf("%s %d %d %d %d", c.page.Text, c.page.Offset, c.page.Next, c.page.Total, c.page.Kept); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	whole := proc.NewTail(64)
	whole.Write([]byte("a\nb\n"))
	if p := whole.LastPage(1, 100, true); p.Text != "b\n" || p.Offset != 2 {
		t.Errorf("%+v", p)
	}
}
