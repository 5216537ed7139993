package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"webcodex/commands/execution"
	"webcodex/internal/fault"
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
	if err := runner.CheckJournal(filepath.Join(dir, "runner")); err != nil {
		fail("the Runner's journal", fault.As(err).Next)
	}
	for _, file := range runner.DamagedJournals(filepath.Join(dir, "runner")) {
		bad = append(bad, check{"files", statusWarn, asideText(file), "remove the file when nobody needs it any more"})
	}
	if hasLog(dir) && !execution.HasKey(dir) {
		bad = append(bad, check{"files", statusWarn, "digest.key is gone: " + execution.LostKey,
			"put it back from a copy of the data directory; the next start makes a new one otherwise"})
	}
	if execution.CheckKey(dir) != nil {
		fail("digest.key", "put it back from a copy of the data directory, or remove it, then a new one is made: "+execution.LostKey)
	}
	if hasLog(dir) && mcp.CheckOwner(dir) != nil {
		fail("owner", "put it back from a copy of the data directory; with a new one every Session belongs to somebody else")
	}
	if id := eraseBegun(dir); id != "" {
		bad = append(bad, check{"files", statusWarn, "an erase was broken off: something of that Session may still be there",
			"end the server and run `webcodex erase --yes " + string(id) + "` again"})
	}
	if bad == nil {
		return []check{{"files", statusOK, "settings, Projects, key and owner can be read", ""}}
	}
	return bad
}

const lostKeyText = "digest.key was gone and a new one was made: " + execution.LostKey

// attention is what a person should know of the files beside the log.
func (s *server) attention() (out []string) {
	for _, file := range runner.DamagedJournals(filepath.Join(s.dir, "runner")) {
		out = append(out, asideText(file))
	}
	if s.lostKey {
		out = append(out, lostKeyText)
	}
	if s.runner == nil { // the server alone
		return out
	}
	if t := s.runner.Trouble(); t != "" {
		out = append(out, t)
	}
	return out
}

func asideText(file string) string {
	return "the Runner's journal was damaged and lies aside as " + file + "; what it alone could prove got an unknown outcome"
}
