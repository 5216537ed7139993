package proc

import (
	"net/url"
	"os"
	"slices"
	"strings"
)

// MarkVariable names the variable that marks every process of an execution with its id.
const MarkVariable = "WC_EXECUTION_ID"

// Helper is a setting for programs of our own that are no execution and lead a session: without
// it one could be taken for an orphan that shed its mark.
const Helper = "WC_HELPER=1"

// allowed are the variables a child may inherit: what tools need to find themselves, their
// caches and the language; nothing that carries rights (AUTH-19, faults.md 4).
var allowed = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(`PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR
		XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME
		GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOTMPDIR GOENV GOFLAGS GOPROXY GOSUMDB GOPRIVATE GONOPROXY
		GONOSUMDB GOTOOLCHAIN GOWORK GOOS GOARCH GOAMD64 GOARM64 GOEXPERIMENT GO111MODULE
		CGO_ENABLED CC CXX AR LD PKG_CONFIG_PATH SDKROOT DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET
		CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS
		JAVA_HOME MAVEN_OPTS GRADLE_USER_HOME DOTNET_ROOT NVM_DIR NODE_PATH NPM_CONFIG_CACHE VOLTA_HOME
		PNPM_HOME PYENV_ROOT PYENV_VERSION VIRTUAL_ENV CONDA_PREFIX UV_CACHE_DIR PIP_CACHE_DIR PIPX_HOME RBENV_ROOT GEM_HOME
		SSL_CERT_FILE SSL_CERT_DIR NIX_PATH NIX_SSL_CERT_FILE
		HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy`) {
		m[name] = true
	}
	return m
}()

// fixed are set on every child: nothing may ask, page or open an editor.
var fixed = []string{
	"TERM=dumb", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "EDITOR=true", "VISUAL=true",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "SSH_ASKPASS_REQUIRE=never",
	"DEBIAN_FRONTEND=noninteractive", "PIP_NO_INPUT=1", "NPM_CONFIG_YES=false", "CI=true",
}

// asking are the fixed settings that a child with a terminal does without: there it may ask, and
// open an editor that somebody chose. It still pages nothing by itself.
var asking = []string{
	"GIT_TERMINAL_PROMPT", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "VISUAL", "GIT_ASKPASS", "SSH_ASKPASS",
	"DEBIAN_FRONTEND", "PIP_NO_INPUT", "NPM_CONFIG_YES", "CI",
}

// InteractiveEnvironment is Environment for a child with a terminal.
func InteractiveEnvironment(from, extra []string) []string {
	return slices.DeleteFunc(Environment(from, extra), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(asking, name) && slices.Contains(fixed, kv) && !slices.Contains(extra, kv)
	})
}

// Environment is what a child gets of from (an os.Environ): the allow-listed part, the fixed
// settings, then extra, later ones winning. A value that is a URL with a password in it is
// left out whatever its name.
func Environment(from, extra []string) []string {
	out := make([]string, 0, 32)
	for _, kv := range from {
		name, value, ok := strings.Cut(kv, "=")
		if ok && (allowed[name] || strings.HasPrefix(name, "LC_")) && !carriesPassword(value) {
			out = append(out, kv)
		}
	}
	for _, kv := range slices.Concat(fixed, extra) {
		name, _, _ := strings.Cut(kv, "=")
		out = slices.DeleteFunc(out, func(have string) bool { return strings.HasPrefix(have, name+"=") })
		out = append(out, kv)
	}
	return out
}

// carriesPassword looks at each part of a list of URLs, as GOPROXY and the proxies hold.
func carriesPassword(value string) bool {
	if !strings.Contains(value, "@") {
		return false
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		u, err := url.Parse(part)
		if err != nil || u.User != nil {
			return true
		}
		// A proxy may be given without a scheme: user:pass@host:port.
		if host, _, found := strings.Cut(part, "@"); found && strings.Contains(host, ":") {
			return true
		}
	}
	return false
}

// pathOf is the value of PATH in a child's environment.
func pathOf(env []string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			return v
		}
	}
	return os.Getenv("PATH")
}
