package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
)

// Event is a stored fact. The set is closed: a fold that forgets one fails the linter.
//
//sumtype:decl
type Event interface{ isEvent() }

// stored maps stored names to types. Names are append-only: they outlive the program, a Go
// type may be renamed. A changed meaning is a new name. Each has a golden under testdata.
var stored = map[string]reflect.Type{
	"session.created":               reflect.TypeFor[SessionCreated](),
	"session.instruction_accepted":  reflect.TypeFor[InstructionAccepted](),
	"session.context_updated":       reflect.TypeFor[ContextUpdated](),
	"session.instructions_observed": reflect.TypeFor[InstructionsObserved](),
	"session.closed":                reflect.TypeFor[SessionClosed](),
	"session.tool_call_started":     reflect.TypeFor[ToolCallStarted](),
	"session.tool_call_finished":    reflect.TypeFor[ToolCallFinished](),
	"session.execution_finished":    reflect.TypeFor[ExecutionFinished](),
	"session.execution_reconciled":  reflect.TypeFor[ExecutionReconciled](),
	"project.registered":            reflect.TypeFor[ProjectRegistered](),
	"project.unregistered":          reflect.TypeFor[ProjectUnregistered](),
	"log.created":                   reflect.TypeFor[LogCreated](),
	"log.tail_lost":                 reflect.TypeFor[LogTailLost](),
	"log.pruned":                    reflect.TypeFor[LogPruned](),
	"session.ref_bound":             reflect.TypeFor[SessionRefBound](),
	"session.carried":               reflect.TypeFor[SessionCarried](),
	"project.carried":               reflect.TypeFor[ProjectCarried](),
	"access.ref_reserved":           reflect.TypeFor[RefReserved](),
	"access.ref_bound":              reflect.TypeFor[RefBound](),
	"access.token_created":          reflect.TypeFor[TokenCreated](),
	"access.token_rotated":          reflect.TypeFor[TokenRotated](),
	"access.token_revoked":          reflect.TypeFor[TokenRevoked](),
	"access.runner_invited":         reflect.TypeFor[RunnerInvited](),
	"access.runner_enrolled":        reflect.TypeFor[RunnerEnrolled](),
	"access.runner_reinvited":       reflect.TypeFor[RunnerReinvited](),
	"access.runner_revoked":         reflect.TypeFor[RunnerRevoked](),
	"log.restored":                  reflect.TypeFor[LogRestored](),
	"log.filled":                    reflect.TypeFor[LogFilled](),
	"log.clock_confirmed":           reflect.TypeFor[LogClockConfirmed](),
	"access.carried":                reflect.TypeFor[AccessCarried](),
	"retention.session_removed":     reflect.TypeFor[SessionRemoved](),
	"retention.tombstones_dropped":  reflect.TypeFor[TombstonesDropped](),
	"retention.renumbered":          reflect.TypeFor[TombstonesRenumbered](),
	"retention.carried":             reflect.TypeFor[RetentionCarried](),
	"session.message_posted":        reflect.TypeFor[MessagePosted](),
	"session.message_resolved":      reflect.TypeFor[MessageResolved](),
	"session.message_completed":     reflect.TypeFor[MessageCompleted](),
	"session.messages_acknowledged": reflect.TypeFor[MessagesAcknowledged](),
	"external.observation_recorded": reflect.TypeFor[ObservationRecorded](),
	"external.carried":              reflect.TypeFor[ExternalCarried](),
	"window.related":                reflect.TypeFor[WindowRelated](),
	"window.peer_discovered":        reflect.TypeFor[PeerDiscovered](),
	"window.peer_posted":            reflect.TypeFor[PeerPosted](),
	"window.peer_projected":         reflect.TypeFor[PeerProjected](),
	"window.peer_acknowledged":      reflect.TypeFor[PeerAcknowledged](),
	"window.carried":                reflect.TypeFor[WindowCarried](),
}

var nameOf = func() map[reflect.Type]string {
	m := make(map[reflect.Type]string, len(stored))
	for n, t := range stored {
		m[t] = n
	}
	return m
}()

// NameOf is the stored name of an event.
func NameOf(e Event) (string, bool) {
	n, ok := nameOf[reflect.TypeOf(e)]
	return n, ok
}

// Names lists every stored name, sorted.
func Names() []string {
	out := make([]string, 0, len(stored))
	for n := range stored {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// New gives a pointer to a zero event of a stored name, for goldens and documentation.
func New(name string) (any, bool) {
	t, ok := stored[name]
	if !ok {
		return nil, false
	}
	return reflect.New(t).Interface(), true
}

func decodeEvent(name string, data []byte) (Event, error) {
	t, ok := stored[name]
	if !ok {
		return nil, fmt.Errorf("unknown event type %q: the log was written by a newer program", name)
	}
	v := reflect.New(t)
	if err := json.Unmarshal(data, v.Interface()); err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return v.Elem().Interface().(Event), nil
}
