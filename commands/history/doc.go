// Package history decides what leaves the log: it carries living state forward and prunes.
package history
