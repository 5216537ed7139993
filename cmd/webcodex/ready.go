package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ready is what a person or a script needs to connect a host; its JSON is the one line of
// `up --json`.
type ready struct {
	Ready   bool   `json:"ready"`
	MCPURL  string `json:"mcp_url"`
	Token   string `json:"token"`
	Project string `json:"project"`
	DataDir string `json:"data_dir"`
	PID     int    `json:"pid"`
	// Runners are the addresses where Runners of other processes connect.
	Runners []string `json:"runners,omitempty"`

	tokenFile string
	public    string // --public-url, where one was given
	durable   string
}

// printReady prints the ready block. The token itself stands there only on a terminal or on
// demand: what is printed elsewhere ends in files and logs (faults.md 4, Local access).
func printReady(w io.Writer, r ready, asJSON, showToken bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	var b strings.Builder
	token := "in " + r.tokenFile
	if showToken || terminal(w) {
		token = r.Token + "   (" + token + ")"
	}
	project := r.Project
	if project == "" {
		project = "none of its own: those of the Runners that connect"
	}
	fmt.Fprintf(&b, `webcodex is ready (pid %d)

  project     %s
  MCP         %s
  token       %s
  data        %s   (durability %s)
%s
Connect a host. Each reads the token from its file or from a variable:

`, r.PID, clean(project), r.MCPURL, clean(token), clean(r.DataDir), r.durable, runnersText(r))
	for _, h := range hosts(r) {
		fmt.Fprintf(&b, "  %s\n", clean(h.name))
		for line := range strings.Lines(cleanLines(h.text)) {
			fmt.Fprintf(&b, "    %s", line)
		}
		fmt.Fprint(&b, "\n\n")
	}
	if r.Project == "" {
		fmt.Fprint(&b, "Let a Runner in with `webcodex token create --kind runner --name NAME`; then list_projects shows its Projects.\n")
	} else {
		fmt.Fprint(&b, "Then ask the host to start work with work_on_project on the project above.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func runnersText(r ready) string {
	if len(r.Runners) == 0 {
		return ""
	}
	return "  Runners     " + clean(strings.Join(r.Runners, ", ")) + "\n"
}

type host struct{ name, text string }

// hosts gives the exact line or snippet per host. None holds the token.
func hosts(r ready) []host {
	file := shellQuote(r.tokenFile)
	hosted := "ChatGPT reaches only public HTTPS: run a tunnel with TLS that forwards to " +
		strings.TrimSuffix(strings.TrimPrefix(r.MCPURL, "http://"), "/mcp") + ",\n" +
		"start webcodex with --public-url https://YOUR-NAME, and add https://YOUR-NAME/mcp as a connector\n" +
		"with the header  Authorization: Bearer <token>."
	if r.public != "" {
		hosted = "Add " + strings.TrimSuffix(r.public, "/") + "/mcp as a connector with the header  Authorization: Bearer <token>.\n" +
			"The tunnel behind that name forwards to " + strings.TrimSuffix(r.MCPURL, "/mcp") + "."
	}
	return []host{
		{"Claude Code", "claude mcp add --transport http webcodex " + r.MCPURL +
			" --header \"Authorization: Bearer $(cat " + file + ")\""},
		{"Codex (~/.codex/config.toml; export WEBCODEX_TOKEN=\"$(cat " + file + ")\" first)",
			"[mcp_servers.webcodex]\nurl = \"" + r.MCPURL + "\"\nbearer_token_env_var = \"WEBCODEX_TOKEN\""},
		{"VS Code (.vscode/mcp.json)", `{"inputs": [{"id": "webcodex-token", "type": "promptString", "description": "WebCodex token", "password": true}],
 "servers": {"webcodex": {"type": "http", "url": "` + r.MCPURL + `",
   "headers": {"Authorization": "Bearer ${input:webcodex-token}"}}}}`},
		{"ChatGPT", hosted},
		{"Any host that starts a command (no token needed)", "webcodex mcp" + stdioArgs(r)},
	}
}

// stdioArgs names the data directory where it is not the default one.
func stdioArgs(r ready) string {
	def, err := defaultDataDir()
	if err == nil && filepath.Clean(def) == r.DataDir && os.Getenv("WEBCODEX_DATA") == "" {
		return ""
	}
	return " --data " + shellQuote(r.DataDir)
}

func shellQuote(s string) string {
	safe := func(r rune) bool {
		return r == '/' || r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
