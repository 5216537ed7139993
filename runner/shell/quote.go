package shell

import "strings"

// Quote makes one word of any text without NUL, for sh and bash.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// QuotedBytes is the length of Quote's word.
func QuotedBytes(text string) int { return len(text) + 2 + 3*strings.Count(text, "'") }
