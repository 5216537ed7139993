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

// narrow asks ripgrep which of files can hold a match, and keeps those it has not looked at.
// Its word decides no match and opens no file: each candidate is opened and searched by us,
// so that nothing it may have been led to is shown. It is false where ripgrep was of no use.
func narrow(ctx context.Context, program string, root *os.Root, files []string, base string, p *pattern) ([]string, bool) {
	if program == "" || len(files) < ripgrepAbove || len(p.needed) == 0 {
		return nil, false
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	ctx, stop := context.WithTimeout(ctx, ripgrepTimeout)
	defer stop()
	find := []string{"--files-with-matches", "--fixed-strings"}
	if p.fold {
		find = append(find, "--ignore-case")
	}
	for _, text := range p.needed {
		find = append(find, "--regexp="+text)
	}
	where := "./" + base
	var looked, hits map[string]bool
	var lookErr, hitErr error
	var wg sync.WaitGroup
	wg.Go(func() { looked, lookErr = ripgrep(ctx, program, dir, append([]string{"--files"}, "--", where)) })
	wg.Go(func() { hits, hitErr = ripgrep(ctx, program, dir, append(find, "--", where)) })
	wg.Wait()
	if lookErr != nil || hitErr != nil {
		return nil, false
	}
	var out []string
	for _, f := range files {
		if hits[f] || !looked[f] {
			out = append(out, f)
		}
	}
	return out, true
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
	if err := cmd.Start(); err != nil {
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
