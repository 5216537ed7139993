package mcp

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// exchangeHeader carries the id of an exchange from the HTTP edge to the SDK's middleware.
// In the eras with sessions the handler's context is that of the session's first request,
// so per-request values cannot travel there. Callers' own values are deleted.
const exchangeHeader = "X-Webcodex-Exchange"

// exchange is one authorised HTTP request.
type exchange struct {
	id     string
	w      *streamWriter
	modern bool
	grant  grant           // who was let in
	left   <-chan struct{} // closed when the connection has gone, or the request is over
}

// gone tells that nobody reads the response any more.
func (e *exchange) gone() bool {
	select {
	case <-e.left:
		return true
	default:
		return false
	}
}

// exchanges finds the exchange of a message. An entry is taken once, by the middleware.
type exchanges struct {
	mu   sync.Mutex
	byID map[string]*exchange
}

func (x *exchanges) open(w http.ResponseWriter, r *http.Request, modern bool, g grant) *exchange {
	e := &exchange{id: rand.Text(), w: newStreamWriter(w, writeDeadline), modern: modern, grant: g, left: r.Context().Done()}
	r.Header.Set(exchangeHeader, e.id)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byID == nil {
		x.byID = map[string]*exchange{}
	}
	x.byID[e.id] = e
	return e
}

// close ends the writer. In the legacy eras a message may still be queued when its
// connection ends, and then it must still be known as authorised for a while.
func (x *exchanges) close(e *exchange) {
	e.w.end()
	x.mu.Lock()
	_, waiting := x.byID[e.id]
	x.mu.Unlock()
	if waiting {
		time.AfterFunc(exchangeLinger, func() { x.drop(e.id) })
	}
}

func (x *exchanges) drop(id string) {
	x.mu.Lock()
	delete(x.byID, id)
	x.mu.Unlock()
}

// take finds the exchange of a request that the SDK hands to middleware; nil means that it
// did not come through the edge.
func (x *exchanges) take(extra *sdk.RequestExtra) *exchange {
	if extra == nil || extra.Header == nil {
		return nil
	}
	id := extra.Header.Get(exchangeHeader)
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.byID[id]
	delete(x.byID, id)
	return e
}

// streamWriter lets a heartbeat share a response with the SDK: one write at a time, none
// after the request has ended, none that a stalled client can hold up beyond its patience.
type streamWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	mu       sync.Mutex
	ended    bool
}

func newStreamWriter(w http.ResponseWriter, patience time.Duration) *streamWriter {
	return &streamWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
}

// Unwrap is for http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *streamWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *streamWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(p)
}

func (w *streamWriter) write(p []byte) (int, error) {
	if w.ended {
		return 0, http.ErrHandlerTimeout
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (w *streamWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return http.ErrHandlerTimeout
	}
	return w.control.Flush()
}

func (w *streamWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	_ = w.control.SetWriteDeadline(time.Time{})
}

var keepAlive = []byte(": keep-alive\n\n")

// beat writes an SSE comment if the response is a stream. It reports whether the stream is
// still there.
func (w *streamWriter) beat() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		return false
	}
	if _, err := w.write(bytes.Clone(keepAlive)); err != nil {
		return false
	}
	return w.control.Flush() == nil
}
