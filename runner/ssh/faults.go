package ssh

import (
	"errors"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// connectTexts are the sentences of ssh_connection_failed by reason: none names a host, a user,
// a key or a file (SSH-10).
var connectTexts = map[string][2]string{
	"host_unknown":           {"no key of the resource's host is known on the Runner", "the operator adds the host's key to the known hosts, after checking it"},
	"host_key_changed":       {"the resource's host shows another key than the known one", "the operator finds out why before the known hosts are changed"},
	"host_key_type_unknown":  {"the resource's host has no key of the types that are known of it", "the operator adds the host's key to the known hosts, after checking it"},
	"host_key_revoked":       {"the resource's host shows a key that was revoked", "the operator gives the host another key"},
	"known_hosts_unreadable": {"the known hosts of the resource cannot be read", "the operator mends the known_hosts file"},
	"auth_refused":           {"the resource's host took none of the keys", "the operator adds the Runner's public key on the host, or names another key"},
	"no_key":                 {"there is no key to show to the resource's host", "the operator adds a key to the agent, or names a file"},
	"agent_unavailable":      {"the agent that holds the resource's keys cannot be reached", "the operator starts the agent, or names a key file"},
	"key_unreadable":         {"a key file of the resource cannot be read", "the operator mends the resource's settings"},
	"key_permissions":        {"a key file of the resource can be read by others", "the operator makes the file readable by its owner alone"},
	"key_encrypted":          {"a key file of the resource has a passphrase", "the operator adds the key to the agent and sets agent = true"},
	"connect_timeout":        {"the resource's host did not answer in time", "call again later"},
	"unreachable":            {"the resource's host cannot be reached", "call again later"},
	"handshake_failed":       {"the resource's host and the Runner could not agree", "the operator looks at the Runner's log"},
	"channel_refused":        {"the resource's host opens no channel for another command", "call again when another command has ended"},
	"exec_refused":           {"the resource's host runs no commands", "the operator looks at what the host allows"},
	"too_many_connections":   {"the Runner holds as many connections to resources as it may", "call again later"},
}

// connectFault tells why nothing was started on a resource (SSH-12). jump: a host on the way failed.
func connectFault(reason string, jump bool, cause error) *fault.Error {
	f := fault.Wrap(cause, fault.SSHConnectionFailed, "%s", connectTexts[reason][0]).WithReason(reason).WithNext("%s", connectTexts[reason][1])
	if jump {
		f = f.With("hop", "jump")
	}
	switch reason {
	case "connect_timeout", "unreachable", "channel_refused", "too_many_connections":
		f.Recovery = fault.RetrySame
	}
	return notStarted(f)
}

func notStarted(f *fault.Error) *fault.Error {
	f.ExecutionState = string(event.NotStarted)
	return f
}

// lost is the end of a command of which nothing is proven after it was sent (SSH-09). reason:
// start_not_confirmed where the host ended it without a word of its start, else empty.
func lost(reason string) *fault.Error {
	text := "the connection to the resource broke after the command was sent; it is not repeated"
	if reason != "" {
		text = "the resource's host did not confirm that the command began; it is not repeated"
	}
	f := fault.New(fault.SSHTransportFailed, "%s", text).WithReason(reason).
		WithNext("look at what the command changed there before deciding to run it again")
	f.ExecutionState, f.CommandStarted = string(event.OutcomeUnknown), true
	return f
}

// reasonOf is the word for a failed connection.
func reasonOf(err error, late bool) string {
	var k *keyError
	switch {
	case errors.As(err, &k):
		return k.reason
	case late:
		return "connect_timeout"
	}
	return handshakeReason(err)
}
