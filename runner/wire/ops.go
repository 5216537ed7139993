package wire

import "reflect"

// OpInfo describes one op: its types and whether it has effects. Ops with effects go through
// offer, claim and grant and are journaled; the others are plain requests.
type OpInfo struct {
	In, Out reflect.Type
	Effect  bool
}

// Ops is the closed set. Each domain file adds its own in init; an op not in it is refused.
var Ops = map[Op]OpInfo{
	OpProcess:     {reflect.TypeFor[ProcessIn](), reflect.TypeFor[ProcessOutcome](), true},
	OpScript:      {reflect.TypeFor[ProcessIn](), reflect.TypeFor[ProcessOutcome](), true},
	OpShell:       {reflect.TypeFor[ProcessIn](), reflect.TypeFor[ProcessOutcome](), true},
	OpDetached:    {reflect.TypeFor[ProcessIn](), reflect.TypeFor[ProcessOutcome](), true},
	OpSSHShell:    {reflect.TypeFor[SSHShellIn](), reflect.TypeFor[ProcessOutcome](), true},
	OpObserveJobs: {reflect.TypeFor[ObserveJobsIn](), reflect.TypeFor[ObserveJobsOut](), false},
}

// ChangesFiles reports an op whose effect is a change of files. Where nobody can tell how it
// ended, it is taken to have changed them.
func (op Op) ChangesFiles() bool {
	info, known := Ops[op]
	return known && info.Effect && info.Out != reflect.TypeFor[ProcessOutcome]() && !op.OfShell()
}

func addOp[In, Out any](op Op, effect bool) {
	if _, twice := Ops[op]; twice {
		panic("op declared twice: " + string(op))
	}
	Ops[op] = OpInfo{reflect.TypeFor[In](), reflect.TypeFor[Out](), effect}
}
