package files

import "golang.org/x/sys/unix"

// renameFree renames between two opened directories, never over something that exists.
var renameFree = func(from int, name string, to int, toName string) error {
	return unix.RenameatxNp(from, name, to, toName, unix.RENAME_EXCL)
}

// renameSwap exchanges two names in one directory at once.
var renameSwap = func(dir int, a, b string) error {
	return unix.RenameatxNp(dir, a, dir, b, unix.RENAME_SWAP)
}
