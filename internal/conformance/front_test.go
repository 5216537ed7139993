package conformance_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// front stands before a server and adds the token, since the suite cannot carry one. All else
// goes through as the suite sent it, a foreign Host or Origin too: those it tries on purpose.
// It gives the URL to test.
func front(t *testing.T, mcpURL, token string) string {
	t.Helper()
	to, err := url.Parse(mcpURL)
	if err != nil {
		t.Fatal(err)
	}
	var self string // host:port of the front
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host
			if r.In.Host == self {
				r.Out.Host = to.Host
			}
			if o := r.In.Header.Get("Origin"); o != "" {
				r.Out.Header.Set("Origin", strings.Replace(o, self, to.Host, 1))
			}
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A request body that is still being read when the answer streams makes the proxy cut
		// some of the streams; the whole body first, it never does.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
	self = server.Listener.Addr().String()
	server.Start()
	t.Cleanup(server.Close)
	return server.URL + to.Path
}
