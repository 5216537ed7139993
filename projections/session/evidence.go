package session

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"webcodex/eventlog/event"
)

// evidence is what the retained tail proves, gathered in one pass. Summaries and briefs only
// arrange it.
type evidence struct {
	items    []Item // the semantic view of the tail (EVT-10)
	counts   Counts
	changed  []string // newest first, unique
	recent   []string // read with focused reads that succeeded, newest first, unique
	latest   *Item    // newest retained instruction
	runs     []run    // validation runs, oldest first
	failures []run    // unresolved, newest first
	repeated *repeat
	// unknown outcomes that no later proven pass has overtaken, oldest first
	unknown []Unknown
	// passed is the version of the newest proven pass that is retained, 0: none
	passed uint64
}

// run is one finished validation.
type run struct {
	seq         uint64
	version     uint64
	id          event.EventID
	at          time.Time
	tool        string
	expectation string
	input       event.Input // of its start, empty where that has left the tail
	event.Validation
}

type repeat struct {
	run
	count int
}

type identity struct{ tool, target, scope string }

func (r run) identity() identity { return identity{r.tool, r.TargetID, r.Scope} }

// neutral runs met a declared failure: neither a pass nor a failure (VAL-02).
func (r run) neutral() bool { return r.expectation == "matched_expected_failure" }

func (r run) failed() bool { return !r.neutral() && r.Passed != nil && !*r.Passed }

// proves reports a pass that counts as proof: a pass of zero tests proves and resolves
// nothing (VAL-18).
func (r run) proves() bool { return !r.neutral() && r.Passed != nil && *r.Passed && !r.ZeroTests }

// again are the arguments that run the same validation once more, as far as they are stored:
// its identity is made of them, so that only then a pass resolves the failure.
func (r run) again(args map[string]any) map[string]any {
	in := r.input
	switch {
	case len(in.Packages) == 0:
	case r.tool == "cargo_test":
		args["package"] = in.Packages[0]
	default:
		args["packages"] = in.Packages
	}
	if len(in.Features) > 0 {
		args["features"] = in.Features
	}
	for _, f := range in.Flags {
		args[f] = true
	}
	if in.Cwd != "" {
		args["cwd"] = in.Cwd
	}
	if in.Purpose != "" {
		args["purpose"] = in.Purpose
	}
	return args
}

// missing tells that again cannot say everything.
func (r run) missing() string {
	if !r.input.Partial {
		return ""
	}
	return "; add what narrowed that call (its filter): it is not stored"
}

// semantic drops the recorder events of requests whose business pair is in the same tail, so
// that one request counts once (EVT-10). Uncorrelated events all stay (EVT-13).
func semantic(items []Item) []Item {
	business := map[event.InvocationID]bool{}
	recorders := 0
	for _, it := range items {
		if it.Inv != "" && it.Role == event.RoleBusiness {
			business[it.Inv] = true
		}
		if it.Role == event.RoleRecorder {
			recorders++
		}
	}
	if recorders == 0 {
		return items
	}
	out := make([]Item, 0, len(items))
	for _, it := range items {
		if it.Role == event.RoleRecorder && it.Inv != "" && business[it.Inv] {
			continue
		}
		out = append(out, it)
	}
	return out
}

func gather(v View) evidence {
	items := semantic(v.Tail.Items())
	ev := evidence{items: items}
	inputs := map[event.CallID]event.Input{}
	for i := range items {
		it := &items[i]
		switch e := it.Event().(type) {
		case event.InstructionAccepted:
			ev.latest = it
		case event.ToolCallStarted:
			inputs[e.Call] = e.Input
		case event.ToolCallFinished:
			ev.counts.add(e)
			if e.Validation != nil {
				ev.runs = append(ev.runs, run{it.Seq, it.Version, it.ID(v.Core.ID), it.At, e.Tool, e.Expectation, inputs[e.Call], *e.Validation})
			}
		case event.ExecutionFinished:
			if e.Validation != nil {
				ev.runs = append(ev.runs, run{it.Seq, it.Version, it.ID(v.Core.ID), it.At, e.Tool, e.Expectation, inputs[e.Call], *e.Validation})
			}
		default: // says nothing about what was tried or tested
		}
	}
	ev.changed, ev.recent = pathsOf(items)
	ev.resolve(v.Core)
	return ev
}

// pathsOf gives what was changed and what focused reads looked at, newest first, each once.
func pathsOf(items []Item) (changed, recent []string) {
	seenChanged, seenRecent := map[string]bool{}, map[string]bool{}
	for _, it := range slices.Backward(items) {
		e, ok := it.Event().(event.ToolCallFinished)
		if !ok {
			continue
		}
		for _, p := range e.Changed {
			if relative(p) && !seenChanged[p] {
				seenChanged[p] = true
				changed = append(changed, p)
			}
		}
		if e.Status != event.StatusSucceeded || !explores[e.Tool] {
			continue
		}
		for _, p := range e.Observed {
			if relative(p) && !seenRecent[p] {
				seenRecent[p] = true
				recent = append(recent, p)
			}
		}
	}
	return changed, recent
}

// resolve walks the runs in order: a failure stays until a proven pass of the same identity.
func (ev *evidence) resolve(c Core) {
	open := map[identity]run{}
	task := map[identity]int{} // failures since the newest instruction (HND-43)
	for _, r := range ev.runs {
		switch {
		case r.failed():
			open[r.identity()] = r
			if ev.latest != nil && r.seq > ev.latest.Seq {
				task[r.identity()]++
			}
		case r.proves():
			delete(open, r.identity())
			ev.passed = r.version
		}
	}
	for _, u := range c.Unknown {
		if u.Version > ev.passed {
			ev.unknown = append(ev.unknown, u)
		}
	}
	for _, r := range open {
		ev.failures = append(ev.failures, r)
	}
	slices.SortFunc(ev.failures, func(a, b run) int { return cmp.Compare(b.seq, a.seq) })
	for _, r := range ev.failures {
		if n := task[r.identity()]; n >= 2 {
			ev.repeated = &repeat{r, n}
			break
		}
	}
}

// relative reports whether p may be shown as a path of the Project: no root, no way out, no
// URI, no control characters (EVT-25).
func relative(p string) bool {
	if p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\`) || strings.Contains(p, "://") {
		return false
	}
	if len(p) > 1 && p[1] == ':' {
		return false
	}
	if c := path.Clean(p); c == ".." || strings.HasPrefix(c, "../") {
		return false
	}
	return !strings.ContainsFunc(p, unicode.IsControl)
}

// Counts of a summary come from finished events (EVT-24) and describe the retained ledger.
type Counts struct {
	ToolCalls         int `json:"tool_calls"`
	Succeeded         int `json:"succeeded"`
	Failed            int `json:"failed"`
	ReadLike          int `json:"read_like"`
	WriteLike         int `json:"write_like"`
	ShellLike         int `json:"shell_like"`
	GitLike           int `json:"git_like"`
	ChangeSummaryLike int `json:"change_summary_like"`
}

func (c *Counts) add(e event.ToolCallFinished) {
	c.ToolCalls++
	if e.Status == event.StatusSucceeded {
		c.Succeeded++
	} else {
		c.Failed++
	}
	t := traitsOf(e.Tool)
	for n, is := range map[*int]bool{&c.ReadLike: t.read, &c.WriteLike: t.write, &c.ShellLike: t.shell,
		&c.GitLike: t.git, &c.ChangeSummaryLike: t.changes} {
		if is {
			*n++
		}
	}
}
