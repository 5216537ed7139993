package proc

import "time"

// glance is one look at what runs in the foreground of a terminal.
type glance struct {
	at     time.Time
	group  int           // the foreground process group; 0: none was seen
	asleep bool          // every thread of it sleeps
	reads  bool          // one of them waits for the terminal
	hidden bool          // of one it cannot be seen what it waits for
	taken  bool          // the terminal's canonical mode or its echo is not as it was at first
	cpu    time.Duration // that its threads have used
	output int64         // bytes that came from the terminal
	typed  int           // how often something was typed on it
}

// asks reports that a glance fits a program that waits for input. What a terminal's modes tell
// counts only where the kernel does not say what a thread waits for: a program may change them and
// compute.
func (g glance) asks() bool {
	return g.group != 0 && g.asleep && (g.reads || g.hidden && g.taken)
}

// waits tells from two glances whether the foreground of a terminal waits for input: in both it
// asks, and between them it did nothing. A program that wakes up now and then, to draw a clock or
// so, uses less than idleShare of the time.
func waits(before, after glance) bool {
	if !before.asks() || !after.asks() || before.group != after.group || before.output != after.output || before.typed != after.typed {
		return false
	}
	used, passed := after.cpu-before.cpu, after.at.Sub(before.at)
	return used >= 0 && used <= passed/idleShare
}
