package session

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"

	"webcodex/eventlog/event"
)

// Filter picks Sessions.
type Filter struct {
	// Authority is the caller's authority fingerprint; Sessions of others don't exist for the
	// caller, neither as rows nor in totals (LST-04). Empty matches nothing.
	Authority string
	// AnyAuthority drops that rule, for the person who owns the data directory.
	AnyAuthority bool
	// Project is the exact Project; zero: all, those without a Project too.
	Project event.ProjectRef
	// Lifecycle is empty for all.
	Lifecycle Lifecycle
}

func (f Filter) match(c Core) bool {
	return c.Exists() && (f.AnyAuthority || f.Authority != "" && f.Authority == c.Authority) &&
		(f.Project.Zero() || f.Project == c.Project) && (f.Lifecycle == "" || f.Lifecycle == c.Lifecycle)
}

// where is match as SQL.
func (f Filter) where() (string, []any) {
	w, args := "1", []any(nil)
	and := func(cond string, a ...any) { w, args = w+" AND "+cond, append(args, a...) }
	if !f.AnyAuthority && !f.Project.Zero() {
		and("scope = ?", scopeOf(f.Authority, string(f.Project.Client), string(f.Project.Project)))
		if f.Lifecycle != "" {
			and("lifecycle = ?", string(f.Lifecycle))
		}
		return w, args
	}
	if !f.AnyAuthority {
		and("authority = ?", f.Authority)
	}
	if !f.Project.Zero() {
		and("client = ? AND project = ?", string(f.Project.Client), string(f.Project.Project))
	}
	if f.Lifecycle != "" {
		and("lifecycle = ?", string(f.Lifecycle))
	}
	return w, args
}

// place is where a Session stands in a list: newest update first, id as tiebreak (LST-12).
type place struct {
	updated int64
	id      event.SessionID
}

func before(a, b place) int {
	if n := cmp.Compare(b.updated, a.updated); n != 0 {
		return n
	}
	return cmp.Compare(a.id, b.id)
}

// overlay is what memory knows beyond the file, at a moment before the file is read.
type overlay struct {
	file  *tables
	cores map[event.SessionID]Core // one that does not exist is removed, or not there yet
	// spoilt: a row among them is damaged, so what was counted of it may differ.
	spoilt bool
}

// over reads the Sessions that the file has not as they are.
func (s *Store) over() overlay {
	s.mu.Lock()
	peeked := make([]peeked, 0, len(s.dirty))
	o := overlay{file: s.file, cores: make(map[event.SessionID]Core, len(s.dirty))}
	for id, e := range s.dirty {
		peeked = append(peeked, s.peek(id))
		o.spoilt = o.spoilt || e.rewrite
	}
	s.mu.Unlock()
	for _, p := range peeked {
		c, err := s.coreOf(o.file, p)
		if err != nil {
			// Its rows are damaged and the log cannot give it: it spoils only itself (SES-30).
			c = Core{}
		}
		o.cores[p.id] = c
	}
	return o
}

// List gives all matching Sessions, newest update first. Where there may be many, Select some.
func (s *Store) List(f Filter) []Core {
	all, _, err := s.Select(f, 0, math.MaxInt32)
	s.tell(err)
	return all
}

// tell reports a file that cannot be read, for callers that get no error.
func (s *Store) tell(err error) {
	s.mu.Lock()
	keeper := s.keeper
	s.mu.Unlock()
	if err != nil && keeper != nil {
		keeper.Spoiled(err)
	}
}

// Select gives limit of the matching Sessions from offset on, and how many match in all.
// Nothing becomes hot by it. A Session that is damaged beyond repair is left out of the rows.
func (s *Store) Select(f Filter, offset, limit int) (page []Core, total int, err error) {
	if !f.AnyAuthority && f.Authority == "" {
		return nil, 0, nil
	}
	o := s.over()
	var mine []place
	for id, c := range o.cores {
		if f.match(c) {
			mine = append(mine, place{c.UpdatedAt.UnixMilli(), id})
		}
	}
	slices.SortFunc(mine, before)
	total = len(mine)
	places := mine
	if o.file != nil {
		if places, total, err = o.file.list(context.Background(), f, o.cores, mine, offset+limit); err != nil {
			return nil, 0, err
		}
	}
	places = places[min(offset, len(places)):]
	for _, p := range places[:min(limit, len(places))] {
		c, ok := o.cores[p.id]
		if !ok {
			if c, ok = s.Core(p.id); !ok || !f.match(c) {
				continue
			}
		}
		page = append(page, c)
	}
	return page, total, nil
}

// list merges the rows with what memory has, up to n places.
func (t *tables) list(ctx context.Context, f Filter, over map[event.SessionID]Core, mine []place, n int) ([]place, int, error) {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, err
	}
	defer tx.Rollback()
	where, args := f.where()
	total := len(mine)
	var rows int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM session WHERE `+where, args...).Scan(&rows); err != nil {
		return nil, 0, err
	}
	total += rows
	for id := range over {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM session WHERE `+where+` AND id = ?`, append(slices.Clone(args), string(id))...).
			Scan(&rows); err != nil {
			return nil, 0, err
		}
		total -= rows
	}
	var places []place
	failed := error(nil)
	for p := range t.places(ctx, tx, where, args, &failed) {
		for len(mine) > 0 && before(mine[0], p) < 0 {
			places, mine = append(places, mine[0]), mine[1:]
		}
		if len(places) >= n {
			break
		}
		if _, is := over[p.id]; !is {
			places = append(places, p)
		}
	}
	return append(places, mine...), total, failed
}

func (t *tables) places(ctx context.Context, tx *sql.Tx, where string, args []any, failed *error) iter.Seq[place] {
	return func(yield func(place) bool) {
		rows, err := tx.QueryContext(ctx, `SELECT updated, id FROM session WHERE `+where+` ORDER BY updated DESC, id`, args...)
		if err != nil {
			*failed = err
			return
		}
		defer rows.Close()
		for rows.Next() {
			var p place
			if *failed = rows.Scan(&p.updated, &p.id); *failed != nil || !yield(p) {
				return
			}
		}
		*failed = rows.Err()
	}
}

// Unfinished is what one Session has open: calls without a finish, Jobs without an end.
type Unfinished struct {
	Session event.SessionID
	Project event.ProjectRef
	Calls   []OpenCall
	Jobs    []OpenJob
}

// Open lists everything open over all Sessions, ordered by Session, then start, then id. At
// start a dead server's calls are found here.
func (s *Store) Open() ([]Unfinished, error) {
	o := s.over()
	ids := slices.Collect(maps.Keys(o.cores))
	if o.file != nil {
		rows, err := idsOf(o.file.busy.Query())
		if err != nil {
			return nil, err
		}
		ids = append(ids, rows...)
	}
	slices.Sort(ids)
	var out []Unfinished
	for _, id := range slices.Compact(ids) {
		c, ok := o.cores[id]
		if !ok {
			if c, ok = s.Core(id); !ok {
				continue // its readers are told why; the others go on
			}
		}
		if len(c.Open)+len(c.Jobs) > 0 {
			out = append(out, Unfinished{Session: c.ID, Project: c.Project, Calls: openCalls(c), Jobs: openJobs(c)})
		}
	}
	return out, nil
}

func idsOf(rows *sql.Rows, err error) (out []event.SessionID, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id event.SessionID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
}

func openCalls(c Core) []OpenCall {
	return slices.SortedFunc(maps.Values(c.Open), func(a, b OpenCall) int {
		if n := a.At.Compare(b.At); n != 0 {
			return n
		}
		return cmp.Compare(a.Started.Call, b.Started.Call)
	})
}

func openJobs(c Core) []OpenJob {
	return slices.SortedFunc(maps.Values(c.Jobs), func(a, b OpenJob) int {
		if n := a.At.Compare(b.At); n != 0 {
			return n
		}
		return cmp.Compare(a.Execution.ID, b.Execution.ID)
	})
}

// Ended finds how a Job of any Session ended, by its id, and the Session it belongs to.
func (s *Store) Ended(id event.ExecutionID) (EndedJob, Core, bool) {
	o := s.over()
	for _, c := range o.cores {
		if j, ok := endedIn(c, id); ok {
			return j, c, true
		}
	}
	if o.file == nil {
		return EndedJob{}, Core{}, false
	}
	var owner event.SessionID
	if err := o.file.ended.QueryRow(string(id)).Scan(&owner); err != nil {
		return EndedJob{}, Core{}, false
	}
	c, _ := s.Core(owner)
	j, ok := endedIn(c, id)
	return j, c, ok
}

func endedIn(c Core, id event.ExecutionID) (EndedJob, bool) {
	i := slices.IndexFunc(c.Ended, func(j EndedJob) bool { return j.Execution == id })
	if i < 0 {
		return EndedJob{}, false
	}
	return c.Ended[i], true
}

// Totals are the Session counters of a status report: no ids, no keys (SES-58).
type Totals struct {
	// Sessions are the retained ones, hot and cold, active and closed.
	Sessions int `json:"sessions"`
	Active   int `json:"active"`
	Closed   int `json:"closed"`
	// Hot are expanded in memory, the others lie in state.db.
	Hot  int `json:"hot"`
	Cold int `json:"cold"`
	// HotTarget is a count of Sessions, not of bytes (SES-32). MaxSessions repeats it under its
	// older name; nothing is deleted by it (SES-42).
	HotTarget   int `json:"hot_session_capacity_target"`
	MaxSessions int `json:"max_sessions"`
	// MaxTail is how many events of a Session are retained.
	MaxTail int `json:"tail_events_limit"`
	// Tombstones of removed Sessions are kept by projections/retention, which fills this in.
	Tombstones int `json:"tombstones"`
	// LastPersistError says why the newest changes are in memory and in the log but not in
	// state.db yet; null after a good write (RES-23).
	LastPersistError *string `json:"last_persist_error"`
}

// Any reports whether there is a Session at all.
func (s *Store) Any() bool {
	t := s.Totals()
	return t.Sessions > 0
}

// Totals counts the retained Sessions.
func (s *Store) Totals() Totals {
	o := s.over()
	counts := map[Lifecycle]int{}
	for _, c := range o.cores {
		if c.Exists() {
			counts[c.Lifecycle]++
		}
	}
	if o.file != nil {
		s.tell(o.file.count(context.Background(), o, counts))
	}
	lastError := s.lastPersistError()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Totals{Active: counts[Active], Closed: counts[Closed], Hot: s.hot.len(), HotTarget: s.hot.target, MaxSessions: s.hot.target,
		MaxTail: MaxTail, LastPersistError: lastError}
	t.Sessions = t.Active + t.Closed
	t.Cold = max(t.Sessions-t.Hot, 0)
	return t
}

const countRows = `SELECT lifecycle, count(*) FROM session GROUP BY lifecycle`

func (s *Store) lastPersistError() *string {
	s.mu.Lock()
	keeper := s.keeper
	s.mu.Unlock()
	if keeper == nil {
		return nil
	}
	if why := keeper.LastPersistError(); why != "" {
		return &why
	}
	return nil
}

// count adds the rows, less those that memory knows better.
func (t *tables) count(ctx context.Context, o overlay, counts map[Lifecycle]int) error {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	from := `SELECT lifecycle, sessions FROM session_count`
	if o.spoilt {
		from = countRows
	}
	rows, err := tx.QueryContext(ctx, from)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l Lifecycle
		var n int
		if err := rows.Scan(&l, &n); err != nil {
			return err
		}
		counts[l] += n
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for id := range o.cores {
		var l Lifecycle
		err := tx.QueryRowContext(ctx, `SELECT lifecycle FROM session WHERE id = ?`, string(id)).Scan(&l)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		counts[l]--
	}
	return nil
}
