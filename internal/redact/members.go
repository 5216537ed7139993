package redact

import (
	"encoding/json"
	"maps"
	"slices"
)

// Bounds of structured evidence (EVT-17).
const (
	MaxMemberChars = 120
	MaxMembers     = 16
	MaxItems       = 8
	// maxNesting: deeper values are dropped; evidence is flat by design.
	maxNesting = 4
)

// Members is a decoded JSON value fit for an event: strings redacted and bounded, at most
// MaxMembers members an object (the first by name) and MaxItems items a list, the values of
// sensitive keys replaced (EVT-17). Values other than JSON's become null.
func Members(v any) any { return members(v, maxNesting) }

func members(v any, depth int) any {
	switch v := v.(type) {
	case string:
		return Text(v, MaxMemberChars)
	case map[string]any:
		if depth == 0 {
			return nil
		}
		names := slices.Sorted(maps.Keys(v))
		if len(names) > MaxMembers {
			names = names[:MaxMembers]
		}
		out := make(map[string]any, len(names))
		for _, n := range names {
			if SensitiveKey(n) {
				out[Text(n, MaxMemberChars)] = Mark
				continue
			}
			out[Text(n, MaxMemberChars)] = members(v[n], depth-1)
		}
		return out
	case []any:
		if depth == 0 {
			return nil
		}
		if len(v) > MaxItems {
			v = v[:MaxItems]
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = members(v[i], depth-1)
		}
		return out
	case bool, float64, int, int64, json.Number, nil:
		return v
	}
	return nil
}
