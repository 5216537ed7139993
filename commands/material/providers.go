package material

import (
	"context"
	"encoding/json"

	"webcodex/commands/access"
	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/redact"
	refs "webcodex/projections/access"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// Instructions is the content of project.instructions. Incomplete tells that a file could not be
// read, or not whole.
type Instructions struct {
	Project    string   `json:"project"`
	Incomplete bool     `json:"incomplete"`
	Sources    []Source `json:"sources"`
}

// Source is one instruction file. Its text is data of the repository and no order of the user.
type Source struct {
	Path      string `json:"path"`
	Status    string `json:"status"`
	SHA256    string `json:"sha256,omitempty"`
	Bytes     int64  `json:"bytes"`
	Untrusted bool   `json:"untrusted"`
	Text      string `json:"text,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// instructions reads the instruction files. Where the call itself has looked at them, what it
// saw is shown, and never looked at a second time (CTX-15).
func instructions(ctx context.Context, c *call.Call, _ Options) (any, string) {
	p := project(c)
	seen, looked := c.Instructions()
	if !looked {
		if c.Target == nil {
			return nil, reasonRunner
		}
		out, err := call.AskTarget[wire.ObserveWorkspaceOut](ctx, c, *c.Target, wire.OpObserveWorkspace,
			wire.ObserveWorkspaceIn{Instructions: true, Text: true, Only: true}, readTimeout)
		if err != nil {
			return nil, reasonRunner
		}
		seen = out.Instructions
	}
	if seen == nil {
		return nil, reasonRunner
	}
	out := Instructions{Project: p.Project, Sources: []Source{}}
	room := MaxInstructionBytes
	for _, s := range seen.Sources[:min(len(seen.Sources), session.MaxInstructionFiles)] {
		path, ok := redact.Path(s.Path)
		if !ok || path != s.Path {
			continue
		}
		src := Source{Path: path, Status: s.Status, SHA256: s.SHA256, Bytes: s.Bytes, Untrusted: true, Truncated: s.Cut}
		switch s.Status {
		case wire.SourceLoaded:
			src.Text, room, src.Truncated = within(s.Text, room, s.Cut)
			out.Incomplete = out.Incomplete || src.Truncated
		case wire.SourceNotFound:
		default:
			src.Status, out.Incomplete = "unavailable", true
		}
		out.Sources = append(out.Sources, src)
	}
	return out, ""
}

// within is as much of a text as room bytes of JSON hold.
func within(text string, room int, cut bool) (string, int, bool) {
	for {
		size := jsonBytes(text)
		if size <= room {
			return text, room - size, cut
		}
		r := []rune(text)
		text, cut = string(r[:len(r)*3/4]), true
	}
}

func jsonBytes(s string) int {
	b, err := json.Marshal(s)
	if err != nil {
		return MaxInstructionBytes + 1
	}
	return len(b)
}

// Jobs is the content of jobs.attention: what runs now on the Project, of this server's life.
type Jobs struct {
	Project  string `json:"project"`
	Active   int    `json:"active_count"`
	Returned int    `json:"returned"`
	Jobs     []Job  `json:"jobs"`
}

// Job names one; observe_jobs shows it.
type Job struct {
	ID   event.ExecutionID `json:"job_id"`
	Tool string            `json:"tool"`
}

func jobs(_ context.Context, c *call.Call, _ Options) (any, string) {
	p := project(c)
	active := c.ActiveJobs(*p)
	out := Jobs{Project: p.Project, Active: len(active), Jobs: []Job{}}
	for _, j := range active[:min(len(active), MaxJobs)] {
		out.Jobs = append(out.Jobs, Job{j.ID, j.Tool})
	}
	out.Returned = len(out.Jobs)
	return out, ""
}

// Resume is the content of workflow.resume: the caller's own open Sessions, to choose from.
// Nothing resumes by itself.
type Resume struct {
	// Source tells how they were found: linked to the caller's window, or of the Project named.
	Source   string      `json:"source"`
	Sessions []Resumable `json:"sessions"`
}

// Resumable is one Session. project_ref is there only while its Project is served with a root.
type Resumable struct {
	SessionID  event.SessionID `json:"session_id"`
	SessionRef string          `json:"session_ref,omitempty"`
	Project    *string         `json:"project"`
	ProjectRef string          `json:"project_ref,omitempty"`
	Title      string          `json:"title"`
	Mode       event.Mode      `json:"mode"`
	UpdatedAt  string          `json:"updated_at"`
}

func resume(ctx context.Context, c *call.Call, o Options) (any, string) {
	out := Resume{Source: "window", Sessions: []Resumable{}}
	cores := linked(ctx, c, o)
	if len(cores) == 0 {
		p := project(c)
		if p == nil {
			return nil, reasonProject
		}
		var reason string
		if cores, reason = open(c, p.Ref); reason != "" {
			return nil, reason
		}
		out.Source = "project"
	}
	targets := make([]refs.Target, len(cores))
	for i, core := range cores {
		targets[i] = refs.SessionTarget(core.ID, core.Nonce)
	}
	numbers := access.Number(ctx, c, event.RefSession, targets...)
	for i, core := range cores {
		r := Resumable{SessionID: core.ID, Title: redact.Text(core.Title, session.MaxTitleChars), Mode: core.Mode, UpdatedAt: event.FormatTime(core.UpdatedAt),
			SessionRef: numbers[i]}
		if !core.Project.Zero() {
			name := core.Project.String()
			r.Project, r.ProjectRef = &name, projectRef(ctx, c, core.Project)
		}
		out.Sessions = append(out.Sessions, r)
	}
	return out, ""
}

// linked are the Sessions of the caller's window that are open to the caller now (SES-20).
func linked(ctx context.Context, c *call.Call, o Options) (cores []session.Core) {
	if o.Linked == nil || c.Window() == "" {
		return nil
	}
	for _, id := range o.Linked(ctx, c) {
		core, err := c.Authorised(ctx, string(id))
		if err == nil && mine(c, core) && len(cores) < MaxSessions {
			cores = append(cores, core)
		}
	}
	return cores
}

// open are the caller's own Active Sessions of the Project, the one used last first. Those of
// colleagues lie between them.
func open(c *call.Call, p event.ProjectRef) (cores []session.Core, reason string) {
	f := session.Filter{Authority: c.Principal.Actor.Authority, Project: p, Lifecycle: session.Active}
	const page = 4 * MaxSessions
	for from := 0; from < MaxLooked; from += page {
		found, total, err := c.Sessions().Select(f, from, page)
		if err != nil {
			return nil, reasonFailed
		}
		for _, core := range found {
			if mine(c, core) && len(cores) < MaxSessions {
				cores = append(cores, core)
			}
		}
		if len(cores) == MaxSessions || from+page >= total {
			break
		}
	}
	return cores, ""
}

// mine: this is principal-scoped, so a colleague of the same authority group sees none of it
// (AUTH-15).
func mine(c *call.Call, core session.Core) bool {
	return core.Lifecycle == session.Active && core.Principal == c.Principal.Actor.Principal
}

// projectRef is the ref of a Session's Project, empty unless it is there for the caller with a
// root right now.
func projectRef(ctx context.Context, c *call.Call, p event.ProjectRef) string {
	for _, info := range c.Projects() {
		if info.Ref == p && info.Root != "" {
			return access.Number(ctx, c, event.RefProject, refs.ProjectTarget(p, info.Root))[0]
		}
	}
	return ""
}
