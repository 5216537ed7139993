package external

import "webcodex/projections/external"

// Bounds of the tools over reports.
const (
	// MaxTool is the characters of a tool's name (EXT-11).
	MaxTool = external.MaxTool
	// IDForm and ToolForm are of ids and of a tool's name (EXT-05, EXT-11).
	IDForm   = external.IDForm
	ToolForm = external.ToolForm
	// ListLimit and MaxListLimit are the reports of one list.
	ListLimit    = 20
	MaxListLimit = 100
	// MaxPageBytes bounds the reports of a list on their real JSON; there is always one.
	MaxPageBytes = external.MaxListBytes
)
