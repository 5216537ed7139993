package wire

// Ops of the git domain. All but OpRestorePaths are pure reads. Paths in the answers are
// project-relative with forward slashes; one that is not UTF-8 is percent-escaped and its
// entry says name_lossy (shapes.md 2).
const (
	// OpObserveWorkspace is what work_on_project shows of the working tree.
	OpObserveWorkspace Op = "observe_workspace"
	// OpObserveNavigation is what work_on_project shows of semantic navigation. A Runner without
	// language servers does not offer it.
	OpObserveNavigation Op = "observe_navigation"
	// OpTrackedFiles lists the index.
	OpTrackedFiles Op = "tracked_files"
	// OpGitStatus lists changed and untracked files.
	OpGitStatus Op = "git_status"
	// OpGitDiff is a page of unified diff text.
	OpGitDiff Op = "git_diff"
	// OpGitDiffHunks is a page of diff hunks.
	OpGitDiffHunks Op = "git_diff_hunks"
	// OpGitLog lists commits from HEAD.
	OpGitLog Op = "git_log"
	// OpWorkspaceChanges is status, statistics and, on request, hunks and previews in one.
	OpWorkspaceChanges Op = "workspace_changes"
	// OpRestorePaths puts tracked files back to their staged content.
	OpRestorePaths Op = "restore_paths"
)

// Workspace statuses of ObserveWorkspaceOut.
const (
	WorkspaceClean       = "clean"
	WorkspaceDirty       = "dirty"
	WorkspaceBlocked     = "blocked" // merge conflicts
	WorkspaceUnavailable = "unavailable"
)

// ObserveWorkspaceIn asks for the bootstrap observation.
type ObserveWorkspaceIn struct {
	// Instructions also looks for instruction files (AGENTS.md, CLAUDE.md) in the root.
	Instructions bool `json:"instructions"`
	// Text also gives the beginning of what those files say; Only leaves the working tree out.
	Text bool `json:"text,omitempty"`
	Only bool `json:"only,omitempty"`
	// Tree also asks for the identity of the files (event.Binding.Tree).
	Tree bool `json:"tree,omitempty"`
}

// ObserveWorkspaceOut never is a fault for want of git: status says unavailable and Reason why.
type ObserveWorkspaceOut struct {
	Status   string `json:"status"`
	Reason   string `json:"reason_code,omitempty"` // of unavailable: not_a_repository, dubious_ownership, …
	Branch   string `json:"branch,omitempty"`      // empty when detached
	Head     string `json:"head,omitempty"`        // full id, empty before the first commit
	Detached bool   `json:"detached"`
	// Conflicts holds up to 20 conflicted paths; ConflictCount is exact.
	Conflicts     []string `json:"conflicts"`
	ConflictCount int      `json:"conflict_count"`
	// ChangedFiles counts changed, conflicted and untracked files.
	ChangedFiles    int  `json:"changed_files"`
	FiltersDisabled bool `json:"filters_disabled,omitempty"`
	// Tree is the identity of the files, empty with TreeReason where there is none or it was not
	// asked for.
	Tree       string `json:"tree_hash,omitempty"`
	TreeReason string `json:"tree_reason,omitempty"`
	// Instructions is set when asked for.
	Instructions *InstructionSources `json:"instructions,omitempty"`
}

// InstructionSources names the instruction files of a Project that were looked for, there or
// not; their text is there only where it was asked for (STA-14, CTX-15).
type InstructionSources struct {
	Sources []InstructionSource `json:"sources"`
}

// InstructionSource is one instruction file as it is now.
type InstructionSource struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"` // of the whole file; empty unless it could be read
	Bytes  int64  `json:"bytes"`
	Status string `json:"status"`
	// Text is the beginning of a file that was loaded, at most MaxInstructionText bytes of valid
	// UTF-8; Cut tells that there is more.
	Text string `json:"text,omitempty"`
	Cut  bool   `json:"cut,omitempty"`
}

// MaxInstructionText is the bytes of one instruction file that an observation carries.
const MaxInstructionText = 16 << 10

// Statuses of an InstructionSource. All but the first two say why it cannot be read.
const (
	SourceLoaded     = "loaded"
	SourceNotFound   = "not_found"
	SourceTooLarge   = "too_large"
	SourceNotRegular = "not_regular"
	SourceUnreadable = "unreadable"
	SourceOutside    = "outside_project" // a symbolic link leads out
)

// ObserveNavigationOut tells whether a language server is ready for the Project.
type ObserveNavigationOut struct {
	Available bool   `json:"available"`
	Reason    string `json:"reason_code,omitempty"` // of not available
}

// TrackedFilesIn selects index entries.
type TrackedFilesIn struct {
	Path  string   `json:"path,omitempty"`  // directory or file; empty: all
	Globs []string `json:"globs,omitempty"` // ≤ 20 of ≤ 256 characters; any match selects
	// Depth folds deeper files into one directory entry each; 0: no folding.
	Depth  int `json:"depth,omitempty"`
	Offset int `json:"offset,omitempty"`
	Limit  int `json:"limit"`
}

// TrackedFilesOut is one page, ordered by path bytes.
type TrackedFilesOut struct {
	Entries      []TrackedEntry `json:"entries"`
	TotalFiles   int            `json:"total_files"`   // selected files, folded or not
	TotalEntries int            `json:"total_entries"` // after folding
	Returned     int            `json:"returned"`
	Truncated    bool           `json:"truncated"`
	NextOffset   *int           `json:"next_offset"`
}

// TrackedEntry is a tracked file or a folded directory.
type TrackedEntry struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`            // file, symlink, submodule, dir
	Files int    `json:"files,omitempty"` // of a dir
	Lossy bool   `json:"name_lossy,omitempty"`
}

// GitHead is where a repository stands.
type GitHead struct {
	Branch   string `json:"branch,omitempty"`
	Head     string `json:"head,omitempty"`
	Detached bool   `json:"detached"`
	Unborn   bool   `json:"unborn"` // no commit yet
	Upstream string `json:"upstream,omitempty"`
	Ahead    *int   `json:"ahead,omitempty"`
	Behind   *int   `json:"behind,omitempty"`
	// Operation in progress: merge, rebase, cherry_pick, revert, bisect; empty: none.
	Operation string `json:"operation,omitempty"`
}

// GitCounts are exact, whatever the page holds. A file may count as staged and unstaged.
type GitCounts struct {
	Staged     int `json:"staged"`
	Unstaged   int `json:"unstaged"`
	Untracked  int `json:"untracked"`
	Conflicted int `json:"conflicted"`
	Total      int `json:"total"` // files
}

// GitStatusIn pages through status entries.
type GitStatusIn struct {
	Offset int `json:"offset,omitempty"`
	Limit  int `json:"limit"`
}

// GitStatusOut is one page, in git's order.
type GitStatusOut struct {
	GitHead
	Clean           bool             `json:"clean"`
	Counts          GitCounts        `json:"counts"`
	Files           []GitStatusEntry `json:"files"`
	Returned        int              `json:"returned"`
	Truncated       bool             `json:"truncated"`
	NextOffset      *int             `json:"next_offset"`
	FiltersDisabled bool             `json:"filters_disabled"`
}

// GitStatusEntry is one changed, conflicted or untracked file.
type GitStatusEntry struct {
	Path     string `json:"path"`
	OrigPath string `json:"orig_path,omitempty"`
	// Staged and Unstaged are added, modified, deleted, renamed, copied, type_changed or empty.
	Staged     string `json:"staged,omitempty"`
	Unstaged   string `json:"unstaged,omitempty"`
	Untracked  bool   `json:"untracked,omitempty"`
	Conflicted bool   `json:"conflicted,omitempty"`
	Lossy      bool   `json:"name_lossy,omitempty"`
	// Additions and Deletions are lines against HEAD, where asked for (OpWorkspaceChanges).
	Additions *int `json:"additions,omitempty"`
	Deletions *int `json:"deletions,omitempty"`
}

// DiffScope says which two states are compared. Zero: working tree against index.
type DiffScope struct {
	Paths  []string `json:"paths,omitempty"`  // ≤ 64; empty: all
	Cached bool     `json:"cached,omitempty"` // index against HEAD
	// Base and Head are 40 or 64 hex digits, given together and not with Cached.
	Base string `json:"base_commit,omitempty"`
	Head string `json:"head_commit,omitempty"`
}

// GitDiffIn asks for a page of diff text.
type GitDiffIn struct {
	DiffScope
	Continuation string `json:"continuation,omitempty"`
}

// GitDiffOut is one page of unified diff, cut at a line end.
type GitDiffOut struct {
	Scope            string     `json:"scope"` // working_tree, staged, committed
	Diff             string     `json:"diff"`
	Files            []DiffFile `json:"files"` // first page only, ≤ 200
	FileCount        int        `json:"file_count"`
	Truncated        bool       `json:"truncated"`
	NextContinuation string     `json:"next_continuation,omitempty"`
	FiltersDisabled  bool       `json:"filters_disabled"`
}

// DiffFile is one file of a diff with its line counts.
type DiffFile struct {
	Path      string `json:"path"`
	OrigPath  string `json:"orig_path,omitempty"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Binary    bool   `json:"binary,omitempty"`
	Lossy     bool   `json:"name_lossy,omitempty"`
}

// DiffHunksIn asks for a page of hunks.
type DiffHunksIn struct {
	DiffScope
	MaxHunks     int    `json:"max_hunks"`
	MaxHunkLines int    `json:"max_hunk_lines"`
	Continuation string `json:"continuation,omitempty"`
}

// DiffHunksOut is one page of hunks, grouped by file.
type DiffHunksOut struct {
	Scope     string      `json:"scope"`
	Files     []HunksFile `json:"files"`
	HunkCount int         `json:"hunk_count"` // in this page
	Truncated bool        `json:"truncated"`
	// Reasons of truncation: max_hunks, max_hunk_lines, output_budget, diff_too_large.
	Reasons          []string `json:"truncation_reasons"`
	HasMore          bool     `json:"has_more"`
	NextContinuation string   `json:"next_continuation,omitempty"`
	FiltersDisabled  bool     `json:"filters_disabled"`
}

// HunksFile holds the hunks of one file within a page.
type HunksFile struct {
	Path     string `json:"path"`
	OrigPath string `json:"orig_path,omitempty"`
	Change   string `json:"change"` // added, modified, deleted, renamed, copied, type_changed
	Binary   bool   `json:"binary,omitempty"`
	Lossy    bool   `json:"name_lossy,omitempty"`
	Hunks    []Hunk `json:"hunks"`
}

// Hunk is one hunk; Text holds its lines with their + - and space marks.
type Hunk struct {
	OldStart  int    `json:"old_start"`
	OldLines  int    `json:"old_lines"`
	NewStart  int    `json:"new_start"`
	NewLines  int    `json:"new_lines"`
	Section   string `json:"section,omitempty"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
}

// GitLogIn pages through history.
type GitLogIn struct {
	Limit int `json:"limit"`
	Skip  int `json:"skip,omitempty"`
}

// GitLogOut is newest first.
type GitLogOut struct {
	Commits   []GitCommit `json:"commits"`
	Count     int         `json:"count"`
	Truncated bool        `json:"truncated"`
	NextSkip  *int        `json:"next_skip"`
}

// GitCommit is one commit; Author and Subject are bounded and untrusted text.
type GitCommit struct {
	Commit      string   `json:"commit"`
	Parents     []string `json:"parents"`
	Author      string   `json:"author"`
	AuthoredAt  string   `json:"authored_at"`
	CommittedAt string   `json:"committed_at"`
	Subject     string   `json:"subject"`
}

// WorkspaceChangesIn selects what read_workspace_changes adds to the status.
type WorkspaceChangesIn struct {
	IncludeDiff  bool `json:"include_diff,omitempty"`
	MaxHunks     int  `json:"max_hunks,omitempty"`
	MaxHunkLines int  `json:"max_hunk_lines,omitempty"`
}

// WorkspaceChangesOut is everything uncommitted, against HEAD.
type WorkspaceChangesOut struct {
	GitHead
	Clean     bool             `json:"clean"`
	Counts    GitCounts        `json:"counts"`
	Files     []GitStatusEntry `json:"files"` // ≤ 200
	Total     int              `json:"files_total"`
	Returned  int              `json:"files_returned"`
	Truncated bool             `json:"files_truncated"`
	DiffStat  DiffStat         `json:"diff_stat"`
	// Diff and Previews are set when asked for.
	Diff            *DiffHunksOut      `json:"diff,omitempty"`
	Previews        []UntrackedPreview `json:"untracked_previews,omitempty"` // ≤ 5
	FiltersDisabled bool               `json:"filters_disabled"`
}

// DiffStat counts lines of tracked files against HEAD.
type DiffStat struct {
	Files     int `json:"files"`
	Additions int `json:"additions"`
	Deletions int `json:"deletions"`
}

// UntrackedPreview is the head of one untracked text file.
type UntrackedPreview struct {
	Path      string `json:"path"`
	Bytes     int64  `json:"bytes"`
	Text      string `json:"text,omitempty"`
	Binary    bool   `json:"binary,omitempty"`
	Truncated bool   `json:"truncated"`
}

// RestorePathsIn names tracked files; their working tree content is replaced by the staged one.
type RestorePathsIn struct {
	Paths []string `json:"paths"` // 1 to 32
}

// RestorePathsOut names the files whose content changed; the others were as staged already.
type RestorePathsOut struct {
	Restored        []string `json:"restored_paths"`
	Unchanged       []string `json:"unchanged_paths"`
	FiltersDisabled bool     `json:"filters_disabled"`
}

func init() {
	addOp[ObserveWorkspaceIn, ObserveWorkspaceOut](OpObserveWorkspace, false)
	addOp[TrackedFilesIn, TrackedFilesOut](OpTrackedFiles, false)
	addOp[GitStatusIn, GitStatusOut](OpGitStatus, false)
	addOp[GitDiffIn, GitDiffOut](OpGitDiff, false)
	addOp[DiffHunksIn, DiffHunksOut](OpGitDiffHunks, false)
	addOp[GitLogIn, GitLogOut](OpGitLog, false)
	addOp[WorkspaceChangesIn, WorkspaceChangesOut](OpWorkspaceChanges, false)
	addOp[RestorePathsIn, RestorePathsOut](OpRestorePaths, true)
}
