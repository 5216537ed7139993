package access

// Bounds of the jump that a counter of refs makes where another history begins (SES-11). They
// leave numbers for 500 restores, or for 20,000 unclean stops of durability process.
const (
	// restoredPages are skipped at least behind log.restored: 100,000 numbers, what the log that
	// the backup was taken from may have given one principal since then.
	restoredPages = 100
	// lostPages are skipped at least behind log.tail_lost: 10,000 numbers, what one principal may
	// have been given in the seconds that an unclean stop takes.
	lostPages = 10
	// restoredShare and lostShare are the part of what is left, 1 in so many, within which the
	// epoch picks the page.
	restoredShare = 64
	lostShare     = 4096
)
