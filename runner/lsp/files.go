package lsp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner"
)

// files are what a server knows of the files of its Project: those that it was told the text of,
// and of all others in its languages how they looked when it was last told.
type files struct {
	kind    *kind
	project *runner.Project
	open    map[string]*document
	seen    map[string]stamp // nil: not looked yet
	whole   bool             // seen has them all
	turn    int
}

func newFiles(k *kind, p *runner.Project) files {
	return files{kind: k, project: p, open: map[string]*document{}}
}

// document is a text as it was last told.
type document struct {
	text    string
	sum     string
	version int
	turn    int // of its last use
}

// stamp tells whether a file has changed.
type stamp struct {
	size  int64
	mtime time.Time
	inode uint64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), mtime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s
}

// Kinds of change, as the protocol numbers them.
const (
	created = 1
	altered = 2
	removed = 3
)

type change struct {
	URI  string `json:"uri"`
	Kind int    `json:"type"`
}

// sync brings the server to what lies on the disk now, and tells it the text of one file, unless
// none is named. The document is what it was told.
func (p *provider) sync(ctx context.Context, file string) (*document, error) {
	p.telling.Lock()
	defer p.telling.Unlock()
	f := &p.files
	f.turn++
	changes, made, err := f.look(ctx, p.uri)
	if err != nil {
		return nil, err
	}
	if len(made) > maxNew {
		return nil, errStale
	}
	if len(changes) > 0 {
		if err := p.conn.Notify(ctx, "workspace/didChangeWatchedFiles", map[string]any{"changes": changes}); err != nil {
			return nil, p.broken(err)
		}
	}
	for name, d := range f.open {
		if name == file {
			continue
		}
		text, err := readText(f.project, name)
		switch {
		case err != nil:
			err = p.shut(ctx, name)
		case text != d.text:
			err = p.tell(ctx, name, d, text)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range made {
		if name != file {
			if err := p.introduce(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	if file == "" {
		return nil, nil
	}
	return p.give(ctx, file)
}

// introduce makes the server take a new file in: it reads what belongs to a file when it is asked
// about it.
func (p *provider) introduce(ctx context.Context, name string) error {
	_, err := p.give(ctx, name)
	if err == nil && has(p.caps.Diagnostics) {
		ctx, cancel := context.WithTimeout(ctx, requestWait/5)
		defer cancel()
		err = p.ask(ctx, "textDocument/diagnostic", map[string]any{"textDocument": documentID{p.uri(name)}}, nil)
	}
	if fault.KindOf(err) == fault.LSPServerFailed {
		return err
	}
	return nil // it may be gone again, or no text; then there is nothing to take in
}

// errStale tells that so much has changed that the server had better read the Project anew.
var errStale = errors.New("the language server's picture is too old")

// give tells the server a file's text as it is now, if it does not know it.
func (p *provider) give(ctx context.Context, file string) (*document, error) {
	f := &p.files
	text, err := readText(f.project, file)
	if err != nil {
		return nil, err
	}
	d := f.open[file]
	if d == nil {
		if err := p.makeRoom(ctx); err != nil {
			return nil, err
		}
		d = &document{}
		f.open[file] = d
	}
	d.turn = f.turn
	if d.version > 0 && d.text == text {
		return d, nil
	}
	return d, p.tell(ctx, file, d, text)
}

// tell gives the server a file's text, for the first time or anew.
func (p *provider) tell(ctx context.Context, name string, d *document, text string) error {
	sum := sha256.Sum256([]byte(text))
	d.text, d.sum = text, hex.EncodeToString(sum[:])
	d.version++
	var err error
	if d.version == 1 {
		err = p.conn.Notify(ctx, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": p.uri(name),
			"languageId": p.kind.languages[strings.ToLower(path.Ext(name))], "version": d.version, "text": text}})
	} else {
		err = p.conn.Notify(ctx, "textDocument/didChange", map[string]any{
			"textDocument":   map[string]any{"uri": p.uri(name), "version": d.version},
			"contentChanges": []map[string]any{{"text": text}}})
	}
	if err != nil {
		return p.broken(err)
	}
	return nil
}

// shut takes a text back: what the server needs of the file it reads itself.
func (p *provider) shut(ctx context.Context, name string) error {
	delete(p.files.open, name)
	p.mu.Lock()
	delete(p.found, p.uri(name))
	p.mu.Unlock()
	if err := p.conn.Notify(ctx, "textDocument/didClose", map[string]any{"textDocument": documentID{p.uri(name)}}); err != nil {
		return p.broken(err)
	}
	return nil
}

func (p *provider) makeRoom(ctx context.Context) error {
	for len(p.files.open) >= maxOpen {
		oldest := ""
		for name, d := range p.files.open {
			if oldest == "" || d.turn < p.files.open[oldest].turn {
				oldest = name
			}
		}
		if err := p.shut(ctx, oldest); err != nil {
			return err
		}
	}
	return nil
}

// look compares the Project's files with what was seen before. The first look tells nothing: the
// server reads for itself what there is. made are the source files that are new: a server may pass
// over a change of a file that belongs to nothing it knows, and not over a text that it is given.
func (f *files) look(ctx context.Context, uri func(string) string) (out []change, made []string, err error) {
	now := map[string]stamp{}
	whole, err := walk(ctx, f.project.Root, func(name string, d fs.DirEntry) bool {
		if !f.kind.watches(name) {
			return true
		}
		if info, err := d.Info(); err == nil {
			now[name] = stampOf(info)
		}
		return len(now) < maxWatched
	})
	if err != nil {
		return nil, nil, err
	}
	if f.seen != nil {
		for name, s := range now {
			if before, known := f.seen[name]; !known {
				out = append(out, change{uri(name), created})
				if kindFor(name) == f.kind {
					made = append(made, name)
				}
			} else if before != s {
				out = append(out, change{uri(name), altered})
			}
		}
		for name := range f.seen {
			if _, there := now[name]; !there && (whole || gone(f.project.Root, name)) {
				out = append(out, change{uri(name), removed})
			}
		}
	}
	f.seen, f.whole = now, whole
	return out, made, nil
}

func gone(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// skipped are directories that hold nothing of the Project's own.
var skipped = map[string]bool{"node_modules": true, "target": true, "__pycache__": true, ".venv": true}

// walk hands out the regular files of a Project until one says that it is enough. It is false where
// there is more than it looks at.
func walk(ctx context.Context, root *os.Root, each func(string, fs.DirEntry) bool) (whole bool, err error) {
	listed := 0
	whole = true
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fault.Wrap(ctx.Err(), fault.Timeout, "the Project's files could not be looked at in time")
		}
		if listed++; listed > maxListed {
			whole = false
			return fs.SkipAll
		}
		switch {
		case err != nil && name == ".":
			return fault.Wrap(err, fault.RunnerUnavailable, "the Project's folder cannot be read")
		case err != nil:
			return fs.SkipDir
		case d.IsDir() && name != "." && (relpath.IsGit(d.Name()) || skipped[d.Name()]):
			return fs.SkipDir
		case d.Type().IsRegular() && !each(name, d):
			whole = false
			return fs.SkipAll
		}
		return nil
	})
	return whole, err
}

// readText reads a text file of the Project as it is now.
func readText(p *runner.Project, name string) (string, error) {
	bad := func(reason, text string, err error) error {
		return fault.Wrap(err, fault.InvalidPath, "%s", text).WithField("path").WithReason(reason)
	}
	f, err := p.Root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", bad("not_found", "the file does not exist", err)
	case err != nil && strings.Contains(err.Error(), "escapes"):
		return "", bad("symlink_outside", "the file leads out of the Project", err)
	case err != nil:
		return "", bad("unreadable", "the file cannot be opened", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", bad("unreadable", "the file cannot be read", err)
	case !info.Mode().IsRegular():
		return "", bad("not_regular", "this is no regular file", nil)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	switch {
	case err != nil:
		return "", bad("unreadable", "the file cannot be read", err)
	case len(b) > maxDocument:
		return "", fault.New(fault.DocumentTooLarge, "the file has more than %d bytes, which a language server is not given", maxDocument).
			WithField("path")
	case !utf8.Valid(b) || slices.Contains(b, 0):
		return "", bad("binary", "this is no text file", nil)
	}
	return string(b), nil
}

// watchesAll reports that all files of the server's languages are looked at for changes.
func (f *files) watchesAll(telling *sync.Mutex) bool {
	telling.Lock()
	defer telling.Unlock()
	return f.whole
}
