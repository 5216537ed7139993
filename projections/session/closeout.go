package session

// DiffSummary is what is not committed, as counts and names; no text of it.
type DiffSummary struct {
	Files     int              `json:"files"` // untracked ones too
	Untracked int              `json:"untracked"`
	Additions int              `json:"additions"` // of tracked files, as are the deletions
	Deletions int              `json:"deletions"`
	Changed   List[DiffedFile] `json:"changed"`
}

// DiffedFile is one file that is not as committed.
type DiffedFile struct {
	Path      string `json:"path"`
	Additions *int   `json:"additions,omitempty"`
	Deletions *int   `json:"deletions,omitempty"`
	Untracked bool   `json:"untracked,omitempty"`
}

// HygieneSummary is what should perhaps not be left in the working tree.
type HygieneSummary struct {
	Verdict  string               `json:"verdict"` // clean, attention, problems
	Clean    bool                 `json:"clean"`
	Problems int                  `json:"problems"`
	Warnings int                  `json:"warnings"`
	Complete bool                 `json:"complete"` // everything was looked at
	Counts   map[string]int       `json:"counts"`   // by kind
	Findings List[HygieneFinding] `json:"findings"`
}

// HygieneFinding is one place; Line is 0 where it is about the whole file.
type HygieneFinding struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// FinishDiff and FinishHygiene are sections of a closeout: observed, or with the reason why not.
type (
	FinishDiff struct {
		Section
		*DiffSummary
	}
	FinishHygiene struct {
		Section
		*HygieneSummary
	}
)

// Bounds of the two sections: what is listed, and the bytes of JSON that the lists take.
const (
	MaxCloseoutFiles    = 40
	MaxCloseoutFindings = 20
	maxCloseoutBytes    = 2_500
)

// closeoutSections are the two sections as they were asked for and observed.
func closeoutSections(o FinishOptions) (FinishDiff, FinishHygiene) {
	d, h := FinishDiff{Section: requested(o.IncludeDiff, codeDiffNotHere)}, FinishHygiene{Section: requested(o.IncludeHygiene, codeHygiene)}
	if o.IncludeDiff && o.Diff != nil {
		shown := *o.Diff
		fit(&shown.Changed, MaxCloseoutFiles)
		d = FinishDiff{Section{Status: statusAvailable}, &shown}
	}
	if o.IncludeHygiene && o.Hygiene != nil {
		shown := *o.Hygiene
		fit(&shown.Findings, MaxCloseoutFindings)
		h = FinishHygiene{Section{Status: statusAvailable}, &shown}
	}
	return d, h
}

// said counts the problems in words.
func (h *HygieneSummary) said() string {
	if h == nil {
		return ""
	}
	return amount(h.Problems, "problem")
}

// fit cuts a list to its bounds; the total stays.
func fit[T any](l *List[T], most int) {
	l.Items = append([]T{}, l.Items[:min(most, len(l.Items))]...)
	if over := size(l.Items) - maxCloseoutBytes; over > 0 {
		l.shed(over)
	}
	l.count()
}
