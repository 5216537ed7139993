package schema

const (
	// MaxDepth is how many arrays and objects may stand inside each other (faults.md 4).
	MaxDepth = 64
	// maxFieldBytes bounds the field name of a refusal; an unknown name comes from the caller.
	maxFieldBytes = 128
	// maxNameBytes bounds one unknown member name within it.
	maxNameBytes = 64
	// maxNumberBytes bounds a number's text: no int64 needs more, exponents included.
	maxNumberBytes = 40
)
