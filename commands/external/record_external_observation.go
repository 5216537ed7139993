package external

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/external"
)

// RecordIn is the input of record_external_observation.
type RecordIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id"`
	AdapterID string `json:"adapter_id"`
	EventID   string `json:"event_id"`
	Tool      string `json:"tool"`
	Status    string `json:"status"`
	ExitCode  *int32 `json:"exit_code,omitempty"`
}

// RecordOut is its output.
type RecordOut struct {
	Project   string          `json:"project"`
	SessionID event.SessionID `json:"session_id"`
	// Replayed tells that a report with this key was there already, and is as given here.
	Replayed   bool     `json:"replayed"`
	Provenance string   `json:"provenance"`
	Coverage   Coverage `json:"coverage"`
	Report     Shown    `json:"observation"`
}

// Coverage of reports is never complete: without a durable sequence at the source nobody can
// tell what is missing, nor in which order things happened there (EXT-08).
type Coverage struct {
	Complete bool `json:"complete"`
}

// provenance of everything here: somebody outside said so.
const provenance = "external_report"

// Shown is a report as answers show it. Project and Session are those of the answer.
type Shown struct {
	AdapterID  string `json:"adapter_id"`
	EventID    string `json:"event_id"`
	Tool       string `json:"tool"`
	Status     string `json:"status"`
	ExitCode   *int32 `json:"exit_code"`
	ReceivedAt string `json:"received_at"`
}

func shown(r external.Report) Shown {
	return Shown{AdapterID: r.Adapter, EventID: r.Event, Tool: r.Tool, Status: r.Status, ExitCode: r.ExitCode, ReceivedAt: event.FormatTime(r.Received)}
}

// RecordObservation keeps a report of an adapter outside. It leaves its own record and nothing
// in the Session (EXT-03).
var RecordObservation = call.Spec{
	Name: "record_external_observation", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneSession, Class: call.Mutate,
	In: RecordIn{}, Run: record,
}

func record(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[RecordIn](c)
	if err != nil {
		return call.Result{}, err
	}
	reports, err := scope(c, in.Project)
	if err != nil {
		return call.Result{}, err
	}
	e, err := in.report(*c.Session)
	if err != nil {
		return call.Result{}, err
	}
	key := external.Key{Adapter: e.Adapter, Event: e.Event}
	defer reports.Release(e.Session, key)
	var first *external.Report
	_, err = c.Decide(ctx, event.ExternalAggregate(e.Session), func(time.Time) (events []event.Event, err error) {
		core, err := c.Current(e.Session)
		if err != nil {
			return nil, err
		}
		first, events, err = Decide(core, reports.Hold(e.Session, key), e)
		return events, err
	})
	if err != nil {
		return call.Result{}, err
	}
	r, ok := reports.Find(e.Session, key)
	if !ok {
		return call.Result{}, fault.New(fault.Internal, "the report was recorded and is not shown")
	}
	return call.Result{Output: RecordOut{Project: c.Project.Project, SessionID: e.Session, Replayed: first != nil, Provenance: provenance, Report: shown(r)}}, nil
}

// scope holds a call to one exact Session and one exact Project, both given by the caller: the
// pipeline has authorised them and found them equal (EXT-01, EXT-02).
func scope(c *call.Call, project string) (*external.Reports, error) {
	switch {
	case c.Session == nil:
		return nil, fault.New(fault.InvalidArguments, "name the Session that the report is about").WithField("session_id").
			WithNext("use the session_id that work_on_project gave")
	case project == "" || c.Project == nil:
		return nil, fault.New(fault.InvalidArguments, "name the Project of the Session").WithField("project").WithNext("call list_projects")
	case c.External() == nil:
		return nil, fault.New(fault.Unavailable, "this server keeps no external reports")
	}
	return c.External(), nil
}
