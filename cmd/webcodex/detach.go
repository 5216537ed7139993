package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Bounds of a detached server.
const (
	// detachIdle is how long a server that `webcodex mcp` brought up stays without a window.
	detachIdle = 30 * time.Minute
	// detachWait bounds how long its start may take, recovery of a large log included.
	detachWait = 5 * time.Minute
	serverLog  = "server.log"
	// maxServerLog is the size at which the log of a detached server begins anew.
	maxServerLog = 1 << 20
)

// startDetached brings a server up that outlives this process: the first host that started
// it may go, others use it. Two that race both try; the lock of the data directory decides,
// and the loser finds the winner (faults.md 4).
func startDetached(ctx context.Context, dataDir, root string) error {
	self, err := os.Executable()
	if err != nil {
		return failf(exitFailed, "the program cannot find itself: %v", short(err))
	}
	log, err := openServerLog(dataDir)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, "up", "--json", "--data", dataDir, "--idle-exit", detachIdle.String(), "--", root)
	cmd.Dir = "/"
	if file, must, err := configPath(""); err == nil && must { // it may be named from here
		cmd.Env = append(os.Environ(), "WEBCODEX_CONFIG="+file)
	}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	from, _ := log.Seek(0, io.SeekEnd)
	if err := cmd.Start(); err != nil {
		return failf(exitFailed, "a server could not be started: %v", short(err))
	}
	line := make(chan bool, 1)
	go func() { line <- readReady(out) }()
	t := time.NewTimer(detachWait)
	defer t.Stop()
	select {
	case ok := <-line:
		if !ok {
			_ = cmd.Wait()
			return failf(exitNoServer, "a server could not be started: %s", lastLine(dataDir, from))
		}
		go func() { _ = cmd.Wait() }() // it goes on without us; one that lost the race has ended
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return failf(exitNoServer, "the server is still starting: try again, `webcodex doctor` tells more")
	}
}

func readReady(out io.Reader) bool {
	var r ready
	b, err := bufio.NewReader(out).ReadBytes('\n')
	return err == nil && json.Unmarshal(b, &r) == nil && r.Ready
}

func openServerLog(dataDir string) (*os.File, error) {
	path := filepath.Join(dataDir, serverLog)
	flags := os.O_CREATE | os.O_RDWR | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxServerLog {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, failf(exitFailed, "%s cannot be written: %w", serverLog, short(err))
	}
	return f, nil
}

// lastLine is what a server that failed to start said last.
func lastLine(dataDir string, from int64) string {
	f, err := os.Open(filepath.Join(dataDir, serverLog))
	if err != nil {
		return "it said nothing"
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, from, maxServerLog), maxServerLog))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	text := strings.TrimPrefix(lines[len(lines)-1], "webcodex: ")
	if err != nil || text == "" {
		return "it said nothing"
	}
	return text
}
