package files

import "strings"

// What names tell about a Project; all lower case.
var (
	manifests = map[string]string{
		"go.mod": "go", "go.work": "go", "cargo.toml": "rust", "package.json": "node", "deno.json": "deno",
		"pyproject.toml": "python", "setup.py": "python", "requirements.txt": "python", "pipfile": "python",
		"pom.xml": "java", "build.gradle": "java", "build.gradle.kts": "kotlin", "gemfile": "ruby",
		"composer.json": "php", "mix.exs": "elixir", "cmakelists.txt": "cmake", "meson.build": "meson",
		"build.zig": "zig", "pubspec.yaml": "dart", "package.swift": "swift", "dune-project": "ocaml",
		"stack.yaml": "haskell", "flake.nix": "nix", "module.bazel": "bazel", "workspace.bazel": "bazel",
	}
	keyFiles = map[string]string{
		"agents.md": "instructions", "claude.md": "instructions", "gemini.md": "instructions",
		"makefile": "build", "justfile": "build", "taskfile.yml": "build", "dockerfile": "container",
		"docker-compose.yml": "container", "compose.yaml": "container", ".editorconfig": "style",
		".gitignore": "git", ".gitattributes": "git", ".gitmodules": "git", ".gitlab-ci.yml": "ci", "jenkinsfile": "ci",
	}
	skippedDirs = set("node_modules", "vendor", "target", "dist", "build", "out", ".next", ".venv", "venv", "__pycache__",
		".gradle", ".idea", ".cache", ".tox", "third_party", "bower_components", "coverage", ".terraform", "_build", "deps")
	sourceDirs = set("src", "lib", "cmd", "pkg", "internal", "app", "apps", "packages", "crates", "source", "server", "client")
	testDirs   = set("test", "tests", "spec", "specs", "__tests__", "e2e", "testdata", "integration")
	docDirs    = set("doc", "docs", "documentation")
	languages  = map[string]string{
		".go": "go", ".rs": "rust", ".ts": "typescript", ".tsx": "typescript", ".js": "javascript", ".jsx": "javascript",
		".mjs": "javascript", ".cjs": "javascript", ".py": "python", ".java": "java", ".kt": "kotlin", ".rb": "ruby",
		".php": "php", ".c": "c", ".h": "c", ".cc": "c++", ".cpp": "c++", ".hpp": "c++", ".cs": "c#", ".swift": "swift",
		".sh": "shell", ".bash": "shell", ".lua": "lua", ".ex": "elixir", ".exs": "elixir", ".zig": "zig", ".dart": "dart",
		".hs": "haskell", ".ml": "ocaml", ".scala": "scala", ".sql": "sql", ".html": "html", ".css": "css",
		".vue": "vue", ".svelte": "svelte", ".md": "markdown",
	}
	suggestions = map[string]string{
		"instructions": "instructions for agents, untrusted content of the repository",
		"readme":       "what the Project is",
		"contributing": "how to build and test",
		"manifest":     "dependencies and targets",
	}
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// keyKind is the role of a file name that many Projects share.
func keyKind(lower string) string {
	if k, ok := keyFiles[lower]; ok {
		return k
	}
	for prefix, kind := range map[string]string{"readme": "readme", "contributing": "contributing", "license": "license", "changelog": "changelog"} {
		if rest, ok := strings.CutPrefix(lower, prefix); ok && (rest == "" || rest[0] == '.') {
			return kind
		}
	}
	return ""
}
