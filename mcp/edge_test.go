package mcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"webcodex/mcp/client"
)

// TestEdgeOrder: Host, Origin, preflight, token, body, each before the next.
func TestEdgeOrder(t *testing.T) {
	r := newRig(t, func(c *Config) { c.PublicURL = "https://code.example.com" })
	_, port, _ := net.SplitHostPort(r.addr)
	const none = ""
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	huge := strings.Repeat(" ", MaxBody) + list
	h := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name   string
		q      request
		status int
	}{
		{"plain", request{body: list}, 200},
		{"localhost", request{body: list, host: "LOCALHOST:" + port}, 200},
		{"IPv6 loopback", request{body: list, host: "[::1]:" + port}, 200},
		{"public name", request{body: list, host: "code.example.com"}, 200},
		{"public name with its port", request{body: list, host: "code.example.com:443"}, 200},
		{"another port", request{body: list, host: "127.0.0.1:1"}, 403},
		{"no port", request{body: list, host: "127.0.0.1"}, 403},
		{"rebound name", request{body: list, host: "evil.example:" + port}, 403},
		{"name with the public one inside", request{body: list, host: "code.example.com.evil.example"}, 403},
		{"wrong Host before a missing token", request{body: list, host: "evil.example", header: h("Authorization", none)}, 403},
		{"foreign Origin", request{body: list, header: h("Origin", "https://evil.example")}, 403},
		{"opaque Origin", request{body: list, header: h("Origin", "null")}, 403},
		{"Origin that starts like ours", request{body: list, header: h("Origin", "https://code.example.com.evil.example")}, 403},
		{"Origin with a path", request{body: list, header: h("Origin", "http://localhost/x")}, 403},
		{"foreign Origin before a missing token", request{body: list, header: h("Origin", "https://evil.example", "Authorization", none)}, 403},
		{"own Origin", request{body: list, header: h("Origin", "https://code.example.com")}, 200},
		{"local page", request{body: list, header: h("Origin", "http://localhost:6274")}, 200},
		{"preflight needs no token", request{method: "OPTIONS", header: h("Origin", "http://127.0.0.1:6274", "Access-Control-Request-Method", "POST", "Authorization", none)}, 204},
		{"preflight of a foreign page", request{method: "OPTIONS", header: h("Origin", "https://evil.example", "Access-Control-Request-Method", "POST")}, 403},
		{"OPTIONS that is no preflight", request{method: "OPTIONS", header: h("Authorization", none)}, 401},
		{"no token", request{body: list, header: h("Authorization", none)}, 401},
		{"wrong token", request{body: list, header: h("Authorization", "Bearer wcx_"+strings.Repeat("A", 43))}, 401},
		{"prefix of the token", request{body: list, header: h("Authorization", "Bearer "+r.access.Token()[:20])}, 401},
		{"token and more", request{body: list, header: h("Authorization", "Bearer "+r.access.Token()+"x")}, 401},
		{"another scheme", request{body: list, header: h("Authorization", "Basic "+r.access.Token())}, 401},
		{"scheme in another case", request{body: list, header: h("Authorization", "bearer "+r.access.Token())}, 200},
		{"token in the query", request{body: list, path: "/mcp?token=" + r.access.Token()}, 401},
		{"token in the query, header missing", request{body: list, path: "/mcp?access_token=" + r.access.Token(), header: h("Authorization", none)}, 401},
		{"token under another name", request{body: list, path: "/mcp?x=a" + r.access.Token()}, 401},
		{"token percent-encoded", request{body: list, path: "/mcp?x=%77cx_" + r.access.Token()[4:]}, 401},
		{"token in the path", request{body: list, path: "/mcp/" + r.access.Token()}, 401},
		{"a query member for tokens", request{body: list, path: "/mcp?api_key=zzz"}, 401},
		{"broken query", request{body: list, path: "/mcp?a=%zz"}, 401},
		{"surface in the query is fine", request{body: list, path: "/mcp?surface=full"}, 200},
		{"the token comes before the body", request{body: huge, header: h("Authorization", none, "Expect", "100-continue")}, 401},
		{"other paths need the token too", request{method: "GET", path: "/.well-known/oauth-protected-resource", header: h("Authorization", none)}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := r.send(c.q)
			if resp.status != c.status {
				t.Fatalf("status %d: %s", resp.status, resp.body)
			}
			if strings.Contains(resp.body, r.access.Token()) {
				t.Error("the answer repeats the token")
			}
			switch c.status {
			case 401:
				if strings.TrimSpace(resp.body) != `{"error":"invalid_token"}` || !strings.HasPrefix(resp.header.Get("WWW-Authenticate"), "Bearer ") {
					t.Errorf("%q %q", resp.body, resp.header.Get("WWW-Authenticate"))
				}
			case 204:
				allowed := resp.header.Get("Access-Control-Allow-Headers")
				if resp.header.Get("Access-Control-Allow-Origin") != c.q.header["Origin"] || !strings.Contains(allowed, "Authorization") ||
					!strings.Contains(allowed, "Mcp-Protocol-Version") {
					t.Errorf("%v", resp.header)
				}
			}
		})
	}
}

// TestTwoAuthorizationHeaders: which one counts would differ between readers, so neither does.
func TestTwoAuthorizationHeaders(t *testing.T) {
	r := newRig(t)
	req, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Authorization"] = []string{"Bearer " + r.access.Token(), "Bearer other"}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestSocketAsksForTheToken: the socket has no open mode either, and serves no page.
func TestSocketAsksForTheToken(t *testing.T) {
	r := newRig(t)
	hc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", r.socket)
	}}}
	for name, c := range map[string]struct {
		header map[string]string
		status int
	}{
		"no token":    {nil, 401},
		"wrong token": {map[string]string{"Authorization": "Bearer x"}, 401},
		"a page":      {map[string]string{"Authorization": "Bearer " + r.access.Token(), "Origin": "http://localhost"}, 403},
		"token":       {map[string]string{"Authorization": "Bearer " + r.access.Token()}, 200},
	} {
		req, err := http.NewRequest(http.MethodPost, "http://any.host/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range c.header {
			req.Header.Set(k, v)
		}
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

// TestExchangeHeaderIsOurs: a caller cannot borrow another request's authorisation.
func TestExchangeHeaderIsOurs(t *testing.T) {
	r := newRig(t)
	e := r.srv.exchanges.open(nil, &http.Request{Header: http.Header{}}, true, grant{principal: r.access.principal})
	q := modernCall("echo", `{}`, "")
	q.header[exchangeHeader] = e.id
	if resp := r.send(q); last(t, resp).Result.IsError {
		t.Errorf("%s", resp.body)
	}
	r.srv.exchanges.mu.Lock()
	_, still := r.srv.exchanges.byID[e.id]
	r.srv.exchanges.mu.Unlock()
	if !still {
		t.Error("the caller's header took another request's exchange")
	}
}

// TestSlowBody: an unauthorised client is answered before its body comes, however slowly.
func TestSlowBody(t *testing.T) {
	r := newRig(t)
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: "+r.addr+"\r\nContent-Length: 1000\r\nAuthorization: Bearer no\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	b := make([]byte, 64)
	n, err := c.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 401") {
		t.Errorf("%q %v", b[:n], err)
	}
}

// TestPublicURL: what is no public URL is refused at start.
func TestPublicURL(t *testing.T) {
	for _, u := range []string{"code.example.com", "ftp://x", "https://", "https://user:pw@host", "://"} {
		if _, err := newHostList("127.0.0.1:1", u); err == nil {
			t.Errorf("%q was taken", u)
		}
	}
	if _, err := newHostList("nothing", ""); err == nil {
		t.Error("a listen address without a port was taken")
	}
}

// TestClientOverSocketSeesBothSurfaces keeps the socket's path and query working.
func TestClientOverSocketSeesBothSurfaces(t *testing.T) {
	r := newRig(t)
	var n [2]int
	for i, full := range []bool{false, true} {
		c, err := client.Connect(context.Background(), client.Options{Socket: r.socket, Token: r.access.Token(), Full: full, Version: legacy1})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := c.ListTools(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		n[i] = len(tools)
		_ = c.Close()
	}
	if n[1] != n[0]+1 {
		t.Errorf("%v", n)
	}
}

// TestClientThatDoesNotRead: a write to a full connection is given up, not waited on for ever.
func TestClientThatDoesNotRead(t *testing.T) {
	gaveUp := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sw := newStreamWriter(w, 100*time.Millisecond)
		defer sw.end()
		for range 4096 { // 256 MiB fit into no buffer
			if _, err := sw.Write(make([]byte, 64<<10)); err != nil {
				gaveUp <- err
				return
			}
		}
		gaveUp <- nil
	}))
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := soon(t, gaveUp, "the end of the write"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestWriterAfterItsRequest: nothing is written once the request has ended.
func TestWriterAfterItsRequest(t *testing.T) {
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "text/event-stream")
	w := newStreamWriter(rec, time.Second)
	if !w.beat() || rec.Body.String() != string(keepAlive) {
		t.Fatalf("no heartbeat: %q", rec.Body)
	}
	w.end()
	if _, err := w.Write([]byte("late")); err == nil || w.beat() || w.FlushError() == nil {
		t.Error("the writer outlives its request")
	}
	if rec.Body.String() != string(keepAlive) {
		t.Errorf("%q", rec.Body)
	}
	plain := newStreamWriter(httptest.NewRecorder(), time.Second)
	if plain.beat() {
		t.Error("a heartbeat in a response that is no stream")
	}
}
