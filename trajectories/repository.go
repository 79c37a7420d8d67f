package trajectories

// Scrub is the result of removing everything but HEAD, its history and the index from
// a repository. OK is set if the counts StrayCommits, StrayObjects, StrayRefs and
// Remotes are 0.
type Scrub struct {
	OK   bool   `json:"ok"`
	Head string `json:"head,omitempty"`
	// Method is how objects were removed: "none" if there were none to remove,
	// "loose" if loose objects were deleted, "repacked" if packs were rewritten.
	Method         string `json:"method,omitempty"`
	RefsRemoved    int    `json:"refs_removed"`
	ObjectsRemoved int    `json:"objects_removed"`
	// Objects, Commits and Tags count what is left, StrayCommits the commits that are
	// neither HEAD nor an ancestor of HEAD.
	Objects      int `json:"objects"`
	Commits      int `json:"commits"`
	Tags         int `json:"tags"`
	StrayCommits int `json:"stray_commits"`
	// StrayObjects counts other objects that belong neither to HEAD and its ancestors
	// nor to their tags or the index; StrayRefs the refs other than HEAD's branch and
	// those tags.
	StrayObjects int     `json:"stray_objects"`
	StrayRefs    int     `json:"stray_refs"`
	Remotes      int     `json:"remotes"`              // remotes that are left
	Submodules   int     `json:"submodules,omitempty"` // submodule repositories, which are not scrubbed
	Duration     Seconds `json:"duration"`
	// Prepared is set if the image was scrubbed once for all attempts and its git
	// directory has not changed since. ImageWait is how long the start of the sandbox
	// waited for that scrub.
	Prepared  bool    `json:"prepared,omitempty"`
	ImageWait Seconds `json:"image_wait,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// StartState is the state of the user's repository before the agent changed it. A
// resumed session starts with the files as the agent left them, but still takes the
// diff against this state.
type StartState struct {
	Base string `json:"base"` // the commit
	// Tree is git's hash of the files. Applying Patch to Base produces these files.
	Tree  string `json:"tree"`
	Patch Bytes  `json:"patch,omitempty"`
	// Ignored and OtherFiles list files that are not in Tree; a NUL ends each entry.
	// Ignored lists files that git ignores, OtherFiles others, such as files that are too
	// large. An entry of OtherFiles is a stamp that changes with the file, a tab and the
	// name.
	Ignored    Bytes `json:"ignored,omitempty"`
	OtherFiles Bytes `json:"left,omitempty"`
	// Submodules lists the submodules whose files are in Tree: the hash of their tree at
	// HEAD, a tab and their path. A NUL ends each entry.
	Submodules Bytes `json:"submodules,omitempty"`
}

// PatchCheck is the result of applying a submission to the initial files.
type PatchCheck struct {
	Bytes    int    `json:"bytes"`
	Applies  bool   `json:"applies"`
	GitError string `json:"refusal,omitempty"` // output of git apply, truncated
	// ReportedToModel is set if mini reported the error to the model and the attempt continued.
	ReportedToModel bool `json:"returned,omitempty"`
	// NewlineAdded is set if the patch applied only with a final newline added.
	// Regenerated is set if mini replaced the patch by one with the same effect,
	// because the patch was not UTF-8, or applied to the commit but not to the user's
	// uncommitted changes.
	NewlineAdded bool `json:"mended,omitempty"`
	Regenerated  bool `json:"remade,omitempty"`
	// Tree is git's hash of the files with the patch applied.
	Tree     string  `json:"tree,omitempty"`
	Duration Seconds `json:"duration,omitempty"`
	// Error is set if the check itself failed.
	Error string `json:"error,omitempty"`
}

// Diff is the diff from the files at the start of an attempt to the working tree at its
// end. Error explains why there is no diff.
type Diff struct {
	// Base is HEAD at the start. Start is git's hash of the files at the start,
	// including uncommitted changes and new files.
	Base  string `json:"base,omitempty"`
	Start string `json:"start,omitempty"`
	Patch Bytes  `json:"patch"`
	// Exact is set if applying Patch to the initial files produced Tree, git's hash of
	// the working tree. Otherwise VerifyError is git's error.
	Exact       bool   `json:"exact"`
	Tree        string `json:"tree,omitempty"`
	VerifyError string `json:"problem,omitempty"`
	// Omitted lists changed files that are not in Patch, OmittedReasons the reason for
	// the file at the same index. The lists may be cut; OmittedCount counts all such
	// files.
	Omitted        []string `json:"omitted,omitempty"`
	OmittedReasons []string `json:"omitted_reasons,omitempty"`
	OmittedCount   int      `json:"omitted_count,omitempty"`
	Duration       Seconds  `json:"duration,omitempty"`
	Error          string   `json:"error,omitempty"`
}
