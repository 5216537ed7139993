package git

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"webcodex/internal/fault"
)

// Commit is one commit; Author and Subject are untrusted text of any length and may not be
// UTF-8.
type Commit struct {
	ID                      string
	Parents                 []string
	Author                  string
	AuthoredAt, CommittedAt time.Time
	Subject                 string
}

// commitFields is the number of NUL-ended fields of one commit.
const commitFields = 6

// Log hands out up to limit commits from HEAD, newest first, after skipping skip. A repository
// without a commit has none. An error of each ends it.
func (r *Repo) Log(ctx context.Context, skip, limit int, each func(Commit) error) error {
	head, err := r.Head(ctx)
	if err != nil || head == "" {
		return err
	}
	var fields []string
	err = r.git(ctx, cutRecords(func(rec []byte) error {
		if len(fields) == 0 {
			rec = bytes.TrimPrefix(rec, []byte("\n"))
			if len(rec) == 0 {
				return nil
			}
		}
		if fields = append(fields, string(rec)); len(fields) < commitFields {
			return nil
		}
		c, ok := commitOf(fields)
		if fields = fields[:0]; !ok {
			return fault.New(fault.GitFailed, "git's history could not be read")
		}
		return each(c)
	}), "log", "--format=tformat:%H%x00%P%x00%an%x00%at%x00%ct%x00%s%x00", "-z", "--no-show-signature", "--no-mailmap",
		"--no-decorate", "--no-notes", "--no-color", "--no-patch", "--no-abbrev", "--encoding=UTF-8",
		"--skip="+strconv.Itoa(skip), "--max-count="+strconv.Itoa(limit), head, "--")
	return r.failed(err)
}

func commitOf(f []string) (c Commit, ok bool) {
	authored, err1 := strconv.ParseInt(f[3], 10, 64)
	committed, err2 := strconv.ParseInt(f[4], 10, 64)
	if !ValidID(f[0]) || err1 != nil || err2 != nil {
		return c, false
	}
	return Commit{ID: f[0], Parents: strings.Fields(f[1]), Author: f[2], AuthoredAt: time.Unix(authored, 0).UTC(),
		CommittedAt: time.Unix(committed, 0).UTC(), Subject: f[5]}, true
}
