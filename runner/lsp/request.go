package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// request is one question about a file, from the moment its server has been told of it.
type request struct {
	*provider
	ctx   context.Context
	path  string
	doc   *document
	lines lines
	// texts are those of other files that an answer names, each read once.
	texts map[string]lines
	shown int // bytes of the answer so far
}

// about gets a file's server and tells it of the file. done must be called at the end.
func (s *Service) about(ctx context.Context, p *runner.Project, path string) (_ *request, done func(), err error) {
	parts, err := relpath.SplitFile(path)
	if err != nil {
		return nil, nil, err
	}
	name := strings.Join(parts, "/")
	if relpath.IsGit(name) {
		return nil, nil, relpath.Refuse("git_internal", nil)
	}
	k := kindFor(name)
	if k == nil {
		return nil, nil, fault.New(fault.UnsupportedLanguage, "no language server here knows files of this kind").WithField("path").
			WithNext("use search_project_texts")
	}
	if _, err := readText(p, name); err != nil { // before a server is started for nothing
		return nil, nil, err
	}
	pr, doc, done, err := s.current(ctx, p, k, name)
	if err != nil {
		return nil, nil, err
	}
	r := &request{provider: pr, ctx: ctx, path: name, doc: doc, texts: map[string]lines{}}
	r.lines = linesOf(r.doc.text)
	r.texts[name] = r.lines
	return r, done, nil
}

// current gives a server that knows the Project as it is now, and the text of a file if one is
// named. One whose picture is too old is started anew.
func (s *Service) current(ctx context.Context, p *runner.Project, k *kind, file string) (*provider, *document, func(), error) {
	for {
		pr, done, err := s.use(ctx, p, k)
		if err != nil {
			return nil, nil, nil, err
		}
		doc, err := pr.sync(ctx, file)
		if err == nil {
			pr.settle(ctx)
			return pr, doc, done, nil
		}
		done()
		if !errors.Is(err, errStale) {
			return nil, nil, nil, err
		}
		pr.stop()
	}
}

// at is a place in the request's file, in the server's terms.
func (r *request) at(line, column int) (place, error) {
	p, ok := r.lines.encode(line, column, r.caps.Encoding)
	if !ok {
		return place{}, fault.New(fault.InvalidPosition, "the file has no line %d with a column %d; both count from 1", line, column).
			WithField("line").WithNext("read the file, then name a place in it")
	}
	return place{documentID{r.uri(r.path)}, p}, nil
}

// call asks and bounds the wait.
func (r *request) call(method string, in, out any) error {
	ctx, cancel := context.WithTimeout(r.ctx, requestWait)
	defer cancel()
	return r.ask(ctx, method, in, out)
}

// can refuses what the server does not serve.
func (r *request) can(capability json.RawMessage, what string) error {
	if has(capability) {
		return nil
	}
	return fault.New(fault.CapabilityUnavailable, "%s cannot tell %s", r.kind.name, what)
}

func (r *request) provenance() wire.Provider {
	out := wire.Provider{Server: r.kind.name, Version: r.version, Loading: r.loading(), Watching: r.files.watchesAll(&r.telling)}
	if r.doc != nil {
		out.SHA256 = r.doc.sum
	}
	return out
}

// inside is the project-relative path of what a server names; false: it lies outside.
func (p *provider) inside(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	rest, ok := strings.CutPrefix(u.Path, strings.TrimSuffix(p.root, "/")+"/")
	if !ok {
		return "", false
	}
	parts, err := relpath.SplitFile(rest)
	if err != nil || relpath.IsGit(rest) {
		return "", false
	}
	return strings.Join(parts, "/"), true
}

// textOf is a file that an answer names, as it is now.
func (r *request) textOf(path string) (lines, bool) {
	if t, known := r.texts[path]; known {
		return t, t != nil
	}
	text, err := readText(r.project, path)
	if err != nil {
		r.texts[path] = nil
		return nil, false
	}
	t := linesOf(text)
	r.texts[path] = t
	return t, true
}

// locate turns a server's location into ours, and says which of its two faults it has.
func (r *request) locate(uri string, at textRange) (path string, text lines, span wire.Span, external, invalid bool) {
	path, ok := r.inside(uri)
	if !ok {
		return "", nil, span, true, false
	}
	if text, ok = r.textOf(path); !ok {
		return "", nil, span, false, true
	}
	span, ok = text.span(at, r.caps.Encoding)
	return path, text, span, false, !ok
}

// fits reports that one more part of the answer is within its bounds.
func (r *request) fits(part any) bool {
	b, err := json.Marshal(part)
	if err != nil || r.shown+len(b) > answerBytes {
		return false
	}
	r.shown += len(b) + 1
	return true
}

// limited is a knob with its default and its bounds.
func limited(n, absent, most int) int {
	if n <= 0 {
		n = absent
	}
	return min(n, most)
}
