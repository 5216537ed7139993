package files

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// action is one step of a transaction on one file.
//
// note says beforehand what the step will do, with the names of the files it makes beside the
// target. stage prepares those and leaves the target alone; staged is what it made. commit
// makes the change. undo takes a commit back, however far it came, and leaves alone what
// somebody else put there meanwhile: errMoved where our change stands because of that. It
// finds out by looking, so that a later life can do it from the note. settle removes what a finished change leaves beside it, unstage
// what one that was not made or taken back does.
type action interface {
	note() stepNote
	stage() error
	staged() identity
	commit() error
	undo() error
	settle() error
	unstage() error
	// paths are what the action changes, for the report.
	paths() []string
	// directories are synced after the commit.
	directories() []*os.Root
}

// replace puts new content in the place of a regular file.
type replace struct {
	at     place
	before []byte
	after  []byte
	mode   fs.FileMode // its permissions then; 0: as they are
	// temp has the new content first and, where the two were exchanged, the old one then;
	// backup is the old one where they could not be.
	temp, backup string
	mine         identity // the new content's file
}

func (a *replace) note() stepNote {
	a.temp, a.backup = sideName(".tmp"), sideName(".old")
	return stepNote{Kind: noteReplace, At: spotOf(a.at), Temp: a.temp, Backup: a.backup}
}

func (a *replace) stage() (err error) {
	mode := a.mode
	if mode == 0 {
		mode = a.at.info.Mode().Perm()
	}
	a.mine, err = writeSide(a.at.dir, a.temp, a.after, exactly(mode))
	return err
}

func (a *replace) staged() identity { return a.mine }

func (a *replace) commit() error {
	if err := verify(a.at.dir, a.at.name, a.at.info); err != nil {
		return err
	}
	err := swap(a.at.dir, a.temp, a.at.name)
	switch {
	case err == nil:
		return verify(a.at.dir, a.temp, a.at.info)
	case errors.Is(err, fs.ErrNotExist):
		return errMoved
	case unsupported(err):
		return a.commitByLink()
	}
	return err
}

func (a *replace) commitByLink() error {
	err := a.at.dir.Link(a.at.name, a.backup)
	switch {
	case err == nil:
		err = verify(a.at.dir, a.backup, a.at.info)
	case errors.Is(err, fs.ErrNotExist):
		return errMoved
	case unsupported(err):
		mode := a.at.info.Mode().Perm()
		if _, err = writeSide(a.at.dir, a.backup, a.before, exactly(mode)); err == nil {
			err = verify(a.at.dir, a.at.name, a.at.info)
		}
	}
	if err != nil {
		return err
	}
	return a.at.dir.Rename(a.temp, a.at.name)
}

func (a *replace) undo() error {
	if a.mine == (identity{}) {
		return nil
	}
	there, err1 := look(a.at.dir, a.at.name)
	temp, err2 := look(a.at.dir, a.temp)
	backup, err3 := look(a.at.dir, a.backup)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	switch {
	case !a.mine.is(there):
		return nil // not yet committed, or somebody's by now
	case backup != nil:
		return a.at.dir.Rename(a.backup, a.at.name)
	case temp != nil:
		return a.swapBack()
	}
	return errMoved
}

// swapBack puts the old file back, and ours beside it. One that came between the look and
// the exchange goes back to where it was.
func (a *replace) swapBack() error {
	switch err := swap(a.at.dir, a.temp, a.at.name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil // somebody deleted ours
	case err != nil:
		return err
	}
	temp, err := look(a.at.dir, a.temp)
	if err != nil || a.mine.is(temp) {
		return err
	}
	return swap(a.at.dir, a.temp, a.at.name)
}

func (a *replace) settle() error {
	return errors.Join(discard(a.at.dir, a.temp), discard(a.at.dir, a.backup))
}
func (a *replace) unstage() error          { return a.settle() }
func (a *replace) paths() []string         { return []string{a.at.path} }
func (a *replace) directories() []*os.Root { return []*os.Root{a.at.dir} }

// create makes a file where nothing is, with the directories before it.
type create struct {
	tree    *tree
	at      place
	content []byte
	mode    func(fs.FileMode) fs.FileMode // of the default permissions; nil: those
	link    bool                          // a symbolic link that leads to content
	temp    string
	mine    identity
	made    []madeDir
}

func (a *create) note() stepNote {
	a.temp = sideName(".tmp")
	return stepNote{Kind: noteCreate, At: spotOf(a.at), Temp: a.temp}
}

func (a *create) stage() (err error) {
	if err := a.tree.make(&a.at, &a.made); err != nil {
		return err
	}
	if a.link {
		a.mine, err = linkSide(a.at.dir, a.temp, string(a.content))
		return err
	}
	a.mine, err = writeSide(a.at.dir, a.temp, a.content, a.mode)
	return err
}

func (a *create) staged() identity { return a.mine }
func (a *create) commit() error    { return move(a.at.dir, a.temp, a.at.dir, a.at.name) }

func (a *create) undo() error {
	if a.mine == (identity{}) || len(a.at.missing) > 0 {
		return nil
	}
	there, err := look(a.at.dir, a.at.name)
	if err != nil || !a.mine.is(there) {
		return err // what is there is not ours to remove
	}
	return discard(a.at.dir, a.at.name)
}

func (a *create) settle() error { return discard(a.at.dir, a.temp) }
func (a *create) unstage() error {
	err := a.settle()
	unmake(a.made)
	return err
}
func (a *create) paths() []string         { return []string{a.at.path} }
func (a *create) directories() []*os.Root { return []*os.Root{a.at.dir} }

// remove deletes a file, or a symbolic link itself.
type remove struct {
	at     place
	backup string
}

func (a *remove) note() stepNote {
	a.backup = sideName(".old")
	return stepNote{Kind: noteRemove, At: spotOf(a.at), Backup: a.backup}
}

func (a *remove) stage() error     { return nil }
func (a *remove) staged() identity { return identity{} }

func (a *remove) commit() error {
	if err := verify(a.at.dir, a.at.name, a.at.info); err != nil {
		return err
	}
	if err := a.at.dir.Rename(a.at.name, a.backup); err != nil {
		return err
	}
	return verify(a.at.dir, a.backup, a.at.info)
}

func (a *remove) undo() error {
	backup, err1 := look(a.at.dir, a.backup)
	there, err2 := look(a.at.dir, a.at.name)
	switch err := errors.Join(err1, err2); {
	case err != nil || backup == nil:
		return err
	case there != nil && os.SameFile(backup, there):
		return nil
	case there != nil:
		return errMoved // someone made a new one: it is theirs
	}
	return moveBack(a.at.dir, a.backup, a.at.dir, a.at.name)
}

func (a *remove) settle() error           { return discard(a.at.dir, a.backup) }
func (a *remove) unstage() error          { return a.settle() }
func (a *remove) paths() []string         { return []string{a.at.path} }
func (a *remove) directories() []*os.Root { return []*os.Root{a.at.dir} }

// rename moves a file to a name where nothing is.
type rename struct {
	from, to place
	tree     *tree    // of to
	moved    identity // what was moved
	made     []madeDir
}

func (a *rename) note() stepNote {
	to := spotOf(a.to)
	a.moved = identityOf(a.from.info)
	return stepNote{Kind: noteRename, At: spotOf(a.from), To: &to, Moved: a.moved}
}

func (a *rename) stage() error     { return a.tree.make(&a.to, &a.made) }
func (a *rename) staged() identity { return a.moved }

func (a *rename) commit() error {
	if err := verify(a.from.dir, a.from.name, a.from.info); err != nil {
		return err
	}
	if err := move(a.from.dir, a.from.name, a.to.dir, a.to.name); err != nil {
		return err
	}
	got, err := look(a.to.dir, a.to.name)
	if err != nil || got == nil {
		return errors.Join(err, errMoved)
	}
	a.moved = identityOf(got)
	return verify(a.to.dir, a.to.name, a.from.info)
}

func (a *rename) undo() error {
	if len(a.to.missing) > 0 {
		return nil // the directory that it goes to is not there: nothing was moved
	}
	from, err1 := look(a.from.dir, a.from.name)
	to, err2 := look(a.to.dir, a.to.name)
	switch err := errors.Join(err1, err2); {
	case err != nil || to == nil:
		return err
	case !a.moved.is(to):
		if from == nil {
			return errMoved
		}
		return nil // not moved: what is there is somebody else's
	case from != nil && os.SameFile(from, to):
		return discard(a.to.dir, a.to.name)
	case from != nil:
		return errMoved
	}
	return moveBack(a.to.dir, a.to.name, a.from.dir, a.from.name)
}

func (a *rename) settle() error           { return nil }
func (a *rename) unstage() error          { unmake(a.made); return nil }
func (a *rename) paths() []string         { return []string{a.from.path, a.to.path} }
func (a *rename) directories() []*os.Root { return []*os.Root{a.from.dir, a.to.dir} }

// madeDir is a directory that a step made.
type madeDir struct {
	in   *os.Root
	name string
}

// make creates the missing directories of a place and moves it into the last one.
func (t *tree) make(at *place, made *[]madeDir) error {
	for _, name := range at.missing {
		err := t.top().Mkdir(name, 0o777)
		if err == nil {
			*made = append(*made, madeDir{t.top(), name})
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := t.top().Lstat(name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return errMoved
		}
		if err := t.enter(name, info); err != nil {
			return err
		}
	}
	at.dir, at.missing = t.top(), nil
	return nil
}

// unmake takes back made directories, but never what someone put there meanwhile: it removes
// empty directories only.
func unmake(made []madeDir) {
	for i := len(made) - 1; i >= 0; i-- {
		if d, err := made[i].in.Open("."); err == nil {
			unix.Unlinkat(int(d.Fd()), made[i].name, unix.AT_REMOVEDIR)
			d.Close()
		}
	}
}
