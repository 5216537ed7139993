package mcp

import (
	"net/http/httptest"
	"testing"
	"time"
)

// The end of a server waits for an answer on its way, not for a stream that only listens.
func TestEndWaitsForAnswersOnTheirWay(t *testing.T) {
	var a answering
	listen := httptest.NewRequest("POST", "/mcp", nil)
	listen.Header.Set("Mcp-Method", "subscriptions/listen")
	defer a.enter(listen)()
	defer a.enter(httptest.NewRequest("GET", "/mcp", nil))()
	a.wait(time.Hour)

	leave := a.enter(httptest.NewRequest("POST", "/mcp", nil))
	over := make(chan struct{})
	go func() {
		a.wait(time.Hour)
		close(over)
	}()
	select {
	case <-over:
		t.Fatal("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	leave()
	<-over

	defer a.enter(httptest.NewRequest("POST", "/mcp", nil))()
	a.wait(time.Millisecond) // gives up on a client that never reads
}
