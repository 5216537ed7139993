package main

import (
	"log/slog"
	"path/filepath"

	"webcodex/internal/sandbox"
	"webcodex/runner"
	"webcodex/runner/checkpoint"
	"webcodex/runner/files"
	"webcodex/runner/gitops"
	"webcodex/runner/lsp"
	"webcodex/runner/shell"
	"webcodex/runner/ssh"
	"webcodex/runner/testparse"
	"webcodex/runner/worktree"
)

// makeRunner makes a Runner that can do all there is, be it in the server's process or in one of
// its own. Options lack what is the same for both. Making it ends what a dead one left running.
func makeRunner(o runner.Options, cfg effective, logger *slog.Logger) (*runner.Runner, *ssh.Resources, error) {
	o.Jobs = cfg.Jobs
	config := cfg.file
	if runner.CheckProjects(o.Dir) != nil {
		return nil, nil, failf(exitFailed, "runner/projects.json in the data directory is damaged: put it back from a copy; `webcodex doctor` tells more")
	}
	resources := ssh.New(ssh.Options{File: sshSettings(config), Logger: logger})
	sandbox.Protect(config, sshSettings(config), shellSettings(config), nextTo(config, "projects.toml"))
	o.AllowedRoots, o.ProjectsFile = filepath.SplitList(cfg.AllowedRoots), nextTo(config, "projects.toml")
	if config != "" {
		o.Deny = append(o.Deny, filepath.Dir(config)) // who writes there widens what the Runner may do
	}
	o.Build, o.Parsers, o.Tree, o.Supervisor, o.Logger = thisBuild().String(), testparse.Parsers, gitops.Bind, supervisor(), logger
	r, err := runner.New(o)
	if err != nil {
		resources.Close()
		return nil, nil, err
	}
	checkpoint.Register(r, files.Register(r), nil)
	gitops.Register(r)
	ssh.Register(r, resources)
	lsp.Register(r, lsp.New(lsp.CacheDir()))
	worktree.Register(r, worktree.Options{Logger: logger})
	shell.Register(r, shell.New(shell.Options{File: shellSettings(config), Dir: filepath.Join(o.Dir, "shells"), Idle: cfg.ShellIdle, Max: cfg.Shells,
		Remote: resources, Logger: logger}))
	return r, resources, nil
}

// shellSettings is the file with the profiles of persistent shells.
func shellSettings(config string) string { return nextTo(config, "shells.toml") }

// sshSettings is the file with the Runner's named resources.
func sshSettings(config string) string { return nextTo(config, "ssh.toml") }

// nextTo is a file next to the configuration file, which does not name it. Empty where there is no
// place to look.
func nextTo(config, name string) string {
	if config == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(config), name)
}
