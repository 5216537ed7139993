package external

import (
	"regexp"
	"slices"
	"strconv"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/internal/token"
	"webcodex/projections/external"
	"webcodex/projections/session"
)

// payloadDomain is of the hash of what came under a key.
const payloadDomain = "webcodex.external-observation.v1"

var (
	idForm   = regexp.MustCompile(IDForm)
	toolForm = regexp.MustCompile(ToolForm)
)

// report checks what was sent and gives it as it would be stored (EXT-11).
func (in RecordIn) report(core session.Core) (event.ObservationRecorded, error) {
	e := event.ObservationRecorded{Project: core.Project, Session: core.ID, Adapter: in.AdapterID, Event: in.EventID, Tool: in.Tool, Status: in.Status}
	amiss := func(field, why string) error { return fault.New(fault.InvalidArguments, "%s", why).WithField(field) }
	switch {
	case !idForm.MatchString(in.AdapterID):
		return e, amiss("adapter_id", "an adapter id is 64 lowercase hex digits")
	case !idForm.MatchString(in.EventID):
		return e, amiss("event_id", "an event id is 64 lowercase hex digits")
	case !toolForm.MatchString(in.Tool):
		return e, amiss("tool", "a tool's name has 1 to 64 characters of A-Z a-z 0-9 _ . : -")
	case redact.Text(in.Tool, MaxTool) != in.Tool:
		return e, amiss("tool", "that looks like a credential and is not stored")
	case !slices.Contains(external.Statuses(), in.Status):
		return e, amiss("status", "status must be one of succeeded, failed, unknown")
	}
	exit := "none"
	if in.ExitCode != nil {
		n := int(*in.ExitCode)
		e.ExitCode, exit = &n, strconv.Itoa(n)
	}
	e.Payload = token.Digest(payloadDomain, e.Tool, e.Status, exit)
	return e, nil
}

// Decide records a report about an Active Session, or finds the one that its key stands for
// (EXT-05). No retained report makes room for another (EXT-09).
func Decide(core session.Core, st external.Standing, e event.ObservationRecorded) (first *external.Report, _ []event.Event, err error) {
	switch {
	case core.Lifecycle != session.Active:
		return nil, nil, fault.New(fault.SessionClosed, "this Session is closed; nothing is reported about it any more")
	case st.Same != nil && (st.Same.Payload != e.Payload || st.Same.Project != e.Project):
		return nil, nil, fault.New(fault.IdempotencyConflict, "this adapter_id and event_id were used for another report").
			WithField("event_id").WithNext("take a new event_id for a new report")
	case st.Same != nil:
		return st.Same, nil, nil
	case st.Of >= external.MaxPerSession:
		return nil, nil, full("session_capacity", "about this Session", external.MaxPerSession)
	case st.All >= external.MaxReports:
		return nil, nil, full("total_capacity", "in all", external.MaxReports)
	}
	return nil, []event.Event{e}, nil
}

func full(reason, where string, bound int) error {
	return fault.New(fault.CapacityReached, "the capacity of %d reports %s is used up; nothing was recorded and nothing was dropped", bound, where).
		WithReason(reason).With("capacity", bound)
}
