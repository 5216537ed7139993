package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"webcodex/internal/sandbox"
)

// findRipgrep is ripgrep's path, empty where it is not installed. A ripgrep reached by a
// relative entry of PATH could come from the repository and is not used.
var findRipgrep = sync.OnceValue(func() string {
	path, err := exec.LookPath("rg")
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
})

// narrowing is a question to ripgrep that may be asked before the files are listed: which files
// below base can hold a match.
type narrowing struct {
	ctx     context.Context
	program string
	root    *os.Root
	base    string
	p       *pattern

	begun bool
	stop  context.CancelFunc
	done  chan struct{}
	// looked are the files that ripgrep saw, hits those with a match; known tells that both are.
	looked, hits map[string]bool
	known        bool
}

// early asks before the files are listed where the index of git is so large that it will be worth
// it: the two then take their time together.
func (n *narrowing) early() {
	if info, err := n.root.Lstat(".git/index"); err == nil && info.Mode().IsRegular() && info.Size() >= ripgrepAbove*indexEntryBytes {
		n.begin()
	}
}

func (n *narrowing) begin() {
	if n.begun || n.program == "" || len(n.p.needed) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(n.ctx, ripgrepTimeout)
	n.begun, n.stop, n.done = true, stop, make(chan struct{})
	go func() {
		defer close(n.done)
		n.ask(ctx)
	}()
}

// close ends what was asked in vain.
func (n *narrowing) close() {
	if n.begun {
		n.stop()
		<-n.done
	}
}

// keep is what of files can hold a match: what ripgrep found, and what it has not looked at.
// Its word decides no match and opens no file: each candidate is opened and searched by us,
// so that nothing it may have been led to is shown. It is false where ripgrep was of no use.
func (n *narrowing) keep(files []string) ([]string, bool) {
	if len(files) < ripgrepAbove {
		return nil, false
	}
	n.begin()
	if !n.begun {
		return nil, false
	}
	<-n.done
	if !n.known {
		return nil, false
	}
	var out []string
	for _, f := range files {
		if n.hits[f] || !n.looked[f] {
			out = append(out, f)
		}
	}
	return out, true
}

func (n *narrowing) ask(ctx context.Context) {
	dir, err := n.root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	find := []string{"--files-with-matches", "--fixed-strings"}
	if n.p.fold {
		find = append(find, "--ignore-case")
	}
	for _, text := range n.p.needed {
		find = append(find, "--regexp="+text)
	}
	where := "./" + n.base
	var lookErr, hitErr error
	var wg sync.WaitGroup
	wg.Go(func() { n.looked, lookErr = ripgrep(ctx, n.program, dir, append([]string{"--files"}, "--", where)) })
	wg.Go(func() { n.hits, hitErr = ripgrep(ctx, n.program, dir, append(find, "--", where)) })
	wg.Wait()
	n.known = lookErr == nil && hitErr == nil
}

// ripgrepFlags leave it no configuration, no links to follow and nothing to run.
var ripgrepFlags = []string{
	"--no-config", "--no-follow", "--no-messages", "--no-search-zip", "--no-pre", "--hidden", "--null",
	"--no-ignore-dot", "--no-ignore-global", "--color=never", "--no-mmap", "--threads=2", "--glob=!.git",
}

// ripgrep runs one ripgrep and gives the paths it printed. Exit status 1 is no match; any
// other failure makes its list worthless.
func ripgrep(ctx context.Context, program string, dir *os.File, args []string) (map[string]bool, error) {
	cmd := exec.CommandContext(ctx, program, append(append([]string{}, ripgrepFlags...), args...)...)
	cmd.Dir, cmd.Env = openedDir(dir), []string{"LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := sandbox.Start(cmd); err != nil {
		return nil, err
	}
	paths, readErr := readPaths(out)
	if readErr != nil {
		cmd.Process.Kill()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	return paths, errors.Join(readErr, err)
}

// maxPathRecord is more than any path.
const maxPathRecord = 64 << 10

func readPaths(in io.Reader) (map[string]bool, error) {
	paths := map[string]bool{}
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 8<<10), maxPathRecord)
	sc.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		if atEOF && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	for sc.Scan() {
		if len(paths) > 2*maxScanFiles {
			return nil, io.ErrShortBuffer
		}
		paths[strings.TrimPrefix(sc.Text(), "./")] = true
	}
	return paths, sc.Err()
}
