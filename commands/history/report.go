package history

import (
	"time"

	"webcodex/projections/history"
)

// Report says what the log keeps, since when, and why.
type Report struct {
	Policy Policy        `json:"policy"`
	Facts  history.Facts `json:"facts"`
	// Blocks and Bytes of the log; it is pruned beyond LimitBytes, and refuses new work at 90 %
	// of BudgetBytes.
	Blocks      int   `json:"blocks"`
	Bytes       int64 `json:"bytes"`
	LimitBytes  int64 `json:"limit_bytes"`
	BudgetBytes int64 `json:"budget_bytes"`
	// Decision is what would leave now, or why it does not.
	Decision Decision  `json:"decision"`
	Work     Work      `json:"work"`
	Now      time.Time `json:"now"`
}

// Report gives what is kept now. Nothing leaves by it.
func (p *Pruner) Report() (Report, error) {
	s, err := p.state()
	if err != nil {
		return Report{}, err
	}
	now := p.o.Now().UTC()
	r := Report{Policy: p.o.Policy, Facts: s.Facts, Blocks: len(s.Blocks), Bytes: Total(s.Blocks), LimitBytes: Limit(s, p.o.Policy),
		BudgetBytes: s.Budget, Decision: Decide(s, p.o.Policy, now), Now: now}
	p.note(func() { r.Work = p.work })
	return r, nil
}
