// Package conformance tries WebCodex with what others wrote: the conformance suite of the
// protocol in both eras, the MCP Inspector's command line, the TypeScript SDK v1 and v2. It
// holds tests only, and they run when WEBCODEX_CONFORMANCE is set (make conformance): they
// need Node 22, which npm brings from node/package-lock.json into the user's cache directory.
//
// Two stories are told with the SDKs as hosts: each does a whole job alone (node/story.mjs), and
// one has the other do it, over the board of its Session, while the server is killed twice
// (delegate). There the test is the director of hosts that do one call at a time (node/host.mjs):
// what they do, in which order and what must come back stands in Go.
//
// The baselines are the scenarios that need the suite's own fixtures, or an extension that is
// not offered. Entries may only be removed; the suite fails on one that has become stale.
package conformance
