package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"webcodex/commands/execution"
	"webcodex/mcp"
	"webcodex/runner"
)

// checkFiles looks at the small files beside the log, without which no server starts.
func checkFiles(dir string) []check {
	var bad []check
	fail := func(file, fix string) {
		bad = append(bad, check{"files", statusFail, file + " is damaged or cannot be read", fix})
	}
	if _, err := readSettings(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fail(settingsFile, "put it back from a copy of the data directory; without it the port changes and every Project gets a new name, which its old Sessions do not have")
	}
	if runner.CheckProjects(filepath.Join(dir, "runner")) != nil {
		fail("runner/projects.json", "put it back from a copy of the data directory; without it every Project gets a new name, which its old Sessions do not have")
	}
	if execution.CheckKey(dir) != nil {
		fail("digest.key", "put it back from a copy of the data directory, or remove it: a new one is made, and commands of before are not recognised as the same ones")
	}
	if hasLog(dir) && mcp.CheckOwner(dir) != nil {
		fail("owner", "put it back from a copy of the data directory; with a new one every Session belongs to somebody else")
	}
	if bad == nil {
		return []check{{"files", statusOK, "settings, Projects, key and owner can be read", ""}}
	}
	return bad
}
