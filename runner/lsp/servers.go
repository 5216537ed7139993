package lsp

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// kind is a language server that this package knows how to use.
type kind struct {
	name    string
	program string
	args    []string
	// override is an environment variable of the Runner that names the program instead.
	override string
	// languages by file extension, as the protocol names them.
	languages map[string]string
	// manifests are further files whose change the server has to hear of.
	manifests []string
	settings  any
}

// kinds are tried in order; the first one whose languages have a file's extension serves it.
var kinds = []*kind{
	{name: "gopls", program: "gopls", args: []string{"serve"}, override: "WEBCODEX_GOPLS",
		languages: map[string]string{".go": "go"}, manifests: []string{"go.mod", "go.sum", "go.work"},
		settings: map[string]any{"pullDiagnostics": true, "symbolScope": "workspace"}},
	{name: "rust-analyzer", program: "rust-analyzer", override: "WEBCODEX_RUST_ANALYZER",
		languages: map[string]string{".rs": "rust"}, manifests: []string{"Cargo.toml", "Cargo.lock"}},
	{name: "typescript-language-server", program: "typescript-language-server", args: []string{"--stdio"},
		languages: map[string]string{".ts": "typescript", ".tsx": "typescriptreact", ".mts": "typescript", ".cts": "typescript",
			".js": "javascript", ".jsx": "javascriptreact", ".mjs": "javascript", ".cjs": "javascript"},
		manifests: []string{"package.json", "tsconfig.json", "jsconfig.json"}},
	{name: "pyright", program: "pyright-langserver", args: []string{"--stdio"},
		languages: map[string]string{".py": "python", ".pyi": "python"}, manifests: []string{"pyproject.toml", "pyrightconfig.json"}},
}

// kindFor is what serves a file, nil where nothing here does.
func kindFor(file string) *kind {
	ext := strings.ToLower(path.Ext(file))
	for _, k := range kinds {
		if k.languages[ext] != "" {
			return k
		}
	}
	return nil
}

// watches reports that a server has to hear of a change of a file.
func (k *kind) watches(file string) bool {
	return k.languages[strings.ToLower(path.Ext(file))] != "" || slices.Contains(k.manifests, path.Base(file))
}

// find is the program's absolute path, empty where it is not installed. One that a relative entry
// of PATH leads to could come from a repository and is not used.
func (k *kind) find() string {
	name := k.program
	if over := os.Getenv(k.override); k.override != "" && over != "" {
		name = over
	}
	at, err := exec.LookPath(name)
	if err != nil || !filepath.IsAbs(at) {
		return ""
	}
	return at
}

// named are the languages of a kind, each once, sorted.
func (k *kind) named() []string {
	var out []string
	for _, l := range k.languages {
		out = append(out, l)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
