package session

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"webcodex/eventlog/event"
)

// evidence is what the retained tail proves, gathered in one pass. Summaries and briefs only
// arrange it.
type evidence struct {
	items    []Item    // the semantic view of the tail (EVT-10)
	work               // all that is retained
	attempt  work      // what came after the newest retained instruction; all, where none is
	latest   *Item     // newest retained instruction
	runs     []run     // validation runs, oldest first
	failures []run     // unresolved, newest first
	cases    []Failure // what failed in them, by name
	unnamed  int       // tests that failed in them beyond those that are named
	resolved []fixed   // failures that a later pass resolved, newest failure first
	gaps     int       // runs whose evidence has a gap (VAL-15)
	repeated *repeat
	proof    *run // the newest proven pass
	// unknown outcomes that no later proven pass has overtaken, oldest first
	unknown []Unknown
	// passed is the version of the newest proven pass that is retained, 0: none
	passed uint64
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
	began := map[event.CallID]event.InvocationID{} // by the calls that validated, or became Jobs
	for i := range items {
		it := &items[len(items)-1-i]
		switch it.Kind {
		case KindTaskInstruction:
			if ev.latest == nil {
				ev.latest, ev.attempt = it, ev.soFar()
			}
		case KindToolCallFinished:
			e, ok := it.Event().(event.ToolCallFinished)
			if !ok {
				continue
			}
			ev.add(it, &e)
			if e.Promoted || e.Validation != nil {
				began[e.Call] = it.Inv
			}
			if e.Validation != nil {
				ev.runs = append(ev.runs, runOf(v, it, e.Call, e.Tool, e.Expectation, e.FailureKind, *e.Validation))
			}
		case KindValidationJobDone:
			e, ok := it.Event().(event.ExecutionFinished)
			if !ok {
				continue
			}
			ev.expected.classified(e.Expectation)
			if e.Validation != nil {
				ev.runs = append(ev.runs, runOf(v, it, e.Call, e.Tool, e.Expectation, e.FailureKind, *e.Validation))
			}
		case KindToolCallStarted, KindSessionClosed, KindContextUpdated: // say nothing about what was tried or tested
		}
	}
	if ev.latest == nil {
		ev.attempt = ev.soFar()
	}
	slices.Reverse(ev.runs)
	ev.startRuns(began)
	ev.resolve(v.Core)
	return ev
}

// startRuns gives each run the input and the place of its start, as far as that is retained. Half of a tail are
// starts, so only those are read whose invocation began a validation; the empty one stands for
// all of old commits (EVT-13).
func (ev *evidence) startRuns(began map[event.CallID]event.InvocationID) {
	if len(ev.runs) == 0 {
		return
	}
	want := make(map[event.InvocationID]bool, len(ev.runs))
	for i := range ev.runs {
		want[began[ev.runs[i].call]] = true
	}
	type start struct {
		input *event.Input
		seq   uint64
	}
	starts := make(map[event.CallID]start, len(ev.runs))
	next := 0
	for i := range ev.items {
		it := &ev.items[i]
		if it.Kind == KindToolCallStarted && want[it.Inv] {
			if e, ok := it.Event().(event.ToolCallStarted); ok {
				starts[e.Call] = start{&e.Input, it.Seq}
			}
		}
		for next < len(ev.runs) && ev.runs[next].seq == it.Seq {
			if s, ok := starts[ev.runs[next].call]; ok {
				ev.runs[next].input, ev.runs[next].started = s.input, s.seq
			}
			if next++; next == len(ev.runs) {
				return
			}
		}
	}
}

// work is what finished calls did: what they count for, and which paths were changed and which
// focused reads looked at, newest first, each once. It is fed the newest first.
type work struct {
	counts          Counts
	expected        Expected
	changed, recent []string
	// changedBy and readBy are the newest events that name each of them.
	changedBy, readBy map[string]*Item
}

// soFar is the work up to here, which adding more leaves alone.
func (w *work) soFar() work {
	return work{counts: w.counts, expected: w.expected, changed: slices.Clip(w.changed), recent: slices.Clip(w.recent)}
}

func (w *work) add(it *Item, e *event.ToolCallFinished) {
	w.counts.add(e)
	w.expected.add(e)
	w.changed = fresh(w.changed, &w.changedBy, it, e.Changed)
	if e.Status == event.StatusSucceeded && explores[e.Tool] {
		w.recent = fresh(w.recent, &w.readBy, it, e.Observed)
	}
}

func fresh(list []string, by *map[string]*Item, it *Item, paths []string) []string {
	for _, p := range paths {
		if (*by)[p] != nil || !relative(p) {
			continue
		}
		if *by == nil {
			*by = map[string]*Item{}
		}
		(*by)[p] = it
		list = append(list, p)
	}
	return list
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
