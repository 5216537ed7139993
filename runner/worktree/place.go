package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
	"webcodex/runner"
)

// spot is the managed namespace beside a source.
type spot struct {
	path string // absolute, resolved
	root *os.Root
}

// place finds or makes the namespace for worktrees of a source (WTR-05). A worktree of a worktree
// lies beside that. Error: managed_worktree_root_unavailable (WTR-10).
func (m *Manager) place(source *runner.Project) (spot, error) {
	around := filepath.Dir(source.Path)
	if filepath.Base(around) == namespace {
		around = filepath.Dir(around)
	}
	if around == source.Path {
		return spot{}, noRoot(nil, "no_sibling")
	}
	if err := m.runner.MayHold(around); err != nil {
		return spot{}, noRoot(err, "outside_allowed_roots")
	}
	parent, err := os.OpenRoot(around)
	if err != nil {
		return spot{}, noRoot(err, "unreadable")
	}
	defer parent.Close()
	if err := parent.Mkdir(namespace, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return spot{}, noRoot(err, "not_writable")
	}
	// In a directory that others write too, the name may be somebody else's.
	if info, err := parent.Lstat(namespace); err != nil || !info.IsDir() {
		return spot{}, noRoot(err, "not_ours")
	}
	root, err := parent.OpenRoot(namespace)
	if err != nil {
		return spot{}, noRoot(err, "unreadable")
	}
	if err := ours(root); err != nil {
		root.Close()
		return spot{}, noRoot(err, "not_ours")
	}
	return spot{path: filepath.Join(around, namespace), root: root}, nil
}

// ours refuses a directory that another account owns or may write.
func ours(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return errors.New("the namespace belongs to another account, or others may write it")
	}
	return nil
}

func noRoot(cause error, reason string) error {
	return fault.Wrap(cause, fault.WorktreeRootUnavailable, "the Runner has no place of its own beside this Project where a worktree may lie").
		WithField("mode").WithReason(reason).
		WithNext("work in the checkout itself (mode checkout), or ask the Runner's owner to allow the directory around it (allowed_roots)")
}

// name is the directory of an operation's worktree: for people what it is of, for git its own.
func name(source *runner.Project, operation string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(source.Name) {
		switch {
		case b.Len() >= maxSlug:
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	base := strings.Trim(b.String(), "-")
	if base == "" {
		base = "worktree"
	}
	return base + "-" + operation[:12]
}
