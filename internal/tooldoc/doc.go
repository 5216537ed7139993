// Package tooldoc makes docs/tools.md from the tool list, and fails when the file is stale. It
// is a package of its own, since what it holds is needed by people only.
package tooldoc

//go:generate go test -count=1 -run TestToolsDocument -update .
