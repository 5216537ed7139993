package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

// build is what the binary knows of its own making.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the short form: what a Runner announces and `version` prints.
func (b build) String() string {
	s := "webcodex " + b.Version
	if b.Revision != "" {
		s += " " + b.Revision[:min(12, len(b.Revision))]
	}
	if b.Modified {
		s += " (modified)"
	}
	return s
}

func versionCommand() command {
	return command{
		name: "version", short: "say which build this is",
		long: "The version comes from the Go toolchain's build information.",
		setup: func(fs *flag.FlagSet) action {
			asJSON := jsonFlag(fs)
			return func(_ context.Context, s streams, _ []string) error {
				b := thisBuild()
				if *asJSON {
					return printJSON(s.out, b)
				}
				_, err := fmt.Fprintf(s.out, "%s %s %s\n", b, b.Go, b.Platform)
				return err
			}
		},
	}
}
