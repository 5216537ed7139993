//go:build race

package history_test

// raced tells of the race detector, under which a million calls take an hour.
const raced = true
