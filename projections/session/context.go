package session

import "webcodex/eventlog/event"

// TaskContext holds pointers that help to find the way back into the task, at most
// MaxContextBytes of JSON. They prove neither that something ran nor that it is done (HND-43).
type TaskContext struct {
	Boundary Boundary           `json:"boundary"`
	Relevant List[RelevantFile] `json:"relevant_files"`
	// Locations of failures: test output is never stored, so none can be given.
	Locations Section          `json:"failure_locations"`
	Repeated  *RepeatedFailure `json:"repeated_failure"`
}

// RelevantFile is a path with the kind of evidence that names it: changed or read.
type RelevantFile struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// RepeatedFailure tells that one identity failed again and again within this task.
type RepeatedFailure struct {
	Name        string        `json:"name"`
	Count       int           `json:"count"`
	LastEventID event.EventID `json:"last_event_id"`
}

func newTaskContext(v View, ev evidence) TaskContext {
	seen := map[string]bool{}
	var files []RelevantFile
	for _, p := range ev.changed {
		seen[p] = true
		files = append(files, RelevantFile{p, "changed"})
	}
	for _, p := range ev.recent {
		if !seen[p] {
			files = append(files, RelevantFile{p, "read"})
		}
	}
	c := TaskContext{Boundary: boundary(v, ev), Relevant: newList(files, MaxBriefRelevant),
		Locations: Section{statusUnavailable, codeLocations}}
	if r := ev.repeated; r != nil {
		c.Repeated = &RepeatedFailure{Name: r.name(), Count: r.count, LastEventID: r.id}
	}
	within(&c, MaxContextBytes, c.shed)
	return c
}

// shed takes the least useful part away: files from the end, then the diagnostic.
func (c *TaskContext) shed(over int) bool {
	if c.Relevant.shed(over) {
		return true
	}
	had := c.Repeated != nil
	c.Repeated = nil
	return had
}
