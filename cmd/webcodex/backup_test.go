package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/access"
	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp"
	"webcodex/mcp/client"
)

// commitsOf is every commit of a log by sequence and hash, up to last.
func commitsOf(t *testing.T, log *eventlog.Log, last uint64) (out []string) {
	t.Helper()
	err := log.Replay(t.Context(), eventlog.Range{}, func(e eventlog.Entry) error {
		if e.Seq <= last {
			out = append(out, fmt.Sprint(e.Seq, e.Hash, e.Commit.Aggregate, e.Commit.Version))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBackupUnderLoad: while two windows go on working, the log is copied; a data directory
// made of the copy has every commit of it, Sessions that resume, and no credential but those
// that people make anew. It is another history.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "always")
	friend := w.admit(access.CreateIn{Kind: "user", Name: "Ada"})
	theirs, own := friend.work(w.project), w.work(args{})
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	for _, go1 := range []func(){
		func() { w.work(args{"session_id": string(own.SessionID), "instruction": "more"}) },
		func() {
			friend.call("work_on_project", args{"session_id": string(theirs.SessionID), "instruction": "more"})
		},
	} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					go1()
				}
			}
		})
	}
	base := t.TempDir()
	var made []manifest
	for i := range 3 {
		m, err := backup(t.Context(), w.dir, filepath.Join(base, "deep", fmt.Sprint("copy", i)))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, m)
		for end := time.Now().Add(time.Minute); w.srv.log.Status().Seq <= m.Last && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // what is written meanwhile is what the next copy has more
		}
	}
	close(stop)
	wg.Wait()
	m, copied := made[2], filepath.Join(base, "deep", "copy2")
	if made[0].Last >= m.Last || m.First != 1 || m.Commits != m.Last || m.Epoch != w.srv.log.Epoch() {
		t.Errorf("%+v", made)
	}
	checkPrivate(t, w, copied, friend.issued.Token)

	data := filepath.Join(base, "else", "where")
	if _, err := restore(t.Context(), copied, data); err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.Open(t.Context(), eventlog.Options{Dir: data, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(commitsOf(t, w.srv.log, m.Last), commitsOf(t, log, m.Last)); diff != "" {
		t.Error(diff)
	}
	if log.Epoch() == w.srv.log.Epoch() || log.Epoch() == "" || log.Status().Seq != m.Last+1 {
		t.Errorf("%+v", log.Status())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}

	srv := up1(t, w.repo, data, "--listen", "127.0.0.1:0")
	if srv.ready.Project != w.project || srv.ready.Token == w.srv.access.Token() {
		t.Errorf("%s, was %s", srv.ready.Project, w.project)
	}
	window, err := dialWindow(t.Context(), srv.ready.MCPURL, srv.ready.Token)
	if err != nil {
		t.Fatal(err)
	}
	defer window.close()
	resume := json.RawMessage(`{"session_id": "` + string(own.SessionID) + `", "instruction": "go on"}`)
	res, err := window.call(t.Context(), "work_on_project", resume)
	var out session.WorkOut
	if err != nil || res.IsError || res.Decode(&out) != nil || out.Continuation != session.Resumed {
		t.Errorf("%v %s", err, res.Text)
	}
	open := func(token string) error {
		c, err := client.Connect(t.Context(), client.Options{URL: srv.ready.MCPURL, Token: token})
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	if open(friend.issued.Token) == nil {
		t.Error("a token of before the restore is good")
	}
	again := webcodexJSON[access.Issued](t, "token", "rotate", string(friend.issued.ID), "--data", data, "--json")
	c, err := client.Connect(t.Context(), client.Options{URL: srv.ready.MCPURL, Token: again.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err := c.CallTool(t.Context(), "work_on_project", args{"session_id": string(theirs.SessionID), "instruction": "go on"}); err != nil || r.IsError {
		t.Errorf("the friend's Session: %v %s", err, r.Text)
	}
}

// checkPrivate: rights for nobody else, and no credential or key in any file.
func checkPrivate(t *testing.T, w *world, dir string, tokens ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	secrets := append(tokens, w.srv.access.Token())
	key, err := os.ReadFile(filepath.Join(w.dir, "digest.key"))
	if err != nil || len(key) < 16 {
		t.Fatalf("the key to look for: %v", err)
	}
	secrets = append(secrets, strings.TrimSpace(string(key)))
	files := filesAtRest(t, dir)
	for name, body := range files {
		for _, s := range secrets {
			if strings.Contains(body, s) {
				t.Errorf("%s holds a credential or a key", name)
			}
		}
	}
	if len(files) != 5 || files["/owner"] == "" || files["/projects.json"] == "" {
		t.Errorf("%d files", len(files))
	}
}

// backedUp is a backup of a small log, made without a server.
func backedUp(t *testing.T, commits int) (dir, data string) {
	t.Helper()
	base := t.TempDir()
	data, dir = filepath.Join(base, "data"), filepath.Join(base, "copy")
	log, err := eventlog.Open(t.Context(), eventlog.Options{Dir: data, Durability: eventlog.Process, MaxBytes: 256 << 20, Server: event.NewInstanceID()})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		a := event.SessionAggregate(event.NewSessionID())
		wg.Go(func() {
			for range commits / 16 {
				head, _ := log.Head(a)
				if _, err := log.Append(t.Context(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(),
					Events: []event.Event{event.InstructionAccepted{Text: strings.Repeat("x", 300), Mode: event.ModeNormal}}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := mcp.OpenAccess(data, true); err != nil {
		t.Fatal(err)
	}
	if _, err := loadSettings(data); err != nil {
		t.Fatal(err)
	}
	if _, err := backup(t.Context(), data, dir); err != nil {
		t.Fatal(err)
	}
	return dir, data
}

// TestDamagedBackup: one that is cut, flipped anywhere, incomplete, of a newer program or of
// something else than files is refused, and nothing is made of it.
func TestDamagedBackup(t *testing.T) {
	t.Parallel()
	good, _ := backedUp(t, 160)
	names := []string{copyLog, "owner", "settings.json", manifestFile}
	change := map[string]func(dir string) error{
		"no manifest": func(d string) error { return os.Remove(filepath.Join(d, manifestFile)) },
		"no log":      func(d string) error { return os.Remove(filepath.Join(d, copyLog)) },
		"no owner":    func(d string) error { return os.Remove(filepath.Join(d, "owner")) },
		"a link": func(d string) error {
			p := filepath.Join(d, "owner")
			if err := os.Rename(p, p+".kept"); err != nil {
				return err
			}
			return os.Symlink(p+".kept", p)
		},
		"a pipe": func(d string) error {
			p := filepath.Join(d, copyLog)
			if err := os.Remove(p); err != nil {
				return err
			}
			return exec.Command("mkfifo", p).Run()
		},
		"one line more": func(d string) error {
			f, err := os.OpenFile(filepath.Join(d, copyLog), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("{}\n")
			return err
		},
		"a newer format": func(d string) error {
			return editManifest(d, func(m *manifest) { m.Format++ })
		},
		"another span": func(d string) error {
			return editManifest(d, func(m *manifest) { m.Last++ })
		},
		"a path": func(d string) error {
			return editManifest(d, func(m *manifest) {
				m.Files = append(m.Files, copiedFile{Name: "../data/token", Bytes: 1, SHA256: "x"})
			})
		},
	}
	for _, name := range names {
		body, err := os.ReadFile(filepath.Join(good, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, len(body) / 3, len(body) / 2, len(body) - 2} {
			change[fmt.Sprintf("%s flipped at %d", name, at)] = func(d string) error {
				b := slices.Clone(body)
				b[at] ^= 2
				return os.WriteFile(filepath.Join(d, name), b, 0o600)
			}
			change[fmt.Sprintf("%s cut at %d", name, at)] = func(d string) error {
				return os.WriteFile(filepath.Join(d, name), body[:at], 0o600)
			}
		}
	}
	for name, f := range change {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			bad, data := filepath.Join(base, "bad"), filepath.Join(base, "to", "data")
			if err := os.CopyFS(bad, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			if err := f(bad); err != nil {
				t.Fatal(err)
			}
			if _, err := restore(t.Context(), bad, data); err == nil || codeOf(err) != exitFailed {
				t.Errorf("%v", err)
			}
			if left, _ := os.ReadDir(filepath.Dir(data)); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func editManifest(dir string, f func(*manifest)) error {
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	f(&m)
	m.Sum = m.sum()
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestFile), body, 0o600)
}

// TestBackupPlaces: a backup goes to a place of its own and a restore to an empty one; what is
// there stays as it is.
func TestBackupPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	full := t.TempDir()
	w.write(filepath.Join(full, "mine"), "x")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(w.dir, link); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"in the data directory": filepath.Join(w.dir, "copy"), "the data directory": w.dir,
		"through a link": filepath.Join(link, "copy"), "in a Project": filepath.Join(w.repo, "copy"), "in another Project": filepath.Join(w.otherDir, "a", "b"),
		"not empty": full} {
		before := len(filesAtRest(t, w.repo)) + len(filesAtRest(t, full))
		if _, err := backup(t.Context(), w.dir, to); codeOf(err) != exitUsage {
			t.Errorf("%s: %v", name, err)
		}
		if after := len(filesAtRest(t, w.repo)) + len(filesAtRest(t, full)); after != before {
			t.Errorf("%s: %d files, %d before", name, after, before)
		}
	}
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := backup(t.Context(), w.dir, to); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"not empty": full, "in use": w.dir} {
		if _, err := restore(t.Context(), to, data); codeOf(err) != exitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty := t.TempDir()
	if _, err := restore(t.Context(), to, empty); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := backup(t.Context(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "x")); codeOf(err) != exitNoServer {
		t.Errorf("no data directory: %v", err)
	}
}

// TestBackupThatIsCutOff: where the server goes away in the middle, or says nonsense, nothing is
// left that looks like a backup.
func TestBackupThatIsCutOff(t *testing.T) {
	t.Parallel()
	_, data := backedUp(t, 160)
	a, err := openLog(t.Context(), data, eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	if err := streamBackup(t.Context(), a.log, &all); err != nil {
		t.Fatal(err)
	}
	a.close()
	text := all.String()
	lines := strings.SplitAfter(text, "\n")
	for name, said := range map[string]string{"nothing": "", "half": text[:len(text)/2], "half a line less": text[:len(text)-20],
		"no head": strings.Join(lines[1:], ""), "an error": strings.Join(lines[:9], "") + `{"error":{"error_kind":"log_damaged","message":"x"}}` + "\n",
		"a hole": strings.Join(slices.Delete(slices.Clone(lines), 5, 6), "") + lines[1], "endless": lines[0] + strings.Repeat("x", 2*maxBackupLine)} {
		to := filepath.Join(t.TempDir(), "copy")
		if _, err := emptyDir(to); err != nil {
			t.Fatal(err)
		}
		b := backupWriter{dir: to, data: data}
		_, err := b.write(strings.NewReader(said))
		if err == nil {
			t.Errorf("%s: taken", name)
		}
		b.undo(to)
		if left, _ := os.ReadDir(filepath.Dir(to)); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// TestRestoreKilled: a restore that is killed at any moment leaves no data directory or a whole
// one, and the next one makes it and takes away what was left.
func TestRestoreKilled(t *testing.T) {
	t.Parallel()
	commits, rounds := 800, 5
	if os.Getenv("WEBCODEX_SOAK") != "" {
		commits, rounds = 4000, 100
	}
	dir, _ := backedUp(t, commits)
	base := t.TempDir()
	data := filepath.Join(base, "data")
	began := time.Now()
	if _, err := restore(t.Context(), dir, filepath.Join(base, "timing")); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	whole := 0
	for i := range rounds {
		cmd := exec.Command(program(t), "restore", dir, "--data", data)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(took * time.Duration(i) / time.Duration(rounds)) // where in its work it is hit
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Stat(data); err == nil {
			whole++
			checkWholeRestore(t, dir, data)
			if err := os.RemoveAll(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of %d were whole", whole, rounds)
	if _, err := restore(t.Context(), dir, data); err != nil {
		t.Fatal(err)
	}
	checkWholeRestore(t, dir, data)
	left, _ := filepath.Glob(filepath.Join(base, ".data.restoring-*"))
	for _, p := range left { // but for one that was killed before it had its lock
		if _, err := os.Stat(filepath.Join(p, "lock")); err == nil {
			t.Errorf("left: %s", filepath.Base(p))
		}
	}
}

func checkWholeRestore(t *testing.T, dir, data string) {
	t.Helper()
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.Open(context.Background(), eventlog.Options{Dir: data, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if st := log.Status(); st.Seq != m.Last+1 || len(st.Damaged) > 0 || log.Epoch() == m.Epoch {
		t.Errorf("%+v", st)
	}
	if err := mcp.CheckOwner(data); err != nil {
		t.Error(err)
	}
}

// TestBackupKilled: a backup that is killed is none.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	commits, rounds := 800, 4
	if os.Getenv("WEBCODEX_SOAK") != "" {
		commits, rounds = 4000, 24
	}
	_, data := backedUp(t, commits)
	for i := range rounds {
		to := filepath.Join(t.TempDir(), "copy")
		cmd := exec.Command(program(t), "backup", to, "--data", data)
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 60 * time.Millisecond) // where in its work it is hit
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_, err := restore(t.Context(), to, filepath.Join(t.TempDir(), "data"))
		if _, merr := os.Stat(filepath.Join(to, manifestFile)); (err == nil) != (merr == nil) {
			t.Errorf("%v, and the manifest: %v", err, merr)
		}
	}
}
