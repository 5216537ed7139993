package attention

// Bounds of what one answer shows.
const (
	// MaxMessages and MaxBytes, on the messages' real JSON, are shown in one answer; what does not
	// fit is counted (ACK-23).
	MaxMessages = 5
	MaxBytes    = 8 << 10
)
