package lsp

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"webcodex/internal/sandbox"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// detect counts the files of each server's languages; by language in the second.
func detect(ctx context.Context, p *runner.Project) (map[*kind]int, map[string]int, error) {
	counts, languages := map[*kind]int{}, map[string]int{}
	_, err := walk(ctx, p.Root, func(name string, _ fs.DirEntry) bool {
		if k := kindFor(name); k != nil {
			counts[k]++
			languages[k.languages[strings.ToLower(path.Ext(name))]]++
		}
		return true
	})
	return counts, languages, err
}

// status answers get_lsp_status. It starts nothing.
func (s *Service) status(ctx context.Context, p *runner.Project, _ struct{}) (wire.LSPStatusOut, error) {
	out := wire.LSPStatusOut{Languages: []wire.LanguageSeen{}, Servers: []wire.LSPServer{}, Warnings: []string{}, Sandboxed: Sandboxed()}
	counts, languages, err := detect(ctx, p)
	if err != nil {
		return out, err
	}
	for _, k := range kinds {
		row := wire.LSPServer{Server: k.name, Languages: k.named(), State: wire.ServerNotInstalled}
		installed := k.find() != ""
		if installed {
			row.State, row.Version = s.state(id{p.ID, k})
		}
		for _, l := range row.Languages {
			if n := languages[l]; n > 0 {
				seen := wire.LanguageSeen{Language: l, Files: n}
				if installed {
					seen.Server = k.name
				}
				out.Languages = append(out.Languages, seen)
			}
		}
		if counts[k] > 0 && !installed {
			out.Warnings = append(out.Warnings, "the Project has files for "+k.name+", which is not installed where the Runner runs")
		}
		out.Servers = append(out.Servers, row)
	}
	slices.SortFunc(out.Languages, func(a, b wire.LanguageSeen) int { return b.Files - a.Files })
	if !out.Sandboxed {
		out.Warnings = append(out.Warnings, "the system cannot keep a language server from writing: it needs the scope to run commands")
	}
	return out, nil
}

// state of a server, and its version where it runs.
func (s *Service) state(at id) (string, string) {
	s.mu.Lock()
	e, ailing := s.running[at], s.ailing(at)
	s.mu.Unlock()
	switch {
	case e == nil && ailing:
		return wire.ServerFailed, ""
	case e == nil:
		return wire.ServerStopped, ""
	}
	select {
	case <-e.ready:
	default:
		return wire.ServerStarting, ""
	}
	switch {
	case e.err != nil:
		return wire.ServerFailed, ""
	case e.p.loading():
		return wire.ServerLoading, e.p.version
	}
	return wire.ServerReady, e.p.version
}

// Sandboxed reports that language servers here can neither write nor reach the network.
func Sandboxed() bool {
	held := sandbox.Enforced()
	return held.Files() && held.Network()
}

// observe tells work_on_project whether there is a server for the Project's main language.
func (s *Service) observe(ctx context.Context, p *runner.Project, _ struct{}) (wire.ObserveNavigationOut, error) {
	counts, _, err := detect(ctx, p)
	if err != nil {
		return wire.ObserveNavigationOut{}, err
	}
	var out wire.ObserveNavigationOut
	for k := range counts {
		out.Available = out.Available || k.find() != ""
	}
	return out, nil
}

// Register adds the navigation ops to a Runner, which closes the Service at its own end.
func Register(r *runner.Runner, s *Service) {
	runner.Read(r, wire.OpLSPStatus, s.status)
	runner.Read(r, wire.OpObserveNavigation, s.observe)
	runner.Read(r, wire.OpDocumentSymbols, s.documentSymbols)
	runner.Read(r, wire.OpWorkspaceSymbols, s.workspaceSymbols)
	runner.Read(r, wire.OpDefinition, s.definition)
	runner.Read(r, wire.OpReferences, s.references)
	runner.Read(r, wire.OpHover, s.hover)
	runner.Read(r, wire.OpDiagnostics, s.diagnostics)
	runner.Read(r, wire.OpCallHierarchy, s.callHierarchy)
	r.OnProjectRemoved(s.Leave)
	r.OnClose(s.Close)
}
