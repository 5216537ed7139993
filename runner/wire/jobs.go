package wire

// Reads about Jobs besides OpObserveJobs.
const (
	// OpJobStates tells how Jobs are, without their output.
	OpJobStates Op = "job_states"
	// OpJobLog gives a page of what is kept of one Job's output.
	OpJobLog Op = "job_log"
)

// JobSlots is how many Jobs a Runner runs at once, how many run, and how many wait.
type JobSlots struct {
	Limit   int `json:"limit"`
	Running int `json:"running"`
	Queued  int `json:"queued"`
}

// MaxJobStates is how many Jobs one JobStatesIn names.
const MaxJobStates = 100

// Waits reports a read that may wait for something to happen.
func (op Op) Waits() bool { return op == OpObserveJobs || op == OpJobStates }

// JobStatesIn asks for up to MaxJobStates Jobs. WaitMS waits until all of them, or with Any one
// of them, have ended.
type JobStatesIn struct {
	IDs    []string `json:"ids"`
	Any    bool     `json:"any,omitempty"`
	WaitMS int64    `json:"wait_ms,omitempty"`
}

// JobStatesOut answers per id, without deltas.
type JobStatesOut struct {
	Items       []JobView `json:"items"`
	WaitOutcome string    `json:"wait_outcome"` // not_waited, terminal, timeout
}

// Streams of JobLogIn.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// JobLogIn asks for a page: from an absolute byte offset on, or the last lines where Offset is
// absent.
type JobLogIn struct {
	ID       string `json:"id"`
	Stream   string `json:"stream,omitempty"` // empty: both
	Offset   *int64 `json:"offset,omitempty"`
	Lines    int    `json:"lines,omitempty"`
	MaxBytes int    `json:"max_bytes"` // of one stream
}

// JobLogOut is the Job and the pages of the streams that were asked for; they are absent where
// nothing is kept.
type JobLogOut struct {
	Job    JobView  `json:"job"`
	Stdout *LogPage `json:"stdout,omitempty"`
	Stderr *LogPage `json:"stderr,omitempty"`
}

// LogPage is a part of a stream; offsets are absolute byte positions.
type LogPage struct {
	Text       string `json:"text"`        // valid UTF-8: what is none became U+FFFD
	Offset     int64  `json:"offset"`      // of its first byte
	NextOffset int64  `json:"next_offset"` // from which to go on
	Bytes      int64  `json:"bytes"`       // ever written to the stream
	Dropped    int64  `json:"dropped_bytes"`
}

func init() {
	addOp[JobStatesIn, JobStatesOut](OpJobStates, false)
	addOp[JobLogIn, JobLogOut](OpJobLog, false)
}
