package fault

// Kinds of persistent shells. Those of the open, but for a limit, mean that none was opened; those
// of an execute mean that the command did not begin, unless the execution state says otherwise.
const (
	ShellAlreadyOpen        Kind = "persistent_shell_already_open"        // SHL-02
	ShellLimitReached       Kind = "persistent_shell_limit_reached"       // SHL-19
	ShellNotFound           Kind = "persistent_shell_not_found"           // SHL-14; closed ones too (SHL-18)
	ShellStale              Kind = "persistent_shell_stale"               // what it was opened under has changed (SHL-16, SSH-16)
	ShellCwdDenied          Kind = "persistent_shell_cwd_denied"          // SHL-16
	ShellDialectUnsupported Kind = "persistent_shell_dialect_unsupported" // SHL-08
	ShellProfileUnavailable Kind = "persistent_shell_profile_unavailable" // SHL-10
	ShellSessionInactive    Kind = "persistent_shell_session_inactive"    // the Session was closed meanwhile (SHL-20)
	ShellBusy               Kind = "shell_busy"                           // SHL-21
	ShellResetRequired      Kind = "shell_reset_required"                 // SHL-26
	ShellProcessExited      Kind = "shell_process_exited"                 // SHL-31
)
