// Package external holds the commands on what adapters outside report about a Session. A report
// proves nothing: it is no event of the Session, and no tool reads it as evidence (EXT-03).
package external
