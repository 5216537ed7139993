package files

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// preview is a line as shown: all of it, or previewChars around the match that begins at at.
func preview(line []byte, at int) string {
	if len(line) <= previewChars {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	from := 0
	if at > previewChars/2 {
		from = at - previewChars/4
		for from > 0 && from < len(line) && !utf8.RuneStart(line[from]) {
			from--
		}
	}
	// More bytes than can be shown are not converted: a line may be megabytes.
	cut := strings.ToValidUTF8(string(line[from:min(len(line), from+previewChars*utf8.UTFMax)]), "\uFFFD")
	text := firstChars(cut, previewChars)
	if from > 0 {
		text = ellipsis + text
	}
	if len(text) < len(cut) || from+previewChars*utf8.UTFMax < len(line) {
		text += ellipsis
	}
	return text
}

// linesBefore are up to n lines that end before the line starting at start, in file order.
func linesBefore(text []byte, start, n int) []string {
	out := []string{}
	for len(out) < n && start > 0 {
		end := start - 1 // the line feed
		start = 1 + bytes.LastIndexByte(text[:end], '\n')
		out = append(out, preview(bytes.TrimSuffix(text[start:end], []byte("\r")), 0))
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// linesAfter are up to n lines after the line that ends at end, without its line end.
func linesAfter(text []byte, end, n int) []string {
	out := []string{}
	for len(out) < n {
		i := bytes.IndexByte(text[end:], '\n')
		if i < 0 || end+i+1 == len(text) {
			break
		}
		start := end + i + 1
		end = len(text)
		if j := bytes.IndexByte(text[start:], '\n'); j >= 0 {
			end = start + j
		}
		out = append(out, preview(bytes.TrimSuffix(text[start:end], []byte("\r")), 0))
	}
	return out
}
