package trajectories

// Scrub is the proof that a repository holds nothing but HEAD, its history and
// what is staged: OK says that every commit in the object store is HEAD or an
// ancestor of it (StrayCommits is 0), that every other object belongs to one of
// them, to a tag of theirs or to the index (StrayObjects), and that no other
// ref (StrayRefs) and no remote (Remotes) is left.
type Scrub struct {
	OK   bool   `json:"ok"`
	Head string `json:"head,omitempty"`
	// Method is how objects were removed: "none" when none had to be, "loose"
	// when loose ones were deleted, "repacked" when packs were written anew.
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
	Submodules     int     `json:"submodules,omitempty"` // repositories of submodules, left as they were
	Duration       Seconds `json:"duration"`
	// Prepared says that the image was scrubbed once for all attempts on it, and
	// that this one found the git directory as it was left then. ImageWait is how
	// long the start of its sandbox waited for that.
	Prepared  bool    `json:"prepared,omitempty"`
	ImageWait Seconds `json:"image_wait,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// Start is how the files of a repository were when the work on them began. It is
// kept where they are the user's own: there the next session goes on with what
// the last one left, and a diff is still against the first.
type Start struct {
	Base string `json:"base"` // the commit
	// Tree is git's hash of the files, and Patch makes it of the commit.
	Tree  string `json:"tree"`
	Patch Bytes  `json:"patch,omitempty"`
	// Ignored and Left are lists of files that are not in Tree, each with a NUL
	// after it: those that git ignores, and others, after a stamp and a tab.
	Ignored Bytes `json:"ignored,omitempty"`
	Left    Bytes `json:"left,omitempty"`
}

// Check is what git apply said of a submission, on the files as they were at
// the start.
type Check struct {
	Bytes   int    `json:"bytes"`
	Applies bool   `json:"applies"`
	Refusal string `json:"refusal,omitempty"` // git's words, bounded
	// Returned says that the model was told, and goes on.
	Returned bool `json:"returned,omitempty"`
	// Mended says that it only applies with an end to its last line, which it
	// was given; Remade that it was made anew, since it was not UTF-8, or
	// applies to the commit alone and not to what was changed by the start.
	Mended bool `json:"mended,omitempty"`
	Remade bool `json:"remade,omitempty"`
	// Tree is git's hash of the tree that it makes of the base.
	Tree     string  `json:"tree,omitempty"`
	Duration Seconds `json:"duration,omitempty"`
	// Error says why nothing could be found out.
	Error string `json:"error,omitempty"`
}

// Diff is the working tree at the end of an attempt, against the files as they
// were at the start. Error says why there is none.
type Diff struct {
	// Base is HEAD at the start, and Start git's hash of the files at the start:
	// those of Base with what was changed and new by then.
	Base  string `json:"base,omitempty"`
	Start string `json:"start,omitempty"`
	Patch Bytes  `json:"patch"`
	// Exact says that the patch was applied to the files at the start and
	// gave Tree, git's hash of the working tree; otherwise Problem says what
	// git said.
	Exact   bool   `json:"exact"`
	Tree    string `json:"tree,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Omitted names the first of what changed and was left out, each for the
	// reason at the same place of OmittedReasons; OmittedCount counts all.
	Omitted        []string `json:"omitted,omitempty"`
	OmittedReasons []string `json:"omitted_reasons,omitempty"`
	OmittedCount   int      `json:"omitted_count,omitempty"`
	Duration       Seconds  `json:"duration,omitempty"`
	Error          string   `json:"error,omitempty"`
}
