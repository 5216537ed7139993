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
	call        event.CallID
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
	recorder := func(it Item) bool { return it.Role == event.RoleRecorder }
	if !slices.ContainsFunc(items, recorder) {
		return items
	}
	business := map[event.InvocationID]bool{}
	for i := range items {
		if it := &items[i]; it.Inv != "" && it.Role == event.RoleBusiness {
			business[it.Inv] = true
		}
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

// gather reads the tail once, newest first. Only what tells of work done is decoded: the
// starts, half of a tail, are looked at where a validation needs its arguments.
func gather(v View) evidence {
	items := semantic(v.Tail.Items())
	ev := evidence{items: items}
	var done work
	for i := range items {
		it := &items[len(items)-1-i]
		switch it.Kind {
		case KindTaskInstruction:
			if ev.latest == nil {
				ev.latest = it
			}
		case KindToolCallFinished:
			e, ok := it.Event().(event.ToolCallFinished)
			if !ok {
				continue
			}
			done.add(&e)
			if e.Validation != nil {
				ev.runs = append(ev.runs, runOf(v, it, e.Call, e.Tool, e.Expectation, *e.Validation))
			}
		case KindValidationJobDone:
			if e, ok := it.Event().(event.ExecutionFinished); ok && e.Validation != nil {
				ev.runs = append(ev.runs, runOf(v, it, e.Call, e.Tool, e.Expectation, *e.Validation))
			}
		case KindToolCallStarted, KindSessionClosed, KindContextUpdated: // say nothing about what was tried or tested
		}
	}
	slices.Reverse(ev.runs)
	ev.counts, ev.changed, ev.recent = done.counts, done.changed, done.recent
	ev.startRuns()
	ev.resolve(v.Core)
	return ev
}

func runOf(v View, it *Item, call event.CallID, tool, expectation string, done event.Validation) run {
	return run{seq: it.Seq, version: it.Version, id: it.ID(v.Core.ID), at: it.At, call: call, tool: tool, expectation: expectation,
		Validation: done}
}

// startRuns gives each run the input of its start, as far as that is retained.
func (ev *evidence) startRuns() {
	if len(ev.runs) == 0 {
		return
	}
	inputs := map[event.CallID]event.Input{}
	next := 0
	for i := range ev.items {
		it := &ev.items[i]
		if it.Kind == KindToolCallStarted {
			if e, ok := it.Event().(event.ToolCallStarted); ok {
				inputs[e.Call] = e.Input
			}
		}
		for next < len(ev.runs) && ev.runs[next].seq == it.Seq {
			ev.runs[next].input = inputs[ev.runs[next].call]
			if next++; next == len(ev.runs) {
				return
			}
		}
	}
}

// work is what finished calls did: what they count for, and which paths were changed and which
// focused reads looked at, newest first, each once. It is fed the newest first.
type work struct {
	counts                  Counts
	changed, recent         []string
	seenChanged, seenRecent map[string]bool
}

func (w *work) add(e *event.ToolCallFinished) {
	w.counts.add(e)
	w.changed = fresh(w.changed, &w.seenChanged, e.Changed)
	if e.Status == event.StatusSucceeded && explores[e.Tool] {
		w.recent = fresh(w.recent, &w.seenRecent, e.Observed)
	}
}

func fresh(list []string, seen *map[string]bool, paths []string) []string {
	for _, p := range paths {
		if (*seen)[p] || !relative(p) {
			continue
		}
		if *seen == nil {
			*seen = map[string]bool{}
		}
		(*seen)[p] = true
		list = append(list, p)
	}
	return list
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

func (c *Counts) add(e *event.ToolCallFinished) {
	c.ToolCalls++
	if e.Status == event.StatusSucceeded {
		c.Succeeded++
	} else {
		c.Failed++
	}
	t := traitsOf(e.Tool)
	c.ReadLike += one(t.read)
	c.WriteLike += one(t.write)
	c.ShellLike += one(t.shell)
	c.GitLike += one(t.git)
	c.ChangeSummaryLike += one(t.changes)
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
