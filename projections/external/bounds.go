package external

import "regexp"

// Bounds of reports.
const (
	// MaxPerSession reports are kept about one Session, MaxReports in all. A report beyond them is
	// refused: none ever makes room for another one (EXT-09). They lie in memory.
	MaxPerSession = 256
	MaxReports    = 65_536
	// MaxTool is the characters of a tool's name (EXT-11).
	MaxTool = 64
	// ToolForm is that of a tool's name (EXT-11).
	ToolForm = `^[A-Za-z0-9_.:-]{1,64}$`
	// IDForm is that of an adapter's and of an event's id (EXT-05).
	IDForm = `^[0-9a-f]{64}$`
	// MaxListBytes bounds one page of a list on its real JSON.
	MaxListBytes = 32 << 10
)

var toolForm = regexp.MustCompile(ToolForm)
