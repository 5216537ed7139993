// Package peer tells windows of one principal of each other and carries their messages beside
// answers. It also finds the Session that a window named lately, for those that show or suggest
// something of it. Nothing here selects a Session, authorises or records a call.
package peer

import (
	"context"
	"slices"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
	"webcodex/projections/window"
)

// Peers are the additions of one life of a server. The zero value is ready.
type Peers struct{ recent recent }

// Awareness is the hint that other windows of the same principal worked on this Project within
// Recency. It tells nothing of what they do now (WIN-11).
type Awareness struct {
	Peers []Peer `json:"peers"`
}

// Peer is one of them.
type Peer struct {
	PeerID event.PeerID `json:"peer_id"`
}

// Inbox is what an answer shows of the messages to the caller's window.
type Inbox struct {
	Messages  []Message `json:"messages"`
	Remaining int       `json:"remaining"`
}

// Gap is the diagnosis that a call was recorded nowhere although its window named a Session
// lately (WIN-26). It names the Session and nothing else of it (WIN-27).
type Gap struct {
	SessionID  event.SessionID `json:"session_id"`
	SessionRef string          `json:"session_ref,omitempty"` // where the caller has one already
	ReasonCode string          `json:"reason_code"`
}

// gapReason: this window recorded into that Session, or worked on it, within Recency.
const gapReason = "recent_window_affinity"

// Ambient adds peer_awareness, peer_messages and recorder_gap (call.Ambient). What it shows is
// durable before; what cannot be made durable is left away.
func (p *Peers) Ambient(ctx context.Context, c *call.Call, failed bool) (out []call.Addition) {
	if c.Windows() == nil || c.Window() == "" {
		return nil
	}
	defer p.seen(c)
	plan := p.settle(ctx, c, p.scene(c))
	if len(plan.Peers) > 0 {
		var a Awareness
		for _, id := range plan.Peers {
			a.Peers = append(a.Peers, Peer{id})
		}
		out = append(out, call.Addition{Name: "peer_awareness", Value: a})
	}
	if len(plan.Messages) > 0 {
		out = append(out, call.Addition{Name: "peer_messages", Value: Inbox{plan.Messages, plan.Left}})
	}
	if core, ok := p.gap(ctx, c, failed); ok {
		out = append(out, call.Addition{Name: "recorder_gap", Value: Gap{core.ID, c.NumberedRef(ctx, core), gapReason}})
	}
	return out
}

// settle decides, makes durable what there is to be, and gives the plan as it was decided then.
func (p *Peers) settle(ctx context.Context, c *call.Call, s Scene) Plan {
	decide := func(now time.Time) Plan { return Decide(c.Windows().Book(s.Principal).At(now), s, now) }
	plan := decide(c.Now())
	if len(plan.Events) == 0 {
		return Plan{}
	}
	_, err := c.Note(ctx, event.WindowAggregate(s.Principal), func(now time.Time) ([]event.Event, error) {
		plan = decide(now)
		return plan.Events, nil
	})
	if err != nil {
		return Plan{}
	}
	return plan
}

// scene notes what the call tells of its window and gives what the additions depend on.
func (p *Peers) scene(c *call.Call) Scene {
	now, who := c.Now(), c.Principal.Actor.Principal
	s := Scene{Principal: who, Window: c.Window(), Acks: c.Envelope().Ack, Gone: c.Gone(),
		Reads: c.HasScope(call.ScopeRuntimeRead), Collaborates: c.HasScope(call.ScopeCollaborate)}
	for _, x := range []struct {
		core     *session.Core
		relation string
	}{{c.Recorder, event.RelationRecording}, {c.Work(), event.RelationWork}} {
		core := x.core
		if core == nil {
			continue
		}
		s.Related = append(s.Related, window.Relation{Window: s.Window, Session: core.ID, Project: core.Project, Relation: x.relation})
		if !core.Project.Zero() {
			p.recent.change(spot{who, core.Project}, s.Window, now, func(d *doing) { d.session, d.named = core.ID, now })
		}
	}
	if project := place(c); !project.Zero() {
		at := spot{who, project}
		if meaningful(c) {
			p.recent.change(at, s.Window, now, func(d *doing) { d.at = now })
		}
		s.Others = p.recent.others(at, s.Window, now)
	}
	return s
}

// place is the Project that the call is about, zero where there is none.
func place(c *call.Call) event.ProjectRef {
	switch {
	case c.Project != nil:
		return c.Project.Ref
	case c.Work() != nil:
		return c.Work().Project
	}
	return event.ProjectRef{}
}

// meaningful: work on a Project, neither a look at how things stand nor a search for a target.
func meaningful(c *call.Call) bool {
	return c.Spec().Plane == call.PlaneProject && !c.Spec().Status || c.Spec().Plane == call.PlaneSession && c.Spec().Class == call.Mutate
}

// gap finds the Session that a successful, unrecorded piece of work may have been meant for
// (WIN-26, WIN-28). It changes nothing, and the next call is as unrecorded (WIN-27).
func (p *Peers) gap(ctx context.Context, c *call.Call, failed bool) (session.Core, bool) {
	if failed || c.Recorder != nil || c.Session != nil || c.Project == nil || c.Spec().Plane != call.PlaneProject ||
		!meaningful(c) || !c.HasScope(call.ScopeRuntimeRead) {
		return session.Core{}, false
	}
	return p.Affine(ctx, c)
}

// Affine is the Session of exactly the call's Project that the caller's window named last and
// lately, by recording into it or by work_on_project, if it is Active and open to the caller
// (attention.Affine).
func (p *Peers) Affine(ctx context.Context, c *call.Call) (session.Core, bool) {
	if c.Windows() == nil || c.Window() == "" || c.Project == nil {
		return session.Core{}, false
	}
	now, who := c.Now(), c.Principal.Actor.Principal
	var ids []event.SessionID
	if id, ok := p.recent.named(spot{who, c.Project.Ref}, c.Window(), now); ok {
		ids = append(ids, id)
	}
	for _, r := range c.Windows().Book(who).Related(c.Window()) {
		if r.Project == c.Project.Ref && isRecent(r.At, now) {
			ids = append(ids, r.Session)
		}
	}
	for _, id := range ids {
		core, err := c.Authorised(ctx, string(id))
		if err == nil && core.Lifecycle == session.Active && core.Project == c.Project.Ref {
			return core, true
		}
	}
	return session.Core{}, false
}

// Linked are the Sessions that the caller's window named, the one named last first
// (material.Options). Whether they are open to the caller is for whoever asks.
func (p *Peers) Linked(_ context.Context, c *call.Call) (ids []event.SessionID) {
	if c.Windows() == nil || c.Window() == "" {
		return nil
	}
	for _, r := range c.Windows().Book(c.Principal.Actor.Principal).Related(c.Window()) {
		if !slices.Contains(ids, r.Session) && len(ids) < maxLinked {
			ids = append(ids, r.Session)
		}
	}
	return ids
}
