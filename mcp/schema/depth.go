package schema

// Depth is how many arrays and objects stand inside each other at the deepest place of raw.
// It reads brackets and strings only, so it is cheap and safe to call before any decoder;
// text that is not JSON gives some number and is refused by the decoder afterwards.
func Depth(raw []byte) int {
	depth, deepest := 0, 0
	inString, escaped := false, false
	for _, c := range raw {
		if inString {
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				inString = false
			}
			continue
		}
		switch c {
		case '"':
			inString = true
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}
