package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"webcodex/eventlog"
	"webcodex/internal/fault"
)

// backupHead begins the stream of a backup; the bodies of the commits follow, one a line.
type backupHead struct {
	First uint64 `json:"first_seq"`
	Last  uint64 `json:"last_seq"`
	Bytes int64  `json:"bytes"` // about what the commits take
}

// backupStop stands where a commit should, when it could not be read.
type backupStop struct {
	Error *fault.Error `json:"error"`
}

func backupFault(line []byte) error {
	var s backupStop
	if json.Unmarshal(line, &s) != nil || s.Error == nil {
		return failf(exitFailed, "the server is of another version: restart it with this one")
	}
	return s.Error
}

// streamBackup writes the log's commits as a backup reads them.
func streamBackup(ctx context.Context, log *eventlog.Log, out io.Writer) error {
	w := bufio.NewWriterSize(out, 256<<10)
	enc := json.NewEncoder(w)
	err := log.Export(ctx, func(first, last uint64) error {
		return enc.Encode(backupHead{First: first, Last: last, Bytes: log.Status().Bytes})
	}, func(body []byte) error {
		if _, err := w.Write(body); err != nil {
			return err
		}
		return w.WriteByte('\n')
	})
	if err != nil {
		_ = enc.Encode(backupStop{fault.As(err)})
	}
	return errors.Join(err, w.Flush())
}

// openSource is the stream of a running server, or of the log itself.
func openSource(ctx context.Context, dir string) (io.ReadCloser, error) {
	c, err := connectControl(ctx, dir)
	if err == nil {
		body, err := c.open(ctx, http.MethodGet, pathBackup, nil, nil)
		return closing{body, func() { c.close() }}, err
	}
	if !errors.Is(err, errNoServer) {
		return nil, err
	}
	a, err := openLog(ctx, dir, eventlog.Options{})
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(streamBackup(ctx, a.log, w)) }()
	return closing{r, a.close}, nil
}

// closing does one thing more when it is closed.
type closing struct {
	io.ReadCloser
	then func()
}

// Close closes both.
func (c closing) Close() error {
	var err error
	if c.ReadCloser != nil {
		err = c.ReadCloser.Close()
	}
	c.then()
	return err
}

// controlBackup streams the log to our own command, which writes the files.
func (s *server) controlBackup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := streamBackup(r.Context(), s.log, w); err != nil && r.Context().Err() == nil {
		s.logger.Warn("backup ended early", "cause", err)
	}
}
