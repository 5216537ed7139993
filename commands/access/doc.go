// Package access holds the commands on principals, tokens and refs.
package access
