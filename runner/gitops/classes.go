package gitops

import (
	"path"
	"slices"
	"strings"
)

// Classes of files, by name alone.
const (
	classSource     = "source"
	classTest       = "test"
	classDocs       = "docs"
	classConfig     = "config"
	classBuild      = "build" // how it is built and shipped
	classDependency = "dependency"
	classMigration  = "migration"
	classGenerated  = "generated"
	classAsset      = "asset"
	classOther      = "other"
)

var (
	dependencyNames = []string{"go.mod", "go.sum", "go.work", "go.work.sum", "cargo.toml", "cargo.lock", "package.json", "package-lock.json",
		"npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "requirements.txt", "pyproject.toml", "poetry.lock", "uv.lock",
		"pipfile", "pipfile.lock", "setup.py", "gemfile", "gemfile.lock", "composer.json", "composer.lock", "pom.xml", "build.gradle",
		"build.gradle.kts", "gradle.lockfile", "mix.exs", "mix.lock", "packages.lock.json", "pubspec.yaml", "pubspec.lock", "flake.lock"}
	buildNames = []string{"makefile", "dockerfile", "containerfile", "cmakelists.txt", "justfile", "rakefile", "jenkinsfile", "build.rs", "flake.nix",
		".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "docker-compose.yml", "compose.yaml", "goreleaser.yml"}
	sourceExts = []string{".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt", ".scala", ".swift", ".m", ".py", ".rb", ".php", ".js",
		".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".svelte", ".cs", ".fs", ".ex", ".exs", ".erl", ".hs", ".ml", ".lua", ".pl", ".sh", ".bash",
		".ps1", ".sql", ".proto", ".zig", ".dart", ".r", ".jl", ".clj", ".html", ".css", ".scss"}
	docExts    = []string{".md", ".rst", ".adoc", ".txt", ".tex"}
	configExts = []string{".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".xml", ".properties", ".env"}
	assetExts  = []string{".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".webp", ".woff", ".woff2", ".ttf", ".otf", ".mp3", ".mp4", ".pdf", ".wasm"}
)

// classOf sorts a slash-separated path.
func classOf(p string) string {
	lower := strings.ToLower(p)
	name, ext := path.Base(lower), path.Ext(lower)
	dirs := "/" + path.Dir(lower) + "/"
	switch {
	case strings.Contains(dirs, "/migrations/") || strings.Contains(dirs, "/migrate/"):
		return classMigration
	case slices.Contains(dependencyNames, name) || strings.HasPrefix(name, "requirements") && ext == ".txt":
		return classDependency
	case strings.HasSuffix(name, ".pb.go") || strings.Contains(name, "_generated.") || strings.Contains(name, ".gen.") ||
		strings.HasSuffix(name, ".min.js") || strings.HasSuffix(name, ".snap"):
		return classGenerated
	case isTestFile(dirs, name, ext):
		return classTest
	case slices.Contains(buildNames, name) || strings.Contains(dirs, "/.github/") || strings.Contains(dirs, "/.circleci/") || ext == ".mk" ||
		strings.HasPrefix(name, "dockerfile."):
		return classBuild
	case slices.Contains(docExts, ext) || strings.Contains(dirs, "/docs/"):
		return classDocs
	case slices.Contains(sourceExts, ext):
		return classSource
	case slices.Contains(configExts, ext) || strings.HasPrefix(name, "."):
		return classConfig
	case slices.Contains(assetExts, ext):
		return classAsset
	}
	return classOther
}

func isTestFile(dirs, name, ext string) bool {
	stem := strings.TrimSuffix(name, ext)
	for _, d := range []string{"/test/", "/tests/", "/testdata/", "/__tests__/", "/spec/"} {
		if strings.Contains(dirs, d) {
			return true
		}
	}
	return strings.HasSuffix(stem, "_test") || strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".spec") ||
		strings.HasSuffix(stem, "_spec") || strings.HasPrefix(name, "test_") && ext == ".py" || name == "conftest.py"
}

// subsystemOf is the directory that a file counts for: at most two levels down.
func subsystemOf(p string) string {
	parts := strings.SplitN(path.Dir(p), "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}
