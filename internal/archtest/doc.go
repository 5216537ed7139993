// Package archtest holds the rules of the house as tests: which package may import which, who
// may use the libraries that everything hangs on, and what every file owes its reader. There is
// no code in it; the map in map_test.go is the one place where the directions are written down.
package archtest
