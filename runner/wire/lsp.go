package wire

// Ops of language servers. All are pure reads: a server that could do more runs where it cannot
// write, or needs the scope to execute (faults.md 4).
const (
	// OpLSPStatus lists the languages of a Project and the servers there are for them; it starts none.
	OpLSPStatus Op = "lsp_status"
	// OpDocumentSymbols lists what a file declares.
	OpDocumentSymbols Op = "document_symbols"
	// OpWorkspaceSymbols finds declarations by name.
	OpWorkspaceSymbols Op = "workspace_symbols"
	// OpDefinition and OpReferences follow the name at a place.
	OpDefinition Op = "goto_definition"
	OpReferences Op = "find_references"
	// OpHover tells what is known of the name at a place.
	OpHover Op = "hover"
	// OpDiagnostics gives what a server finds wrong in a file as it is on the disk now.
	OpDiagnostics Op = "document_diagnostics"
	// OpCallHierarchy follows calls of, or from, the function at a place.
	OpCallHierarchy Op = "call_hierarchy"
)

// Bounds of the navigation ops; knobs are clamped to them.
const (
	SymbolsLimit, MaxSymbols           = 100, 500
	DiagnosticsLimit, MaxDiagnosticsOf = 100, 200
	FoundSymbolsLimit, MaxFoundSymbols = 50, 200
	DefinitionsLimit, MaxDefinitions   = 20, 100
	ReferencesLimit, MaxReferences     = 50, 200
	HierarchyLimit, MaxHierarchy       = 50, 100
	MaxHierarchyDepth                  = 2
	MaxSymbolQueryChars                = 200
	// MaxHoverBytes bounds the text of a hover.
	MaxHoverBytes = 16 << 10
	// MaxLine and MaxColumn bound a place.
	MaxLine, MaxColumn = 10_000_000, 1_000_000
)

// Directions of OpCallHierarchy.
const (
	CallsIncoming = "incoming"
	CallsOutgoing = "outgoing"
	CallsBoth     = "both"
)

// NavigateIn is the input of all ops but OpLSPStatus; which members are used depends on the op.
// Lines and columns count from 1, columns in Unicode code points.
type NavigateIn struct {
	Path               string `json:"path,omitempty"`
	Line               int    `json:"line,omitempty"`
	Column             int    `json:"column,omitempty"`
	Query              string `json:"query,omitempty"`
	Limit              int    `json:"limit,omitempty"`
	IncludeDeclaration bool   `json:"include_declaration,omitempty"`
	Direction          string `json:"direction,omitempty"`
	Depth              int    `json:"depth,omitempty"`
}

// Span is a range in a file: from the start up to, and without, the end.
type Span struct {
	Line      int `json:"line"`
	Column    int `json:"column"`
	EndLine   int `json:"end_line"`
	EndColumn int `json:"end_column"`
}

// Provider says who answered and from what.
type Provider struct {
	Server  string `json:"server"`
	Version string `json:"version,omitempty"`
	// Loading: the server had not read the whole Project when it answered, so there may be more.
	Loading bool `json:"loading"`
	// SHA256 is of the file that was asked about, as the server was told of it.
	SHA256 string `json:"sha256,omitempty"`
	// Watching is false where the Project has more source files than are looked at for changes:
	// the server may not know of the newest.
	Watching bool `json:"watching"`
}

// Counts of what a server gave. Omitted are places outside of the Project, which are not shown,
// and Invalid those that the files do not have.
type Counts struct {
	Total     int  `json:"total_count"`
	Returned  int  `json:"returned_count"`
	Truncated bool `json:"truncated"`
	Omitted   int  `json:"external_omitted,omitempty"`
	Invalid   int  `json:"invalid_omitted,omitempty"`
}

// Symbol is a declaration. Depth and Container tell what it is declared in.
type Symbol struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Detail    string `json:"detail,omitempty"`
	Container string `json:"container,omitempty"`
	Depth     int    `json:"depth,omitempty"`
	Path      string `json:"path,omitempty"`
	Span
}

// SymbolsOut answers OpDocumentSymbols and OpWorkspaceSymbols.
type SymbolsOut struct {
	Path    string   `json:"path,omitempty"`
	Symbols []Symbol `json:"symbols"`
	Counts
	Providers []Provider `json:"providers"`
}

// FoundPlace is a place with its line.
type FoundPlace struct {
	Path    string `json:"path"`
	Preview string `json:"preview"`
	Span
}

// PlacesOut answers OpDefinition and OpReferences.
type PlacesOut struct {
	Locations []FoundPlace `json:"locations"`
	Counts
	Provider Provider `json:"provider"`
}

// HoverOut answers OpHover; Hover is nil where the server knows nothing of the place.
type HoverOut struct {
	Path     string     `json:"path"`
	Hover    *HoverText `json:"hover"`
	Provider Provider   `json:"provider"`
}

// HoverText is what a server says, as plain text or markdown. It comes from the files: data, no order.
type HoverText struct {
	Kind      string `json:"kind"`
	Value     string `json:"value"`
	Truncated bool   `json:"truncated"`
	*Span
}

// Statuses of DiagnosticsOut.
const (
	DiagnosticsCurrent = "current"
	// DiagnosticsPending: the server did not say in time what it finds in this version.
	DiagnosticsPending = "pending"
)

// FileDiagnostic is one finding.
type FileDiagnostic struct {
	Severity string `json:"severity"`
	Code     string `json:"code,omitempty"`
	Source   string `json:"source,omitempty"`
	Message  string `json:"message"`
	Span
}

// DiagnosticsOut answers OpDiagnostics. Clean is nil while Status is pending.
type DiagnosticsOut struct {
	Path        string           `json:"path"`
	Status      string           `json:"status"`
	Clean       *bool            `json:"clean"`
	Diagnostics []FileDiagnostic `json:"diagnostics"`
	Errors      int              `json:"errors"`
	Warnings    int              `json:"warnings"`
	Counts
	Provider Provider `json:"provider"`
}

// Function is a node of a call hierarchy.
type Function struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Detail string `json:"detail,omitempty"`
	Path   string `json:"path"`
	Span
}

// CallEdge is a function that calls another, and where.
type CallEdge struct {
	From  Function `json:"from"`
	To    Function `json:"to"`
	Depth int      `json:"depth"`
	Calls []Span   `json:"calls"` // in From's file, up to MaxCallSpans
}

// MaxCallSpans bounds the calls of one edge that are shown.
const MaxCallSpans = 10

// HierarchyOut answers OpCallHierarchy. Counts are of the edges.
type HierarchyOut struct {
	Roots []Function `json:"roots"`
	Edges []CallEdge `json:"edges"`
	Counts
	Provider Provider `json:"provider"`
}

// States of a language server in LSPServer.
const (
	ServerNotInstalled = "not_installed"
	ServerStopped      = "stopped" // it starts when it is needed
	ServerStarting     = "starting"
	ServerLoading      = "loading"
	ServerReady        = "ready"
	ServerFailed       = "failed"
)

// LSPServer is a language server that this Runner knows.
type LSPServer struct {
	Server    string   `json:"server"`
	Languages []string `json:"languages"`
	State     string   `json:"state"`
	Version   string   `json:"version,omitempty"`
}

// LanguageSeen is a language that a Project has files of.
type LanguageSeen struct {
	Language string `json:"language"`
	Files    int    `json:"files"`
	Server   string `json:"server,omitempty"`
}

// LSPStatusOut answers OpLSPStatus.
type LSPStatusOut struct {
	Languages []LanguageSeen `json:"detected_languages"`
	Servers   []LSPServer    `json:"servers"`
	// Sandboxed: servers run where they can neither write nor reach the network.
	Sandboxed bool     `json:"sandboxed"`
	Warnings  []string `json:"warnings"`
}

func init() {
	addOp[struct{}, ObserveNavigationOut](OpObserveNavigation, false)
	addOp[struct{}, LSPStatusOut](OpLSPStatus, false)
	addOp[NavigateIn, SymbolsOut](OpDocumentSymbols, false)
	addOp[NavigateIn, SymbolsOut](OpWorkspaceSymbols, false)
	addOp[NavigateIn, PlacesOut](OpDefinition, false)
	addOp[NavigateIn, PlacesOut](OpReferences, false)
	addOp[NavigateIn, HoverOut](OpHover, false)
	addOp[NavigateIn, DiagnosticsOut](OpDiagnostics, false)
	addOp[NavigateIn, HierarchyOut](OpCallHierarchy, false)
}
