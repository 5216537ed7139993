package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// FoldVersion is the version of what a Session folds to and of the forms below. A change of
// either that does not read the bytes of before takes the next number: state.db is then made
// again from the log. Carried state has its own: CarriedForm.
const FoldVersion = 4

// Stored forms. Times are Unix milliseconds, as exact as the log's. New members go with
// omitempty or omitzero.
type (
	coreForm struct {
		ID             string                  `json:"id"`
		Nonce          string                  `json:"nonce,omitempty"`
		Authority      string                  `json:"authority,omitempty"`
		Principal      string                  `json:"principal,omitempty"`
		Project        event.ProjectRef        `json:"project,omitzero"`
		Root           string                  `json:"root,omitempty"`
		Title          string                  `json:"title,omitempty"`
		Mode           event.Mode              `json:"mode"`
		Guards         event.Guards            `json:"guards"`
		Context        event.ExecutionContext  `json:"context,omitzero"`
		Instructions   []event.InstructionFile `json:"instructions,omitempty"`
		Lifecycle      Lifecycle               `json:"lifecycle"`
		Created        int64                   `json:"created"`
		Updated        int64                   `json:"updated"`
		Version        uint64                  `json:"version"`
		Rested         uint64                  `json:"rested,omitempty"`
		Observed       uint64                  `json:"observed,omitempty"`
		Edited         bool                    `json:"edited,omitempty"`
		Changed        uint64                  `json:"changed,omitempty"`
		Open           []callForm              `json:"open,omitempty"`
		Jobs           []jobForm               `json:"jobs,omitempty"`
		Ended          []endedForm             `json:"ended,omitempty"`
		Task           *excerptForm            `json:"task,omitempty"`
		Unknown        []unknownForm           `json:"unknown,omitempty"`
		UnknownDropped int                     `json:"unknown_dropped,omitempty"`
		// Of the board: its revision, its low-watermark, and how many messages lie beside it.
		Revision uint64 `json:"revision,omitempty"`
		Low      uint64 `json:"low,omitempty"`
		Messages int    `json:"messages,omitempty"`
		// Seq and Hash of the commit it stands at.
		Seq  uint64 `json:"seq"`
		Hash string `json:"hash"`
	}
	callForm struct {
		Started event.ToolCallStarted `json:"started"`
		Server  event.InstanceID      `json:"server"`
		Actor   event.Actor           `json:"actor"`
		At      int64                 `json:"at"`
		Inv     event.InvocationID    `json:"inv,omitempty"`
	}
	jobForm struct {
		Call      event.CallID           `json:"call"`
		Tool      string                 `json:"tool"`
		Execution event.Execution        `json:"execution"`
		Input     event.Input            `json:"input"`
		Server    event.InstanceID       `json:"server"`
		At        int64                  `json:"at"`
		Validates *event.ValidationScope `json:"validates,omitempty"`
	}
	endedForm struct {
		Execution   event.ExecutionID    `json:"execution"`
		Tool        string               `json:"tool"`
		ExitCode    *int                 `json:"exit_code,omitempty"`
		FailureKind string               `json:"failure_kind,omitempty"`
		State       event.ExecutionState `json:"state,omitempty"`
		DurationMS  int64                `json:"duration_ms"`
	}
	excerptForm struct {
		Text      string `json:"text"`
		Truncated bool   `json:"truncated,omitempty"`
	}
	unknownForm struct {
		Execution event.ExecutionID `json:"execution,omitempty"`
		Call      event.CallID      `json:"call,omitempty"`
		Tool      string            `json:"tool"`
		At        int64             `json:"at"`
		Version   uint64            `json:"version"`
	}
	// itemForm is an item in carried state; a row has the form of appendRow.
	itemForm struct {
		Seq     uint64             `json:"seq"`
		Version uint64             `json:"version"`
		Index   int                `json:"index,omitempty"`
		At      int64              `json:"at"`
		Inv     event.InvocationID `json:"inv,omitempty"`
		Event   event.Event        `json:"event"`
	}
	viewForm struct {
		V        int           `json:"v"`
		Core     coreForm      `json:"core"`
		Observed uint64        `json:"observed,omitempty"`
		Items    []itemForm    `json:"items,omitempty"`
		Messages []messageForm `json:"messages,omitempty"`
	}
)

var (
	coreForms = event.NewForm[coreForm]()
	viewForms = event.NewForm[viewForm]()
)

// AppendCore writes the bytes of a core, of what its board counts and of the commit it stands at.
func AppendCore(b []byte, v View) []byte {
	f := formOfCore(v)
	return coreForms.Append(b, &f)
}

// decodeCore reads what AppendCore wrote. Anything else, a member it does not know too, is an
// error (RES-05), as is a mode or a lifecycle outside the enum (RES-07). That a text is valid
// UTF-8 its row's hash says. Tail and messages are not in it.
func decodeCore(s string) (View, error) {
	var f coreForm
	if err := coreForms.ReadString(s, &f); err != nil {
		return View{}, fmt.Errorf("core: %w", err)
	}
	c, err := f.core()
	if err != nil {
		return View{}, err
	}
	return View{Core: c, Board: Board{Revision: f.Revision, Low: f.Low, unread: f.Messages}, Seq: f.Seq, Hash: f.Hash}, nil
}

// AppendItem writes the bytes of one tail event: a line that says what it is, and the event.
func AppendItem(b []byte, it Item) []byte {
	for _, n := range [...]int64{int64(it.Seq), int64(it.Version), int64(it.Index), it.At.UnixMilli()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = append(append(b, it.Kind...), ' ')
	b = append(append(b, it.Role...), ' ')
	b = append(append(b, it.Inv...), '\n')
	if it.event == nil {
		return append(b, it.text...)
	}
	return event.AppendEvent(b, it.event)
}

// decodeItem reads what AppendItem wrote: the first line alone; the event is read when it is looked at.
func decodeItem(s string) (Item, error) {
	head, text, ok := strings.Cut(s, "\n")
	if !ok {
		return Item{}, errItem
	}
	var n [4]int64
	for i := range n {
		var field string
		var err error
		if field, head, ok = strings.Cut(head, " "); !ok {
			return Item{}, errItem
		}
		if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			return Item{}, errItem
		}
	}
	it := Item{Seq: uint64(n[0]), Version: uint64(n[1]), Index: int(n[2]), At: timeOf(n[3]), text: text}
	kind, head, _ := strings.Cut(head, " ")
	role, inv, ok := strings.Cut(head, " ")
	if !ok || text == "" {
		return Item{}, errItem
	}
	it.Kind, it.Role, it.Inv = Kind(kind), event.Role(role), event.InvocationID(inv)
	return it, nil
}

// decoded is the item with its event read. The fold sanitised it before it was written, and
// the row's hash and the file's Shape say that it is what was written.
func (i Item) decoded() (Item, error) {
	if i.event != nil {
		return i, nil
	}
	e, err := event.ReadEvent(i.text)
	if err != nil {
		return Item{}, err
	}
	se, ok := e.(event.SessionEvent)
	if !ok || TailKind(se) != i.Kind || i.Kind == "" {
		return Item{}, errEvent
	}
	i.event, i.text = se, ""
	return i, nil
}

// Shape names what the rows of a Session look like and mean. A file of another one is made
// again.
func Shape() string {
	return fmt.Sprintf("%d/%d%s%s%s%x", FoldVersion, SanitiseVersion, coreForms.Shape(), messageForms.Shape(), event.EventShape(), state.HashString(strings.Join(schema, ";")))
}

// EncodeView writes a whole Session, for carried state. DecodeView gives an equal one.
func EncodeView(v View) []byte {
	items := v.Tail.Items()
	f := viewForm{V: CarriedForm, Core: formOfCore(v), Observed: v.Tail.Observed, Items: make([]itemForm, len(items)),
		Messages: formsOfBoard(v.Board)}
	for i, it := range items {
		f.Items[i] = formOfItem(it)
	}
	return viewForms.Append(make([]byte, 0, 1024+512*len(items)), &f)
}

// DecodeView reads what EncodeView wrote.
func DecodeView(b []byte) (View, error) { return decodeView(b, CarriedForm) }

func decodeView(b []byte, form int) (View, error) {
	var f viewForm
	if err := viewForms.Read(b, &f); err != nil {
		return View{}, fmt.Errorf("session: %w", err)
	}
	if f.V != form {
		return View{}, fmt.Errorf("session: carried form %d, not %d", f.V, form)
	}
	c, err := f.Core.core()
	if err != nil {
		return View{}, err
	}
	items := make([]Item, len(f.Items))
	for i := range f.Items {
		if items[i], err = f.Items[i].item(); err != nil {
			return View{}, err
		}
	}
	t, err := NewTail(items, f.Observed)
	if err != nil {
		return View{}, err
	}
	c.Observed = t.Observed // never less than what is retained (RES-14)
	c = c.rest(f.Core.Seq)  // a state of before Rested says no more than that
	return View{Core: c, Tail: t, Board: carriedBoard(f.Core.Revision, f.Core.Low, f.Messages), Seq: f.Core.Seq, Hash: f.Core.Hash}, nil
}

// NewTail makes a tail of retained events, oldest first; it owns the slice from now on.
// observed is never less than what is retained (RES-14). Events without a gap up to observed
// are all it takes, at most MaxTail of them (EVT-01).
func NewTail(items []Item, observed uint64) (Tail, error) {
	if n := len(items); n > 0 {
		observed = max(observed, items[n-1].Seq, uint64(n))
	}
	items = items[max(0, len(items)-MaxTail):]
	first := observed - uint64(len(items)) + 1
	for i := range items {
		if items[i].Seq != first+uint64(i) {
			return Tail{}, errGap
		}
	}
	t := Tail{Observed: observed}
	if len(items) > 0 {
		t.buf, t.end = &buffer{items: items}, len(items)
		t.buf.claimed.Store(int64(len(items)))
	}
	return t, nil
}

var (
	errItem      = errors.New("a tail row has not the form of one")
	errGap       = errors.New("the retained events of a Session have a gap")
	errMode      = errors.New("the Session has a mode that is none")
	errLifecycle = errors.New("the Session has a lifecycle that is none")
	errEvent     = errors.New("an event in a Session's tail is none of those kept there")
)

func formOfCore(v View) coreForm {
	c, b := v.Core, v.Board
	f := coreForm{ID: string(c.ID), Nonce: c.Nonce, Authority: c.Authority, Principal: c.Principal, Project: c.Project, Root: c.Root,
		Title: c.Title, Mode: c.Mode, Guards: c.Guards, Context: c.Context, Instructions: c.Instructions, Lifecycle: c.Lifecycle,
		Created: c.CreatedAt.UnixMilli(), Updated: c.UpdatedAt.UnixMilli(), Version: c.Version, Rested: c.Rested, Observed: c.Observed,
		Edited: c.Edited, Changed: c.ChangedVersion, UnknownDropped: c.UnknownDropped,
		Revision: b.Revision, Low: b.Low, Messages: len(b.list) + b.unread, Seq: v.Seq, Hash: v.Hash}
	for _, o := range openCalls(c) {
		f.Open = append(f.Open, callForm{o.Started, o.Server, o.Actor, o.At.UnixMilli(), o.Inv})
	}
	for _, j := range openJobs(c) {
		f.Jobs = append(f.Jobs, jobForm{j.Call, j.Tool, j.Execution, j.Input, j.Server, j.At.UnixMilli(), j.Validates})
	}
	for _, e := range c.Ended {
		f.Ended = append(f.Ended, endedForm(e))
	}
	for _, u := range c.Unknown {
		f.Unknown = append(f.Unknown, unknownForm{u.Execution, u.Call, u.Tool, u.At.UnixMilli(), u.Version})
	}
	if c.Task != nil {
		f.Task = &excerptForm{c.Task.Text, c.Task.Truncated}
	}
	return f
}

func (f *coreForm) core() (Core, error) {
	if f.Lifecycle != "" && f.Mode != event.ModeNormal && f.Mode != event.ModeReadOnly {
		return Core{}, errMode
	}
	if f.Lifecycle != "" && f.Lifecycle != Active && f.Lifecycle != Closed {
		return Core{}, errLifecycle
	}
	c := Core{ID: event.SessionID(f.ID), Nonce: f.Nonce, Authority: f.Authority, Principal: f.Principal, Project: f.Project,
		Root: f.Root, Title: f.Title, Mode: f.Mode, Guards: f.Guards, Context: f.Context, Instructions: f.Instructions, Lifecycle: f.Lifecycle,
		CreatedAt: timeOf(f.Created), UpdatedAt: timeOf(f.Updated), Version: f.Version, Rested: f.Rested, Observed: f.Observed, Edited: f.Edited,
		ChangedVersion: f.Changed, UnknownDropped: f.UnknownDropped}
	if len(f.Open) > 0 {
		c.Open = make(map[event.CallID]OpenCall, len(f.Open))
	}
	for _, o := range f.Open {
		c.Open[o.Started.Call] = OpenCall{o.Started, o.Server, o.Actor, timeOf(o.At), o.Inv}
	}
	if len(f.Jobs) > 0 {
		c.Jobs = make(map[event.ExecutionID]OpenJob, len(f.Jobs))
	}
	for _, j := range f.Jobs {
		c.Jobs[j.Execution.ID] = OpenJob{j.Call, j.Tool, j.Execution, j.Input, j.Server, timeOf(j.At), j.Validates}
	}
	for _, e := range f.Ended {
		c.Ended = append(c.Ended, EndedJob(e))
	}
	for _, u := range f.Unknown {
		c.Unknown = append(c.Unknown, Unknown{u.Execution, u.Call, u.Tool, timeOf(u.At), u.Version})
	}
	if f.Task != nil {
		c.Task = &Excerpt{f.Task.Text, f.Task.Truncated}
	}
	return c.sanitised(), nil
}

func formOfItem(it Item) itemForm {
	return itemForm{it.Seq, it.Version, it.Index, it.At.UnixMilli(), it.Inv, it.Event()}
}

func (f *itemForm) item() (Item, error) {
	e, ok := f.Event.(event.SessionEvent)
	if !ok {
		return Item{}, errEvent
	}
	e, _ = sanitise(e)
	it := Item{Seq: f.Seq, Version: f.Version, Index: f.Index, Kind: TailKind(e), At: timeOf(f.At), Inv: f.Inv, event: e}
	switch e := e.(type) {
	case event.ToolCallStarted:
		it.Role = e.Role
	case event.ToolCallFinished:
		it.Role = e.Role
	default: // only calls have roles
	}
	if it.Kind == "" {
		return Item{}, errEvent
	}
	return it, nil
}

// timeOf undoes UnixMilli, of the zero time too.
func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
