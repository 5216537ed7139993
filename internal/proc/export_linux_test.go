package proc

import "path/filepath"

// UseCells makes executions use that kind of control group, or none for "", until restore is
// called. It is false where this system has no such thing.
func UseCells(kind string) (restore func(), ok bool) {
	before := home
	var n *nest
	if kind != "" {
		if n = nestOf(kind); n == nil {
			return nil, false
		}
	}
	home = func() *nest { return n }
	return func() { home = before }, true
}

// UseNest makes cells of version 2 in a directory.
func UseNest(dir string) (restore func()) {
	before, n := home, &nest{dir: dir, kind: unified}
	home = func() *nest { return n }
	return func() { home = before }
}

// Nest is where cells are made.
func Nest() string { return home().dir }

// Cells are the control groups of this process's executions that are there.
func Cells() []string {
	n := home()
	if n == nil {
		return nil
	}
	left, _ := filepath.Glob(filepath.Join(n.dir, ownCells+"*"))
	return left
}

// CellOf is the control group of a mark.
func CellOf(mark string) string { return filepath.Join(home().dir, ownCells+mark) }

// GroupDir is groupDir.
var GroupDir = groupDir

// The kinds of control groups.
const (
	Unified = unified
	Freezer = freezer
)

// CellsOff reports that cells were found not to work.
func CellsOff() bool { n := home(); return n == nil || n.off.Load() }

// Sweep is what the first use does.
func Sweep() { home().sweep() }
