package runtime

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Bounds of list_runners: with its capabilities a Runner takes about 1,200 characters (tools.md).
const (
	DefaultRunners = 20
	MaxRunners     = 30
)

// ListRunners tells which Runners there are, what each can do, and which do not fit this server.
var ListRunners = call.Spec{Name: "list_runners", Scopes: []call.Scope{call.ScopeRuntimeRead},
	Plane: call.PlaneRuntime, Class: call.Observe, In: ListRunnersIn{}, Run: listRunners}

// ListRunnersIn is its input.
type ListRunnersIn struct {
	ClientID event.ClientID `json:"client_id,omitempty"`
	Limit    int            `json:"limit,omitempty"`
}

// ListRunnersOut is its output.
type ListRunnersOut struct {
	// Server is what the Runners are held against.
	Server    RunnerServer `json:"server"`
	Runners   []RunnerRow  `json:"runners"`
	Count     int          `json:"count"`
	Total     int          `json:"total"`
	Truncated bool         `json:"truncated"`
}

// RunnerServer is the server's own build and protocol.
type RunnerServer struct {
	Build    string `json:"build,omitempty"`
	Protocol int    `json:"protocol"`
}

// RunnerRow is one Runner. What was never heard in this server's life is left out.
type RunnerRow struct {
	Client event.ClientID `json:"client_id"`
	// Status is connected, disconnected or refused; a refused one speaks another protocol.
	Status       string           `json:"status"`
	Instance     event.InstanceID `json:"instance_id,omitempty"`
	Build        string           `json:"build,omitempty"`
	SameBuild    *bool            `json:"same_build"`
	Protocol     int              `json:"protocol,omitempty"`
	SameProtocol *bool            `json:"same_protocol"`
	OS           string           `json:"os,omitempty"`
	Arch         string           `json:"arch,omitempty"`
	Capabilities []string         `json:"capabilities"`
	// Since is when it connected, LastSeen its last word.
	Since    string `json:"connected_since,omitempty"`
	LastSeen string `json:"last_seen,omitempty"`
	// Projects counts those that it serves now, Known those that it ever did and that were not
	// unregistered.
	Projects int `json:"projects"`
	Known    int `json:"known_projects"`
	// Jobs is how busy it was with Jobs at its last word; absent where it is not connected.
	Jobs *wire.JobSlots `json:"job_concurrency,omitempty"`
	// Trouble is what its owner should look at: projects_file_damaged.
	Trouble string `json:"trouble,omitempty"`
}

func listRunners(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListRunnersIn](c)
	if err != nil {
		return call.Result{}, err
	}
	limit := in.Limit
	if limit <= 0 {
		limit = DefaultRunners
	}
	limit = min(limit, MaxRunners)
	build := c.ServerInfo().Build
	out := ListRunnersOut{Server: RunnerServer{Build: build, Protocol: wire.Protocol}, Runners: []RunnerRow{}}
	serving, known := projectsByRunner(c)
	for _, r := range c.Fleet().KnownRunners() {
		if in.ClientID != "" && r.Client != in.ClientID || c.Principal.Only != nil && known[r.Client] == 0 {
			continue
		}
		out.Total++
		if len(out.Runners) < limit {
			out.Runners = append(out.Runners, rowOf(r, build, serving[r.Client], known[r.Client]))
		}
	}
	if in.ClientID != "" && out.Total == 0 {
		return call.Result{}, fault.New(fault.UnknownClientID, "no Runner of that name is known here").WithField("client_id").WithNext("call list_runners without client_id")
	}
	out.Count, out.Truncated = len(out.Runners), out.Total > len(out.Runners)
	return call.Result{Output: out}, nil
}

// projectsByRunner counts, of the Projects that exist for the caller, those that each Runner
// serves now and those that are registered.
func projectsByRunner(c *call.Call) (serving, known map[event.ClientID]int) {
	serving, known = map[event.ClientID]int{}, map[event.ClientID]int{}
	for _, p := range c.Projects() {
		if p.Root == "" {
			continue
		}
		known[p.Ref.Client]++
		if p.Connected {
			serving[p.Ref.Client]++
		}
	}
	return serving, known
}

func rowOf(r call.RunnerInfo, build string, serving, known int) RunnerRow {
	row := RunnerRow{Client: r.Client, Status: r.Status, Instance: r.Instance, Build: r.Build, Protocol: r.Protocol, OS: r.OS, Arch: r.Arch,
		Capabilities: r.Capabilities, Projects: serving, Known: known, Trouble: r.Trouble, Since: stamp(r.ConnectedAt), LastSeen: stamp(r.SeenAt)}
	if r.Status == call.RunnerConnected {
		row.Jobs = r.Slots
	}
	if r.Protocol != 0 {
		same := r.Protocol == wire.Protocol
		row.SameProtocol = &same
	}
	if r.Build != "" && build != "" {
		same := r.Build == build
		row.SameBuild = &same
	}
	if row.Capabilities == nil {
		row.Capabilities = []string{}
	}
	return row
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return event.FormatTime(t)
}
