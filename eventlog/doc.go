// Package eventlog is the log: an embedded JetStream server with one stream of commits, the
// committer that makes them durable and feeds the folds, the chain check, and the feed that
// replays. Besides the two ends of the Runner link it is the only package that speaks NATS.
package eventlog
