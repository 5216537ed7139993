package call

import (
	"slices"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Guidance profiles: the form in which guidance is put, for one request alone. None changes
// what is allowed or done (PRO-01, PRO-09).
const (
	ProfileDirect   = "direct"
	ProfileHostCode = "host_code_mode" // the host runs code that calls tools
)

// Profiles are those of this server.
var Profiles = []string{ProfileDirect, ProfileHostCode}

// Guidance is the one resolver of the effective profile: what the request asks for, else what
// its host is known to want, else direct (PRO-02…04, PRO-11). A tool that takes the argument
// passes it; whoever asks later in the same request gets the same. It is kept nowhere else.
// Errors: invalid_arguments for a profile that is none (PRO-10).
func (c *Call) Guidance(asked string) (string, error) {
	if asked != "" {
		c.guidance = asked
	}
	p, field := c.guidance, "guidance_profile"
	if p == "" {
		p, field = c.req.Envelope.Profile, "X-WebCodex-MCP-Profile"
	}
	switch {
	case p == "":
		return ProfileDirect, nil
	case !slices.Contains(Profiles, p):
		return "", fault.New(fault.InvalidArguments, "this guidance profile is not available here").WithField(field).
			WithNext("use direct or host_code_mode")
	}
	return p, nil
}

// MaterialInstructions is the key of the instruction files' text.
const MaterialInstructions = "project.instructions"

// Wants reports whether the request asks for a context material.
func (c *Call) Wants(key string) bool { return slices.Contains(c.req.Envelope.Context, key) }

// Looked keeps what the call saw of the Project's instruction files, so that they are not read
// a second time for the answer's context (CTX-15).
func (c *Call) Looked(s *wire.InstructionSources) { c.looked, c.hasLooked = s, true }

// Instructions is what Looked was told; false: this call did not look.
func (c *Call) Instructions() (*wire.InstructionSources, bool) { return c.looked, c.hasLooked }

// NamedProject is the Project that the arguments themselves name, nil where they name none:
// one that only follows from a Session is not meant (CTX-14).
func (c *Call) NamedProject() *ProjectInfo {
	if !c.named {
		return nil
	}
	return c.Project
}

// ActiveJobs are the caller's Jobs of a Project that have no end yet, the newest first.
func (c *Call) ActiveJobs(p ProjectInfo) []Job {
	var out []Job
	for _, j := range c.kernel.jobs.running() {
		if j.Authority == c.Principal.Actor.Authority && j.Target.Ref == p.Ref {
			out = append(out, j)
		}
	}
	return out
}
