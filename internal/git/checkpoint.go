package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"webcodex/internal/fault"
)

// checkpointRefs is where checkpoints are kept: below it one directory a Project, since worktrees
// share their refs.
const checkpointRefs = "refs/webcodex/checkpoints/"

var (
	checkpointOwner = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,79}$`)
	checkpointName  = regexp.MustCompile(`^wc_ckpt_[0-9a-f]{32}$`)
)

// CheckpointRef names one checkpoint of a Project. The names come from outside, the ref does not.
type CheckpointRef struct {
	Owner string // the Project
	Name  string // wc_ckpt_ and 32 hex digits
}

func (c CheckpointRef) ref() (string, error) {
	if !checkpointOwner.MatchString(c.Owner) || !checkpointName.MatchString(c.Name) {
		return "", fault.New(fault.InvalidArguments, "a checkpoint id is wc_ckpt_ and 32 hex digits").WithField("checkpoint_id")
	}
	return checkpointRefs + c.Owner + "/" + c.Name, nil
}

// checkpointSubject begins the message of each checkpoint's commit; a JSON object follows.
const checkpointSubject = "webcodex workspace checkpoint\n\n"

// Checkpoint is one as it is kept.
type Checkpoint struct {
	Name   string
	Commit string
	Parent string // HEAD at that time, empty before the first commit
	About  []byte // what Save was given: JSON
}

// Save keeps files under a ref of its own: a commit whose parent is head, with each file as files/
// and its path, and detail as detail.json. Index, working tree and branches are not touched, no
// filter or hook runs, and the ref is there when all of it is.
func (r *Repo) Save(ctx context.Context, at CheckpointRef, head string, files []Found, about, detail []byte, now time.Time) error {
	ref, err := at.ref()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	message := checkpointSubject + string(about)
	fmt.Fprintf(&b, "commit %s\ncommitter WebCodex <webcodex@localhost> %d +0000\ndata %d\n%s\n", ref, now.Unix(), len(message), message)
	if head != "" {
		fmt.Fprintf(&b, "from %s\ndeleteall\n", head)
	}
	put := func(mode, path string, content []byte) {
		fmt.Fprintf(&b, "M %s inline %s\ndata %d\n", mode, quoted(path), len(content))
		b.Write(content)
		b.WriteByte('\n')
	}
	for _, f := range files {
		if f.Mode != "" {
			put(f.Mode, "files/"+f.Path, f.Content)
		}
	}
	put(ModeFile, "detail.json", detail)
	b.WriteString("done\n")
	return r.failed(r.feed(ctx, &b, nothing, "fast-import", "--quiet", "--done", "--date-format=raw"))
}

// quoted is a path as fast-import reads it.
func quoted(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p) + `"`
}

// Checkpoints hands out a Project's checkpoints, in the order of their names. What lies there and
// is none is passed over.
func (r *Repo) Checkpoints(ctx context.Context, owner string, each func(Checkpoint) error) error {
	if !checkpointOwner.MatchString(owner) {
		return fault.New(fault.InvalidArguments, "this is no Project's id")
	}
	prefix := checkpointRefs + owner + "/"
	names := map[string][]string{} // of refs, by what they name
	var ids []string
	err := r.git(ctx, func(in io.Reader) error {
		out, err := io.ReadAll(in)
		for line := range strings.Lines(string(out)) {
			id, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			name, under := strings.CutPrefix(ref, prefix)
			if ok && under && ValidID(id) && checkpointName.MatchString(name) {
				if names[id] == nil {
					ids = append(ids, id)
				}
				names[id] = append(names[id], name)
			}
		}
		return err
	}, "for-each-ref", "--format=%(objectname) %(refname)", prefix)
	if err != nil {
		return r.failed(err)
	}
	return r.Objects(ctx, ids, maxAbout, func(o Object) error {
		c, ok := parseCheckpoint(o)
		for _, name := range names[o.ID] {
			if c.Name = name; !ok {
				break
			}
			if err := each(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Checkpoint finds one. Error: invalid_arguments with reason unknown_checkpoint.
func (r *Repo) Checkpoint(ctx context.Context, at CheckpointRef) (Checkpoint, error) {
	ref, err := at.ref()
	if err != nil {
		return Checkpoint{}, err
	}
	unknown := fault.New(fault.InvalidArguments, "this Project has no such checkpoint").WithField("checkpoint_id").
		WithReason("unknown_checkpoint").WithNext("call list_workspace_checkpoints")
	id, err := r.ResolveCommit(ctx, ref)
	if fault.KindOf(err) == fault.InvalidArguments {
		return Checkpoint{}, unknown
	}
	if err != nil {
		return Checkpoint{}, err
	}
	var found *Checkpoint
	err = r.Objects(ctx, []string{id}, maxAbout, func(o Object) error {
		if c, ok := parseCheckpoint(o); ok {
			c.Name, found = at.Name, &c
		}
		return nil
	})
	switch {
	case err != nil:
		return Checkpoint{}, err
	case found == nil:
		return Checkpoint{}, unknown
	}
	return *found, nil
}

// DropCheckpoint forgets one if it still is that commit.
func (r *Repo) DropCheckpoint(ctx context.Context, at CheckpointRef, commit string) error {
	ref, err := at.ref()
	if err != nil {
		return err
	}
	return r.failed(r.git(ctx, nothing, "update-ref", "-d", ref, commit))
}

// parseCheckpoint reads a commit that Save made; anybody may have put another there.
func parseCheckpoint(o Object) (c Checkpoint, ok bool) {
	head, message, ok := bytes.Cut(o.Content, []byte("\n\n"))
	if !ok || o.Type != "commit" {
		return c, false
	}
	c.Commit = o.ID
	for line := range strings.SplitSeq(string(head), "\n") {
		if p, is := strings.CutPrefix(line, "parent "); is && ValidID(p) && c.Parent == "" {
			c.Parent = p
		}
	}
	c.About, ok = bytes.CutPrefix(message, []byte(checkpointSubject))
	return c, ok
}
