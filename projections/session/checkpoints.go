package session

import "webcodex/internal/redact"

// CheckpointLine is one checkpoint of the working tree as a brief names it.
type CheckpointLine struct {
	ID        string `json:"checkpoint_id"`
	Title     string `json:"title,omitempty"`
	Kind      string `json:"kind"`
	CreatedAt string `json:"created_at"`
}

// Checkpoints are those that a Runner tells of a Project.
type Checkpoints struct {
	Total  int
	Newest []CheckpointLine // newest first
}

// BriefCheckpoints lists the newest checkpoints of the Project, where they were asked for and could
// be looked at (HND-47). It is a Section without a list otherwise.
type BriefCheckpoints struct {
	Section
	*List[CheckpointLine]
}

func newCheckpoints(s Snapshot) BriefCheckpoints {
	if !s.IncludeCheckpoints || s.Checkpoints == nil {
		return BriefCheckpoints{Section: requested(s.IncludeCheckpoints, codeCheckpoints)}
	}
	l := newList(s.Checkpoints.Newest, MaxBriefCheckpoints)
	l.Total = max(s.Checkpoints.Total, l.Returned)
	l.count()
	for i := range l.Items {
		c := &l.Items[i]
		c.ID, c.Kind, c.CreatedAt, c.Title = atom(c.ID), atom(c.Kind), atom(c.CreatedAt), redact.Text(c.Title, MaxCheckpointTitleChars)
	}
	return BriefCheckpoints{Section{Status: statusAvailable}, &l}
}

// shed takes the oldest away; all are counted still.
func (b *BriefCheckpoints) shed(over int) bool { return b.List != nil && b.List.shed(over) }
