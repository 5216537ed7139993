package access

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"webcodex/eventlog/event"
)

// pageForm is the version of page as carried state.
const pageForm = 1

// page is RefsPage numbers of one principal and kind, as they are carried forward.
type page struct {
	Principal string        `json:"principal"`
	Kind      event.RefKind `json:"kind"`
	// Last is the greatest number taken, bound or not.
	Last uint64    `json:"last"`
	Refs []pageRef `json:"refs"`
	// Floor is where the owner's counter stands, if that is behind this page.
	Floor uint64 `json:"floor,omitempty"`
	// Fresh is where the counter of everybody else begins, once a rift was in the log.
	Fresh uint64 `json:"fresh,omitempty"`
}

type pageRef struct {
	Number  uint64           `json:"n"`
	Session event.SessionID  `json:"s,omitempty"`
	Project event.ProjectRef `json:"p,omitzero"`
	Pin     string           `json:"pin"`
}

func (x pageRef) target() Target { return Target{x.Session, x.Project, x.Pin} }

func readPage(s event.CarriedState) (page, bool) {
	var p page
	if s.Form != pageForm || json.Unmarshal(s.State, &p) != nil || p.Principal == "" || p.Last == 0 || p.Last > event.MaxRefNumber {
		return page{}, false
	}
	return p, true
}

func (p page) state() ([]byte, error) {
	slices.SortFunc(p.Refs, func(a, b pageRef) int { return cmp.Compare(a.Number, b.Number) })
	return json.Marshal(p)
}

// parsePage reads which page an aggregate is: the inverse of event.RefsAggregate, but for the
// principal, of which its id has the beginning alone.
func parsePage(a event.Aggregate) (prefix string, kind event.RefKind, number uint64, ok bool) {
	part := strings.Split(a.ID, "-")
	if a.Domain != event.DomainAccess || len(part) != 4 || part[0] != "refs" {
		return "", "", 0, false
	}
	n, err := strconv.ParseUint(part[3], 10, 32)
	return part[2], event.RefKind(part[1]), n, err == nil && part[2] != ""
}
