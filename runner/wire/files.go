package wire

import "webcodex/internal/relpath"

// Ops of the file domain. Paths in requests are project-relative with forward slashes; paths
// in answers are where the file really lies (symlinks inside the Project resolved). A name
// that is not UTF-8 is percent-escaped and its entry says name_lossy (shapes.md 2).
const (
	// OpReadFiles reads line ranges of up to MaxReadItems files.
	OpReadFiles Op = "read_files"
	// OpListFiles lists one directory.
	OpListFiles Op = "list_files"
	// OpOverview looks at the shape of a Project.
	OpOverview Op = "overview"
	// OpSearchTexts answers up to MaxSearchQueries searches.
	OpSearchTexts Op = "search_texts"
	// OpSearchFile searches one file.
	OpSearchFile Op = "search_file"
	// OpPreviewEdit tells what OpEditFiles would do, and does nothing.
	OpPreviewEdit Op = "preview_edit"
	// OpEditFiles changes up to MaxChanges files, all or none.
	OpEditFiles Op = "edit_files"
	// OpWriteFile writes one whole file.
	OpWriteFile Op = "write_file"
	// OpDeleteFiles removes up to MaxDeletePaths files, all or none.
	OpDeleteFiles Op = "delete_files"
)

// Bounds of the file ops. Schemas show them, commands and Runner check them (AUTH-19).
const (
	// MaxFilePath is the bytes of one path (PATH_MAX without its NUL) and MaxFileName of one name.
	MaxFilePath = relpath.MaxBytes
	MaxFileName = relpath.MaxName

	// MaxReadItems files a call, MaxReadLines lines of each.
	MaxReadItems = 8
	MaxReadLines = 2000
	// MaxResultChars is what one answer may show of file contents (tools.md).
	MaxResultChars = 40_000

	// ListFilesLimit and MaxListFiles are the entries of one listing.
	ListFilesLimit = 200
	MaxListFiles   = 1000

	// Overview depth and entries.
	OverviewDepth    = 2
	MaxOverviewDepth = 4
	OverviewLimit    = 200
	MinOverviewLimit = 20
	MaxOverviewLimit = 500

	// MaxSearchQueries a call, MaxPatternChars of one pattern, MaxSearchContext lines on each
	// side, MaxGlobs of MaxGlobChars each.
	MaxSearchQueries = 8
	MaxPatternChars  = 1000
	MaxSearchContext = 20
	MaxGlobs         = 32
	MaxGlobChars     = 256
	// SearchLimit and MaxSearchLimit are matches (or files) of one query.
	SearchLimit    = 50
	MaxSearchLimit = 200
	// SearchTimeoutSecs and MaxSearchTimeoutSecs of one query, and of a call.
	SearchTimeoutSecs    = 30
	MaxSearchTimeoutSecs = 120
	// FileContext is the default number of lines around a match of one file.
	FileContext = 5

	// MaxChanges files a call, MaxEdits of one file (EVT-26 holds 32 paths for it).
	MaxChanges = 16
	MaxEdits   = 20
	// MaxEditText is the bytes of one old_text, new_text or content of an edit.
	MaxEditText = 512 << 10
	// MaxOccurrence is the highest occurrence that can be named; matches beyond are not counted.
	MaxOccurrence = 1000
	// MaxWriteBytes is the content of one write.
	MaxWriteBytes = 256 << 10
	// MaxPrefixChars of expected_content_prefix.
	MaxPrefixChars = 4096
	// MaxDeletePaths a call.
	MaxDeletePaths = 64
)

// ReadFilesIn names the files and ranges.
type ReadFilesIn struct {
	Items       []ReadItem `json:"items"`
	LineNumbers bool       `json:"line_numbers,omitempty"`
}

// ReadItem is one range: Limit lines from StartLine (from 1).
type ReadItem struct {
	Path      string `json:"path"`
	StartLine int    `json:"start_line"`
	Limit     int    `json:"limit"`
}

// ReadFilesOut answers per item.
type ReadFilesOut struct {
	Items     []ReadFile `json:"items"`
	Returned  int        `json:"returned"` // items with success
	Truncated bool       `json:"truncated"`
}

// Line endings of a file.
const (
	EOLLF    = "lf"
	EOLCRLF  = "crlf"
	EOLMixed = "mixed"
)

// ReadFile is one file range. Text has LF line ends whatever EOL says; SHA256 and Bytes are of
// the whole file as it lies on the disk.
type ReadFile struct {
	Index         int    `json:"index"`
	Path          string `json:"path"`
	Success       bool   `json:"success"`
	Text          string `json:"text"`
	StartLine     int    `json:"start_line"`
	EndLine       int    `json:"end_line"` // start_line - 1 where no line was returned
	TotalLines    int    `json:"total_lines"`
	NextStartLine *int   `json:"next_start_line"`
	// LineTruncated: the last line shown is longer than an answer; its rest cannot be read.
	LineTruncated bool   `json:"line_truncated,omitempty"`
	SHA256        string `json:"sha256,omitempty"`
	Bytes         int64  `json:"bytes"`
	EOL           string `json:"eol,omitempty"`
	Binary        bool   `json:"binary"`
	Truncated     bool   `json:"truncated"` // the range did not fit, or a line was cut
	// InvalidUTF8 tells that bytes which are not UTF-8 are shown as U+FFFD.
	InvalidUTF8 bool   `json:"invalid_utf8,omitempty"`
	ErrorKind   string `json:"error_kind,omitempty"`
	Reason      string `json:"reason_code,omitempty"`
	Error       string `json:"error,omitempty"`
}

// ListFilesIn names a directory; empty: the root.
type ListFilesIn struct {
	Path  string `json:"path,omitempty"`
	Limit int    `json:"limit"`
}

// ListFilesOut lists directories first, then the rest, each by name bytes.
type ListFilesOut struct {
	Path          string     `json:"path"` // "." for the root
	Entries       []DirEntry `json:"entries"`
	Total         int        `json:"total"`
	TotalComplete bool       `json:"total_complete"` // false where the directory has more than was looked at
	Returned      int        `json:"returned"`
	Truncated     bool       `json:"truncated"`
}

// Kinds of directory entries.
const (
	EntryFile    = "file"
	EntryDir     = "dir"
	EntrySymlink = "symlink"
	EntryOther   = "other" // FIFO, socket, device
)

// DirEntry is one name.
type DirEntry struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`
	Bytes *int64 `json:"bytes,omitempty"` // of a file
	Lossy bool   `json:"name_lossy,omitempty"`
}

// OverviewIn bounds the look.
type OverviewIn struct {
	Path     string `json:"path,omitempty"`
	MaxDepth int    `json:"max_depth"`
	Limit    int    `json:"limit"`
}

// OverviewOut is the shape of a Project: facts about names, no file content.
type OverviewOut struct {
	SchemaVersion int            `json:"schema_version"`
	Path          string         `json:"path"`
	ProjectTypes  []string       `json:"project_types"`
	Manifests     []NamedFile    `json:"manifests"`
	KeyFiles      []NamedFile    `json:"key_files"`
	Roots         OverviewRoots  `json:"roots"`
	TopLevel      []DirEntry     `json:"top_level"`
	Directories   []DirSummary   `json:"directories"`
	Suggested     []SuggestRead  `json:"suggested_next_reads"`
	Scan          OverviewScan   `json:"scan"`
	Warnings      []string       `json:"warnings"`
	Languages     map[string]int `json:"languages"` // files seen by language
}

// NamedFile is a file of a known role.
type NamedFile struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

// OverviewRoots are directories of a known role.
type OverviewRoots struct {
	Source []string `json:"source"`
	Tests  []string `json:"tests"`
	Docs   []string `json:"docs"`
}

// DirSummary counts the direct entries of a directory.
type DirSummary struct {
	Path    string `json:"path"`
	Files   int    `json:"files"`
	Dirs    int    `json:"dirs"`
	Skipped bool   `json:"skipped,omitempty"` // not looked into: dependencies, build output
}

// SuggestRead is a file worth reading first.
type SuggestRead struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// OverviewScan tells how much was looked at.
type OverviewScan struct {
	MaxDepth  int  `json:"max_depth"`
	Limit     int  `json:"limit"`
	Entries   int  `json:"entries"`
	Truncated bool `json:"truncated"`
}

// Result modes of a search.
const (
	ModeMatches = "matches"
	ModeFiles   = "files_with_matches"
	ModeCount   = "count"
)

// Search backends.
const (
	BackendRipgrep = "rg"     // ripgrep chose the files, the built-in engine the matches
	BackendNative  = "native" // the built-in engine alone
)

// Reasons why a search gave less than there is.
const (
	TruncatedLimit   = "limit"
	TruncatedBytes   = "output_bytes"
	TruncatedTimeout = "timeout"
	TruncatedEntries = "entries" // more files than are looked at
	TruncatedSize    = "file_size"
)

// SearchTextsIn holds the queries. They share the longest of their limits, and each has its own.
type SearchTextsIn struct {
	Queries []SearchQuery `json:"queries"`
}

// SearchQuery is one search: a Go regular expression applied line by line.
type SearchQuery struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"` // file or directory; empty: the root
	// Include and Exclude are globs: without a slash they match a file's name, with one its
	// path; ** matches any number of directories.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	Before  int      `json:"before,omitempty"`
	After   int      `json:"after,omitempty"`
	Limit   int      `json:"limit"`
	Mode    string   `json:"mode"`
	// TimeoutSecs after which it tells what it found so far; 0: SearchTimeoutSecs.
	TimeoutSecs int `json:"timeout_secs"`
}

// SearchTextsOut answers per query.
type SearchTextsOut struct {
	Items []SearchResult `json:"items"`
}

// SearchResult is the answer to one query, ordered by path bytes, then line.
type SearchResult struct {
	Index   int           `json:"index"`
	Success bool          `json:"success"`
	Matches []SearchMatch `json:"matches"`
	Files   []SearchFile  `json:"files,omitempty"` // modes files_with_matches and count
	// Count is matching lines (files in mode files_with_matches); complete tells that there
	// are no more.
	Count            int    `json:"count"`
	CountComplete    bool   `json:"count_complete"`
	Truncated        bool   `json:"truncated"`
	TruncationReason string `json:"truncation_reason,omitempty"`
	Backend          string `json:"backend"`
	ErrorKind        string `json:"error_kind,omitempty"`
	Reason           string `json:"reason_code,omitempty"`
	Error            string `json:"error,omitempty"`
}

// SearchMatch is one matching line. Texts are cut to a bounded length around the match.
type SearchMatch struct {
	Path    string   `json:"path"`
	Line    int      `json:"line"`
	Preview string   `json:"preview"`
	Before  []string `json:"context_before"`
	After   []string `json:"context_after"`
	Lossy   bool     `json:"name_lossy,omitempty"`
}

// SearchFile is a file with matches.
type SearchFile struct {
	Path  string `json:"path"`
	Count int    `json:"count,omitempty"` // matching lines, mode count
	Lossy bool   `json:"name_lossy,omitempty"`
}

// SearchFileIn searches one file.
type SearchFileIn struct {
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
	Before  int    `json:"before"`
	After   int    `json:"after"`
	Limit   int    `json:"limit"`
}

// SearchFileOut has the matches of one file. Contexts of neighbouring matches do not repeat
// lines: each line is shown once.
type SearchFileOut struct {
	Path             string      `json:"path"`
	SHA256           string      `json:"sha256"`
	Bytes            int64       `json:"bytes"`
	TotalLines       int         `json:"total_lines"`
	EOL              string      `json:"eol"`
	Matches          []FileMatch `json:"matches"`
	Count            int         `json:"count"` // matching lines in the whole file
	CountComplete    bool        `json:"count_complete"`
	Truncated        bool        `json:"truncated"`
	TruncationReason string      `json:"truncation_reason,omitempty"`
}

// FileMatch is one matching line with its surroundings.
type FileMatch struct {
	Line    int      `json:"line"`
	Preview string   `json:"preview"`
	Before  []string `json:"context_before"`
	After   []string `json:"context_after"`
}

// Kinds of a Change.
const (
	ChangeEdit   = "edit"
	ChangeCreate = "create"
	ChangeDelete = "delete"
	ChangeRename = "rename"
)

// Kinds of a TextEdit.
const (
	ReplaceExact = "replace_exact"
	DeleteExact  = "delete_exact"
	InsertBefore = "insert_before"
	InsertAfter  = "insert_after"
)

// EditFilesIn is one transaction.
type EditFilesIn struct {
	Changes []Change `json:"changes"`
}

// Change is one file's change; which members are used depends on the kind.
type Change struct {
	Kind           string     `json:"kind"`
	Path           string     `json:"path"`
	ToPath         string     `json:"to_path,omitempty"`         // rename
	ExpectedSHA256 string     `json:"expected_sha256,omitempty"` // edit may, delete and rename must
	Edits          []TextEdit `json:"edits,omitempty"`           // edit
	Content        *string    `json:"content,omitempty"`         // create
}

// TextEdit finds OldText in the file as it was before the call.
type TextEdit struct {
	Kind       string  `json:"kind"`
	OldText    string  `json:"old_text"`
	NewText    *string `json:"new_text,omitempty"`   // all but delete_exact
	Occurrence *int    `json:"occurrence,omitempty"` // from 1; absent: there must be exactly one match
}

// EditFilesOut tells what was changed; of a preview, what would be.
type EditFilesOut struct {
	DryRun       bool          `json:"dry_run"`
	Changed      bool          `json:"changed"`
	WouldChange  *bool         `json:"would_change,omitempty"` // of a preview
	AppliedCount int           `json:"applied_count"`
	Files        []ChangedFile `json:"files"`
	ChangedPaths []string      `json:"changed_paths"`
}

// ChangedFile is one file of a transaction.
type ChangedFile struct {
	Path         string `json:"path"`
	ToPath       string `json:"to_path,omitempty"`
	Kind         string `json:"kind"`
	SHA256Before string `json:"sha256_before,omitempty"`
	SHA256After  string `json:"sha256_after,omitempty"`
	Bytes        int64  `json:"bytes"`
}

// Kinds of an EditConflict (ERG-11).
const (
	MultipleMatches      = "multiple_matches"
	MatchNotFound        = "match_not_found"
	OccurrenceOutOfRange = "occurrence_out_of_range"
	OverlappingEdits     = "overlapping_edits"
	SHA256Mismatch       = "sha256_mismatch"
)

// EditConflict is why a transaction was not made. It is listed in the fault's member
// "conflicts"; nothing was changed.
type EditConflict struct {
	Change       int    `json:"change"`
	Edit         *int   `json:"edit,omitempty"`
	Path         string `json:"path"`
	Kind         string `json:"conflict_kind"`
	Matches      *int   `json:"matches,omitempty"`
	ActualSHA256 string `json:"actual_sha256,omitempty"`
}

// WriteFileIn writes a whole file. An existing one needs Overwrite and one of the two
// expectations.
type WriteFileIn struct {
	Path           string  `json:"path"`
	Content        string  `json:"content"`
	Overwrite      bool    `json:"overwrite,omitempty"`
	ExpectedSHA256 string  `json:"expected_sha256,omitempty"`
	ExpectedPrefix *string `json:"expected_prefix,omitempty"`
}

// WriteFileOut tells what was written.
type WriteFileOut struct {
	Path         string `json:"path"`
	Created      bool   `json:"created"`
	Overwritten  bool   `json:"overwritten"`
	Changed      bool   `json:"changed"`
	BytesWritten int64  `json:"bytes_written"`
	SHA256       string `json:"sha256"`
	SHA256Before string `json:"sha256_before,omitempty"`
}

// DeleteFilesIn names the files.
type DeleteFilesIn struct {
	Paths []string `json:"paths"`
}

// DeleteFilesOut tells what is gone and what was not there.
type DeleteFilesOut struct {
	Deleted []string `json:"deleted_paths"`
	Missing []string `json:"missing_paths"`
}

func init() {
	addOp[ReadFilesIn, ReadFilesOut](OpReadFiles, false)
	addOp[ListFilesIn, ListFilesOut](OpListFiles, false)
	addOp[OverviewIn, OverviewOut](OpOverview, false)
	addOp[SearchTextsIn, SearchTextsOut](OpSearchTexts, false)
	addOp[SearchFileIn, SearchFileOut](OpSearchFile, false)
	addOp[EditFilesIn, EditFilesOut](OpPreviewEdit, false)
	addOp[EditFilesIn, EditFilesOut](OpEditFiles, true)
	addOp[WriteFileIn, WriteFileOut](OpWriteFile, true)
	addOp[DeleteFilesIn, DeleteFilesOut](OpDeleteFiles, true)
}
