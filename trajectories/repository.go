package trajectories

// Scrub is the result of removing from a repository everything but HEAD, its history
// and the index. OK is set if every commit in the object store is HEAD or an ancestor
// (StrayCommits is 0), every other object belongs to one of them, to one of their
// tags or to the index (StrayObjects is 0), and there are no other refs (StrayRefs)
// and no remotes (Remotes).
type Scrub struct {
	OK   bool   `json:"ok"`
	Head string `json:"head,omitempty"`
	// Method is how objects were removed: "none" if there were none to remove,
	// "loose" if loose objects were deleted, "repacked" if packs were rewritten.
	Method         string  `json:"method,omitempty"`
	RefsRemoved    int     `json:"refs_removed"`
	ObjectsRemoved int     `json:"objects_removed"`
	Objects        int     `json:"objects"`
	Commits        int     `json:"commits"`
	Tags           int     `json:"tags"`
	StrayCommits   int     `json:"stray_commits"`
	StrayObjects   int     `json:"stray_objects"`
	StrayRefs      int     `json:"stray_refs"`
	Remotes        int     `json:"remotes"`
	Submodules     int     `json:"submodules,omitempty"` // submodule repositories, which are not scrubbed
	Duration       Seconds `json:"duration"`
	// Prepared is set if the image was scrubbed once for all attempts and its git
	// directory was unchanged here. ImageWait is how long the start of the sandbox
	// waited for that.
	Prepared  bool    `json:"prepared,omitempty"`
	ImageWait Seconds `json:"image_wait,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// StartState is the state of the user's own repository before the agent changed it. A
// later session starts from the changed files; its diff is still taken against this
// state.
type StartState struct {
	Base string `json:"base"` // the commit
	// Tree is git's hash of the files; applying Patch to Base produces it.
	Tree  string `json:"tree"`
	Patch Bytes  `json:"patch,omitempty"`
	// Ignored and LeftOut list files that are not in Tree, each followed by a NUL.
	// Ignored are ignored by git. LeftOut are other files, each preceded by a stamp
	// and a tab.
	Ignored Bytes `json:"ignored,omitempty"`
	LeftOut Bytes `json:"left,omitempty"`
}

// PatchCheck is the result of applying a submission to the files at the start.
type PatchCheck struct {
	Bytes    int    `json:"bytes"`
	Applies  bool   `json:"applies"`
	GitError string `json:"refusal,omitempty"` // output of git apply, truncated
	// SentBack is set if the model was told about the error and continues.
	SentBack bool `json:"returned,omitempty"`
	// NewlineAdded is set if the patch applied only after a final newline was added.
	// Regenerated is set if mini replaced the patch because it was not UTF-8, or
	// applied to the commit but not to the changed files of the user.
	NewlineAdded bool `json:"mended,omitempty"`
	Regenerated  bool `json:"remade,omitempty"`
	// Tree is git's hash of the files with the patch applied.
	Tree     string  `json:"tree,omitempty"`
	Duration Seconds `json:"duration,omitempty"`
	// Error explains why the check failed to run.
	Error string `json:"error,omitempty"`
}

// Diff is the diff of the working tree at the end of an attempt against the files at
// the start. Error explains why there is none.
type Diff struct {
	// Base is HEAD at the start. Start is git's hash of the files at the start,
	// including uncommitted changes and new files.
	Base  string `json:"base,omitempty"`
	Start string `json:"start,omitempty"`
	Patch Bytes  `json:"patch"`
	// Exact is set if applying the patch to the files at the start gave Tree, git's
	// hash of the working tree. Otherwise Problem has git's error.
	Exact   bool   `json:"exact"`
	Tree    string `json:"tree,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Omitted lists the first changed files that are not in the patch; OmittedReasons
	// has the reason for each, at the same index. OmittedCount counts all of them.
	Omitted        []string `json:"omitted,omitempty"`
	OmittedReasons []string `json:"omitted_reasons,omitempty"`
	OmittedCount   int      `json:"omitted_count,omitempty"`
	Duration       Seconds  `json:"duration,omitempty"`
	Error          string   `json:"error,omitempty"`
}
