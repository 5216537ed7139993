package session

import "webcodex/eventlog/event"

// OpenCalls is how many requests have no end yet; one with two pairs counts once (EVT-10).
func (c Core) OpenCalls() int {
	n := len(c.Open)
	business := map[event.InvocationID]bool{}
	for _, o := range c.Open {
		if o.Started.Role == event.RoleBusiness && o.Inv != "" {
			business[o.Inv] = true
		}
	}
	for _, o := range c.Open {
		if o.Started.Role == event.RoleRecorder && business[o.Inv] {
			n--
		}
	}
	return n
}
