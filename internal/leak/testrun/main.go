// Command testrun runs tests, and tells what all of them together have left behind: processes,
// control groups, temporary files. It is for make test alone.
//
//	go run ./internal/leak/testrun go test ./...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"webcodex/internal/leak"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testrun COMMAND [ARG...]")
		os.Exit(2)
	}
	run, err := leak.Watch()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	code := execute(os.Args[1], os.Args[2:])
	left := run.End()
	line, _ := json.Marshal(struct {
		Bar   string   `json:"bar"`
		Value int      `json:"value"`
		Limit int      `json:"limit"`
		Left  []string `json:"left,omitempty"`
		Met   bool     `json:"met"`
	}{"processes, control groups and temporary files left after the tests", len(left), 0, left, len(left) == 0})
	fmt.Println(string(line))
	if code == 0 && len(left) > 0 {
		code = 1
	}
	os.Exit(code)
}

// execute runs the tests to their end. What asks this process to end asks them.
func execute(name string, args []string) int {
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 2
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range asked {
			_ = cmd.Process.Signal(s)
		}
	}()
	// Orphans fall to this process, and tests look whether they are gone: each is collected when it
	// ends.
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 2
		case pid != cmd.Process.Pid:
		case status.Exited():
			return status.ExitStatus()
		default:
			return 1
		}
	}
}
