// Package conformance tries WebCodex with what others wrote: the conformance suite of the
// protocol in both eras, the MCP Inspector's command line, the TypeScript SDK v1 and v2. It
// holds tests only, and they run when WEBCODEX_CONFORMANCE is set (make conformance): they
// need Node 22, which npm brings from node/package-lock.json into the user's cache directory.
//
// The baselines are the scenarios that need the suite's own fixtures, or an extension that is
// not offered. Entries may only be removed; the suite fails on one that has become stale.
package conformance
