package wire

// Ops that sum up what is in a working tree or between two commits.
const (
	OpGitReview Op = "git_review"
	OpHygiene   Op = "hygiene"
)

// GitReviewIn compares two commits, or the working tree with HEAD where none is named.
type GitReviewIn struct {
	// Base and Head are 40 or 64 hex digits, given together.
	Base string `json:"base_commit,omitempty"`
	Head string `json:"head_commit,omitempty"`
}

// GitReviewOut is made from names, counts and the lines that git shows beside hunks; nobody judged
// anything.
type GitReviewOut struct {
	Scope      string         `json:"scope"` // committed, uncommitted
	Base       string         `json:"base_commit,omitempty"`
	Head       string         `json:"head_commit,omitempty"`
	Commits    *int           `json:"commits,omitempty"` // in head and not in base
	Stats      ReviewStats    `json:"stats"`
	Classes    []ReviewGroup  `json:"file_classes"` // every class that occurs
	Subsystems []ReviewGroup  `json:"subsystems"`   // directories with the most lines, ≤ 12
	Signals    []ReviewSignal `json:"signals"`      // ≤ 12
	Files      []ReviewFile   `json:"files"`        // ≤ 80, largest change first
	Coverage   ReviewCoverage `json:"coverage"`
	Bounds     map[string]int `json:"bounds"`
	Truncated  bool           `json:"truncated"`
	Reasons    []string       `json:"truncation_reasons"` // max_files, max_subsystems, max_signals, output_budget, diff_bytes
	// Deterministic: the same state gives the same answer. LLMSummary: no model wrote any of it.
	Deterministic   bool `json:"deterministic"`
	LLMSummary      bool `json:"llm_summary"`
	FiltersDisabled bool `json:"filters_disabled"`
}

// ReviewStats are exact.
type ReviewStats struct {
	Files      int `json:"files"`
	Additions  int `json:"additions"` // of tracked text files
	Deletions  int `json:"deletions"`
	Added      int `json:"added"`
	Modified   int `json:"modified"`
	Deleted    int `json:"deleted"`
	Renamed    int `json:"renamed"`
	Binary     int `json:"binary"`
	Untracked  int `json:"untracked"`
	Conflicted int `json:"conflicted"`
}

// ReviewGroup is a class of files or a directory.
type ReviewGroup struct {
	Name      string `json:"name"`
	Files     int    `json:"files"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}

// ReviewSignal is one thing that a reviewer should look at, with the first paths.
type ReviewSignal struct {
	Kind  string   `json:"kind"`
	Count int      `json:"count"`
	Paths []string `json:"paths"` // ≤ 8
}

// ReviewFile is one file of the change.
type ReviewFile struct {
	Path      string   `json:"path"`
	OrigPath  string   `json:"orig_path,omitempty"`
	Change    string   `json:"change"` // added, modified, deleted, renamed, copied, type_changed, unmerged, untracked
	Class     string   `json:"class"`
	Additions int      `json:"additions"`
	Deletions int      `json:"deletions"`
	Binary    bool     `json:"binary,omitempty"`
	Lossy     bool     `json:"name_lossy,omitempty"`
	Symbols   []string `json:"symbols,omitempty"` // ≤ 6 lines that git shows beside hunks
}

// ReviewCoverage says how much of the change the symbols are from; everything else covers all.
type ReviewCoverage struct {
	DiffBytes    int  `json:"diff_bytes_read"`
	DiffComplete bool `json:"diff_complete"`
}

// HygieneIn asks for a look at what should not be left in a working tree.
type HygieneIn struct {
	MaxFindings int `json:"max_findings"`
	// IncludeTracked also looks at the names of tracked files that did not change.
	IncludeTracked bool `json:"include_tracked,omitempty"`
}

// Verdicts of a HygieneOut.
const (
	HygieneClean     = "clean"
	HygieneAttention = "attention" // warnings alone
	HygieneProblems  = "problems"
)

// HygieneOut is what was found. Counts are of all findings, whatever the list holds.
type HygieneOut struct {
	Clean     bool             `json:"clean"`
	Verdict   string           `json:"verdict"`
	Problems  int              `json:"problems"`
	Warned    int              `json:"warned"`
	Counts    map[string]int   `json:"counts"` // by kind
	Findings  []HygieneFinding `json:"findings"`
	Truncated bool             `json:"truncated"`
	// Complete: everything was looked at; else Warnings say what was not.
	Complete        bool     `json:"complete"`
	Warnings        []string `json:"warnings"`
	FiltersDisabled bool     `json:"filters_disabled"`
}

// HygieneFinding is one place; Line is 0 where it is about the whole file.
type HygieneFinding struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"` // problem, warning
	Path     string `json:"path"`
	Line     int    `json:"line,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	Files    int    `json:"files,omitempty"`  // of a directory
	Detail   string `json:"detail,omitempty"` // which operation is in progress
	Lossy    bool   `json:"name_lossy,omitempty"`
}

func init() {
	addOp[GitReviewIn, GitReviewOut](OpGitReview, false)
	addOp[HygieneIn, HygieneOut](OpHygiene, false)
}
