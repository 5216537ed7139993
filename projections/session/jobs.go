package session

// jobsOf counts all Jobs of the Session that have no end in the log: those of this server life,
// and of an earlier one that their Runners still have in hand, of them those that were asked to end,
// and those of which nobody can say how they are (CON-20).
func jobsOf(v View, s Snapshot) JobAttention {
	a := JobAttention{Active: len(v.Core.Jobs), Recovery: "none"}
	for id, j := range v.Core.Jobs {
		switch {
		case j.Server != s.Server && !v.Reconciled[id]:
			a.Recovering++
		case v.Stopping[id]:
			a.TerminalPending++
		default:
			a.Running++
		}
	}
	switch {
	case a.Recovering > 0:
		a.Recovery = "recovering"
	case a.Running > 0:
		a.Recovery = "active"
	case a.TerminalPending > 0:
		a.Recovery = "terminal_pending"
	}
	return a
}
