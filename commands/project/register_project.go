package project

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// RegisterIn is the input of register_project.
type RegisterIn struct {
	ClientID event.ClientID `json:"client_id"`
	Path     string         `json:"path"`
	Name     string         `json:"name,omitempty"`
}

// CreateIn is the input of create_project.
type CreateIn struct {
	ClientID event.ClientID `json:"client_id"`
	Path     string         `json:"path"`
	Name     string         `json:"name,omitempty"`
	GitInit  bool           `json:"git_init,omitempty"`
}

// RegisterOut is the output of both.
type RegisterOut struct {
	Project string `json:"project"` // agent:<client>:<project>
	Name    string `json:"name"`
	Git     bool   `json:"git"`
	// Registered is false where the directory was a Project of the Runner already: it is that one.
	Registered bool `json:"registered"`
}

// Register serves a directory of a Runner's machine that lies where its owner allows it. Doing it
// again gives the same Project.
var Register = call.Spec{
	Name: "register_project", Scopes: []call.Scope{call.ScopeProjectRead, call.ScopeProjectWrite}, Plane: call.PlaneRuntime, Class: call.Mutate,
	In: RegisterIn{}, Run: register,
}

// Create makes the directory first, and a repository in it if that is wanted.
var Create = call.Spec{
	Name: "create_project", Scopes: []call.Scope{call.ScopeProjectRead, call.ScopeProjectWrite}, Plane: call.PlaneRuntime, Class: call.Write,
	In: CreateIn{}, Run: create,
}

func register(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[RegisterIn](c)
	if err != nil {
		return call.Result{}, err
	}
	return enter(ctx, c, in.ClientID, wire.OpRegisterProject, wire.RegisterProjectIn{Path: in.Path, Name: in.Name})
}

func create(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[CreateIn](c)
	if err != nil {
		return call.Result{}, err
	}
	return enter(ctx, c, in.ClientID, wire.OpCreateProject, wire.CreateProjectIn{Path: in.Path, Name: in.Name, GitInit: in.GitInit})
}

// enter makes the effect, and answers once the Project can be named in other calls.
func enter(ctx context.Context, c *call.Call, client event.ClientID, op wire.Op, in interface{ Check() error }) (call.Result, error) {
	if err := in.Check(); err != nil {
		return call.Result{}, err
	}
	if err := c.AtRunner(client); err != nil {
		return call.Result{}, err
	}
	out, facts, err := effect[wire.RegisterProjectOut](ctx, c, op, in)
	if err != nil {
		return call.Result{}, err
	}
	ref, err := settled(ctx, c, client, out.Project.ID)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: RegisterOut{Project: ref.String(), Name: out.Project.Shown(), Git: out.Project.Git, Registered: out.Registered}, Facts: facts}, nil
}

// MaxPath bounds the path of a Project in bytes, MaxName its name in characters.
const (
	MaxPath = wire.MaxProjectPath
	MaxName = wire.MaxProjectName
)

// Bounds of the effects on a Runner's Projects.
const (
	registerTimeout = 30 * time.Second
	// announceWait is how long the Runner may take to tell of the change by its hello.
	announceWait = 5 * time.Second
)

func effect[Out any](ctx context.Context, c *call.Call, op wire.Op, in any) (out Out, _ call.Facts, _ error) {
	o, err := c.Effect(ctx, op, in, call.EffectOptions{Timeout: registerTimeout, Facts: changed})
	if err != nil {
		return out, call.Facts{}, err
	}
	if err := json.Unmarshal(o.Result.Body, &out); err != nil {
		f := fault.Wrap(err, fault.PersistenceUncertain, "it was done, and the Runner's answer is lost").WithNext("call list_projects")
		f.StateChanged = true
		return out, call.Facts{}, f
	}
	return out, changed(*o.Result), nil
}

// changed is what the end of such an effect proves: without a fault the Runner's Projects are as
// was asked.
func changed(r wire.Result) call.Facts {
	f := call.FactsOf(r)
	f.Effect.StateChanged = f.Effect.StateChanged || f.Effect.State == event.Completed && r.Fault == nil
	return f
}

// settled waits until the server knows that the Project is served.
func settled(ctx context.Context, c *call.Call, client event.ClientID, id event.ProjectID) (event.ProjectRef, error) {
	ref := event.ProjectRef{Client: client, Project: id}
	ctx, cancel := c.Bounded(ctx, announceWait)
	defer cancel()
	if err := c.Fleet().Await(ctx, ref, true); err != nil {
		f := *fault.As(err)
		f.StateChanged = true
		return ref, &f
	}
	return ref, nil
}

// Locate finds the Project of a Runner whose root is the directory at a path, by whatever name.
// Where there is none it registers the directory, if the caller and the Runner's owner allow that;
// it is then the call's one effect. Errors: as of register_project; unknown_project for a caller
// for whom the Project does not exist.
func Locate(ctx context.Context, c *call.Call, client event.ClientID, path string) (ref event.ProjectRef, _ error) {
	if err := wire.CheckProjectPath(path); err != nil {
		return ref, err
	}
	t, err := c.Fleet().Runner(client)
	if err != nil {
		return ref, err
	}
	found, err := call.AskTarget[wire.FindProjectOut](ctx, c, t, wire.OpFindProject, wire.FindProjectIn{Path: path}, call.ReadTimeout)
	if err == nil && found.Project != nil {
		ref = event.ProjectRef{Client: client, Project: found.Project.ID}
	}
	switch {
	case err == nil && !ref.Zero() && c.Principal.Sees(ref):
		return settled(ctx, c, client, ref.Project)
	case c.Principal.Only != nil && (err == nil || fault.KindOf(err) == fault.InvalidPath):
		// Whatever lies there: no Project that exists for this caller.
		return event.ProjectRef{}, fault.New(fault.UnknownProject, "no Project of yours lies there").WithField("path").WithNext("call list_projects")
	case err != nil:
		return ref, err
	case !c.HasScope(call.ScopeProjectWrite):
		return ref, fault.New(fault.InsufficientScope, "the directory is no Project yet, and registering it needs the scope project:write").WithField("path")
	}
	if err := c.AtRunner(client); err != nil {
		return ref, err
	}
	out, _, err := effect[wire.RegisterProjectOut](ctx, c, wire.OpRegisterProject, wire.RegisterProjectIn{Path: path})
	if err != nil {
		return ref, err
	}
	return settled(ctx, c, client, out.Project.ID)
}
