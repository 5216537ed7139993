// Package ssh runs commands on named resources: machines that a Runner's operator has described
// and that a Session names. Hosts, users, keys and connections stay in here: what callers give
// and get is a name, and why something did not work in stable words.
//
// A connection belongs to one (Session, resource, generation of its settings) and carries many
// commands; each has a channel of its own, so nothing of a shell survives from one to the next.
// A command is sent once. What cannot be known of it afterwards is said to be unknown.
package ssh
