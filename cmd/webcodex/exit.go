package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"webcodex/internal/fault"
)

// Exit codes (shapes.md 5). exitStorage is the one of a server whose disk failed or filled:
// a supervisor may start it again, the log's recovery path is the way back (faults.md 2.13).
const (
	exitOK       = 0
	exitFailed   = 1 // the tool answered isError, a check failed, or anything else
	exitUsage    = 2
	exitNoServer = 3
	exitAccess   = 4
	exitStorage  = 5
)

// exitError is an error that knows its exit code. A silent one was reported already.
type exitError struct {
	code   int
	err    error
	silent bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func failf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// quietly ends with a code after the command itself has said why.
func quietly(code int) error {
	return &exitError{code: code, err: errors.New("failed"), silent: true}
}

// report prints an error as one line and gives its exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	code, text := codeOf(err), ""
	var f *fault.Error
	var x *exitError
	switch {
	case errors.As(err, &x):
		if x.silent {
			return x.code
		}
		text = x.Error()
	case errors.As(err, &f):
		text = f.Message
		if f.Next != "" {
			text += ". Next: " + f.Next
		}
	case errors.Is(err, context.Canceled):
		text = "interrupted"
	default:
		text = err.Error()
	}
	// Several errors stand on a line each; a report is one line.
	fmt.Fprintf(w, "webcodex: %s\n", clean(strings.ReplaceAll(text, "\n", "; ")))
	return code
}

func codeOf(err error) int {
	var x *exitError
	if errors.As(err, &x) && (x.code != exitFailed || !fullDisk(err)) {
		return x.code
	}
	if fullDisk(err) {
		return exitStorage
	}
	switch fault.KindOf(err) {
	case fault.InsufficientScope, fault.SessionAuthorityDenied:
		return exitAccess
	case fault.InvalidArguments:
		return exitUsage
	case fault.StorageFull, fault.PersistenceUncertain:
		return exitStorage
	}
	return exitFailed
}
