package mcp

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"

	"webcodex/mcp/client"
)

// TestErasEndToEnd: each revision lists and calls over TCP and over the socket.
func TestErasEndToEnd(t *testing.T) {
	r := newRig(t)
	for _, version := range versions {
		for name, o := range map[string]client.Options{"tcp": {URL: r.url}, "socket": {Socket: r.socket}} {
			t.Run(version+"/"+name, func(t *testing.T) {
				o.Token, o.Version = r.access.Token(), version
				c, err := client.Connect(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if c.Version() != version || c.Instructions() != Instructions {
					t.Errorf("agreed on %s; instructions of %d bytes", c.Version(), len(c.Instructions()))
				}
				tools, err := c.ListTools(context.Background())
				if err != nil || len(tools) != len(r.tools())-1 {
					t.Fatalf("%d tools, %v", len(tools), err)
				}
				res, err := c.CallTool(context.Background(), "echo", map[string]any{"text": "hello"})
				if err != nil || !res.Success || string(res.Output) != `{"text":"hello"}` {
					t.Errorf("%+v, %v", res, err)
				}
			})
		}
	}
}

// TestDispatch: each shape of request reaches the handler of its era.
func TestDispatch(t *testing.T) {
	r := newRig(t)
	id := r.initialize(legacy2)
	stray := modernCall("echo", `{}`, "")
	stray.header["Mcp-Session-Id"] = "left-over-of-another-server"
	discover := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`
	for _, c := range []struct {
		name   string
		q      request
		status int
		want   string
	}{
		{"modern", modernCall("echo", `{}`, ""), 200, `"isError":false`},
		{"modern with a stray session id", stray, 200, ""},
		{"legacy session", legacyCall("echo", `{}`, legacyHeader(legacy2, id)), 200, ""},
		{"legacy without a session", legacyCall("echo", `{}`, map[string]string{"Mcp-Protocol-Version": legacy1}), 200, ""},
		{"legacy without version and session", legacyCall("echo", `{}`, nil), 200, ""},
		{"discover", request{body: discover, header: map[string]string{"Mcp-Protocol-Version": Modern, "Mcp-Method": "server/discover"}}, 200, Modern},
		{"discover with a session id", request{body: discover, header: map[string]string{"Mcp-Protocol-Version": Modern,
			"Mcp-Method": "server/discover", "Mcp-Session-Id": id}}, 200, Modern},
		{"initialize that asks for the modern revision", request{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`}, 200, `"protocolVersion":"2025-11-25"`},
		{"no Accept", request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header: map[string]string{"Accept": ""}}, 200, `"tools"`},
		{"Accept of JSON alone", request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header: map[string]string{"Accept": "application/json"}}, 200, `"tools"`},
		{"dead session", legacyCall("echo", `{}`, legacyHeader(legacy2, "GONE")), 404, ""},
		{"GET without a session", request{method: "GET"}, 405, ""},
		{"GET of the modern era", request{method: "GET", header: map[string]string{"Mcp-Protocol-Version": Modern, "Mcp-Session-Id": id}}, 405, ""},
		{"DELETE without a session", request{method: "DELETE"}, 405, ""},
		{"PUT", request{method: "PUT", header: map[string]string{"Mcp-Session-Id": id}}, 405, ""},
		{"other path", request{path: "/", body: `{}`}, 404, ""},
		{"DELETE ends the session", request{method: "DELETE", header: legacyHeader(legacy2, id)}, 204, ""},
		{"and then it is dead", legacyCall("echo", `{}`, legacyHeader(legacy2, id)), 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := r.send(c.q)
			if resp.status != c.status {
				t.Fatalf("status %d: %s", resp.status, resp.body)
			}
			if c.status == 405 && resp.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if c.want != "" && c.want != `"isError":false` && !strings.Contains(resp.body, c.want) {
				t.Errorf("no %s in %s", c.want, resp.body)
			}
			if c.status == 200 && last(t, resp).Error != nil {
				t.Errorf("error: %s", resp.body)
			}
		})
	}
}

// TestProtocolErrors: what is malformed is refused with the right status and code, before
// anything runs.
func TestProtocolErrors(t *testing.T) {
	r := newRig(t)
	deep := strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65)
	list := `{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{` + modernMeta + `}}`
	bare := `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`
	head := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	const version, method = "Mcp-Protocol-Version", "Mcp-Method"
	for _, c := range []struct {
		name   string
		q      request
		status int
		code   int
	}{
		{"body over 4 MiB", request{body: `{"a":"` + strings.Repeat("x", MaxBody) + `"}`}, 413, codeInvalidRequest},
		{"batch", request{body: `[` + bare + `]`}, 400, codeInvalidRequest},
		{"batch after blanks", request{body: " \n[" + bare + `]`}, 400, codeInvalidRequest},
		{"65 deep", request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + deep + `}`}, 400, codeInvalidRequest},
		{"empty", request{body: ""}, 400, codeInvalidRequest},
		{"not JSON", request{body: `{"jsonrpc":`}, 400, codeParse},
		{"not UTF-8", request{body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"}, 400, codeParse},
		{"a string", request{body: `"x"`}, 400, codeInvalidRequest},
		{"fractional id", request{body: `{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`}, 400, codeInvalidRequest},
		{"null id", request{body: `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`}, 400, codeInvalidRequest},
		{"id past 2^53", request{body: `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}`}, 400, codeInvalidRequest},
		{"object as id", request{body: `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`}, 400, codeInvalidRequest},
		{"number as method", request{body: `{"jsonrpc":"2.0","id":1,"method":7}`}, 400, codeInvalidRequest},
		{"unknown legacy method", request{body: `{"jsonrpc":"2.0","id":"a","method":"no/such"}`}, 200, codeMethodNotFound},
		{"unknown modern method", request{body: `{"jsonrpc":"2.0","id":"a","method":"no/such","params":{` + modernMeta + `}}`,
			header: head(version, Modern, method, "no/such")}, 404, codeMethodNotFound},
		{"ping is gone in the modern era", request{body: `{"jsonrpc":"2.0","id":"a","method":"ping","params":{` + modernMeta + `}}`,
			header: head(version, Modern, method, "ping")}, 404, codeMethodNotFound},
		{"version of the past", request{body: bare, header: head(version, "2024-11-05")}, 400, codeUnsupportedVers},
		{"version of the future", request{body: strings.ReplaceAll(list, Modern, "2099-01-01"), header: head(version, "2099-01-01", method, "tools/list")}, 400, codeUnsupportedVers},
		{"version that is none", request{body: bare, header: head(version, "newest")}, 400, codeUnsupportedVers},
		{"modern header without _meta", request{body: bare, header: head(version, Modern, method, "tools/list")}, 400, codeInvalidParams},
		{"_meta without header", request{body: list, header: head(method, "tools/list")}, 400, codeHeaderMismatch},
		{"header of another revision", request{body: list, header: head(version, legacy2, method, "tools/list")}, 400, codeHeaderMismatch},
		{"header of no revision", request{body: list, header: head(version, "1999-01-01", method, "tools/list")}, 400, codeHeaderMismatch},
		{"no Mcp-Method", request{body: list, header: head(version, Modern)}, 400, codeHeaderMismatch},
		{"Mcp-Method of another", request{body: list, header: head(version, Modern, method, "tools/call")}, 400, codeHeaderMismatch},
		{"Mcp-Name of another", request{body: modernCall("echo", `{}`, "").body,
			header: head(version, Modern, method, "tools/call", "Mcp-Name", "wait")}, 400, codeHeaderMismatch},
		{"unknown tool, modern", modernCall("no_such", `{}`, ""), 400, codeInvalidParams},
		{"unknown tool, legacy", legacyCall("no_such", `{}`, nil), 200, codeInvalidParams},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := r.send(c.q)
			m := last(t, resp)
			if resp.status != c.status || m.Error == nil || m.Error.Code != c.code {
				t.Fatalf("%d %s", resp.status, resp.body)
			}
			if strings.HasPrefix(c.q.body, `{"jsonrpc":"2.0","id":"a"`) && string(m.ID) != `"a"` {
				t.Errorf("answers id %s", m.ID)
			}
			if c.code == codeUnsupportedVers && !strings.Contains(string(m.Error.Data), Modern) {
				t.Errorf("supported versions are missing: %s", m.Error.Data)
			}
			if strings.HasPrefix(c.name, "unknown tool") && string(m.Error.Data) != `{"error_kind":"unknown_tool"}` {
				t.Errorf("data %s", m.Error.Data)
			}
		})
	}
	if resp := r.send(request{body: `{"jsonrpc":"2.0","method":"notifications/of_tomorrow"}`}); resp.status != http.StatusAccepted || resp.body != "" {
		t.Errorf("unknown notification: %d %q", resp.status, resp.body)
	}
}

// TestSurfaces: the default list has the direct tools, the full one all; any may be called.
func TestSurfaces(t *testing.T) {
	r := newRig(t)
	for _, full := range []bool{false, true} {
		c, err := client.Connect(context.Background(), client.Options{Socket: r.socket, Token: r.access.Token(), Full: full})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := c.ListTools(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools {
			names = append(names, tool.Name)
			if tool.Annotations == nil || tool.Annotations.DestructiveHint == nil || tool.Annotations.OpenWorldHint == nil {
				t.Errorf("%s leaves hints out", tool.Name)
			}
		}
		if slices.Contains(names, "hidden_echo") != full || !slices.IsSorted(names) {
			t.Errorf("full %v: %v", full, names)
		}
		if res, err := c.CallTool(context.Background(), "hidden_echo", nil); err != nil || !res.Success {
			t.Errorf("full %v: %+v %v", full, res, err)
		}
		_ = c.Close()
	}
}

// TestClientErrors: a caller can tell no server, no access and no tool apart.
func TestClientErrors(t *testing.T) {
	r := newRig(t)
	if _, err := client.Connect(context.Background(), client.Options{URL: r.url, Token: "wcx_wrong"}); !errors.Is(err, client.ErrUnauthorised) {
		t.Errorf("wrong token: %v", err)
	}
	if _, err := client.Connect(context.Background(), client.Options{Socket: r.socket + "x", Token: "t"}); !errors.Is(err, client.ErrNoServer) {
		t.Errorf("no socket: %v", err)
	}
	var rpcErr *client.RPCError
	if _, err := r.connect("").CallTool(context.Background(), "no_such", nil); !errors.As(err, &rpcErr) || rpcErr.Code != codeInvalidParams {
		t.Errorf("no tool: %v", err)
	}
	if _, err := ReadToken(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no token file: %v", err)
	}
}
