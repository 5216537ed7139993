package eventlog

// Promise is what an acknowledgement is worth here: no more than the power-cut tests have
// shown for this mode on this kind of file system (SES-47, faults.md 2.1).
type Promise struct {
	Mode Durability `json:"mode"`
	// Reason says why it is this mode, as Options.Reason has it.
	Reason string `json:"reason"`
	// Survives names the worst that acknowledged work outlives: power_loss or process_kill.
	Survives string `json:"acknowledged_work_survives"`
	// CutLoses says what a power cut could take, for people.
	CutLoses string `json:"power_cut_loses"`
	// FileSystem under the log, and whether the mode was tested on its kind.
	FileSystem string `json:"file_system"`
	Tested     bool   `json:"tested"`
}

// What acknowledged work survives.
const (
	SurvivesPowerLoss   = "power_loss"
	SurvivesProcessKill = "process_kill"
)

// testedOn are the file systems on which power was cut under every durable mode. One that
// does not flush the disk's cache is none of them, whatever its kind.
var testedOn = map[string]bool{"ext4": true, "xfs": true}

// Tested reports whether power was cut under every durable mode on this kind of file system.
func Tested(fileSystem string) bool { return testedOn[fileSystem] }

// promise judges a mode on a file system.
func promise(mode Durability, reason, fileSystem string) Promise {
	p := Promise{Mode: mode, Reason: reason, FileSystem: fileSystem, Tested: testedOn[fileSystem], Survives: SurvivesPowerLoss}
	switch {
	case mode == Process:
		p.Survives = SurvivesProcessKill
		p.CutLoses = "about the last two seconds of acknowledged work; killing the server loses none"
	case p.Tested:
		p.CutLoses = "nothing that was acknowledged, where the disk keeps what it confirmed"
	default:
		p.Survives = SurvivesProcessKill
		p.CutLoses = "not tested on " + fileSystem + ": nothing that was acknowledged, if the file system keeps what it confirmed"
	}
	return p
}
