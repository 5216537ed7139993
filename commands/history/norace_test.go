//go:build !race

package history_test

const raced = false
