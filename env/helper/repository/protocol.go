package repository

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Op is the work that a Request asks for.
type Op string

// The operations. Diff, Hash and Check need the Repository and the State that Open
// returned.
const (
	Open    Op = "open"    // find the repository and take the state at the start
	Diff    Op = "diff"    // take what changed since the start, as a patch
	Hash    Op = "hash"    // take the hash of the files
	Check   Op = "check"   // check a patch against the state at the start
	Scrub   Op = "scrub"   // remove everything outside the history of HEAD
	Prepare Op = "prepare" // scrub, and return the inventory of the git directory
	Clean   Op = "clean"   // remove temporary folders of a program that was killed
)

// Request is the input of the program.
type Request struct {
	Op Op `json:"op"`
	// Contained says that the sandbox owns every repository, regardless of file owners, and
	// that programs which the repository names may run.
	Contained bool `json:"contained,omitempty"`
	// Bound is the folder that must contain the repository; empty if there is no such
	// rule.
	Bound []byte        `json:"bound,omitempty"`
	Tag   string        `json:"tag"`  // part of the names of temporary folders
	Time  time.Duration `json:"time"` // after which the program ends by itself
	// Exclude are gitignore patterns of new files to leave out. MaxPatch is the maximum
	// size of a patch, in bytes.
	Exclude  []string `json:"exclude,omitempty"`
	MaxPatch int      `json:"max_patch,omitempty"`

	Repository *Repository `json:"repository,omitempty"`
	Start      *State      `json:"start,omitempty"` // of Open: the state to restore
	Patch      []byte      `json:"patch,omitempty"` // of Check
	// Inventory is that of Prepare. Scrub does nothing if the git directory still has it.
	Inventory string `json:"inventory,omitempty"`

	room     int64  // free space to require, in KiB
	baseTree string // of Open: the tree of the commit
}

// Repository is where a repository is, with the settings that it had at the start.
type Repository struct {
	GitDir    []byte `json:"git_dir"`
	CommonDir []byte `json:"common_dir"` // git directory shared with other worktrees
	Top       []byte `json:"top"`        // top of the working tree
	// Submodules are the git directories of submodules.
	Submodules [][]byte `json:"submodules,omitempty"`
	// Settings are those on how files become objects, in the form of git config -z.
	Settings []byte `json:"settings,omitempty"`
}

// State is the state of the files at the start. mini keeps it outside the sandbox,
// where the agent cannot remove it.
type State struct {
	Base string `json:"base"` // the commit at HEAD, or the empty tree
	// Tree is git's hash of the files: those of the commit with their changes, and new
	// ones that git does not ignore. Patch turns the files of the commit into Tree; it
	// is empty for a clean repository.
	Tree  string `json:"tree"`
	Patch []byte `json:"patch,omitempty"`
	// Ignored lists the files that git ignores, NUL-terminated. For a folder with too
	// many files it lists only the folder. Rebuilt sandboxes have these files, too, so
	// they never count as new.
	Ignored []byte `json:"ignored,omitempty"`
	// LeftOut lists other files that Tree leaves out, for example because they are too
	// large. Each entry is a stamp that changes with the file, a tab, and the name,
	// NUL-terminated.
	LeftOut []byte `json:"left_out,omitempty"`
	// Submodules lists the submodules whose files count as files of the repository. Each
	// entry is the tree at the submodule's HEAD, a tab, and its path, NUL-terminated.
	Submodules []byte `json:"submodules,omitempty"`
}

// Omission is a file or folder that a patch leaves out. The name of a folder ends with a
// slash.
type Omission struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func (o Omission) String() string { return o.Name + " (" + o.Reason + ")" }

// Response is the output of the program. It comes from the sandbox: a process of the
// agent may have forged it.
type Response struct {
	Missing string  `json:"missing,omitempty"` // why there is no repository
	Failure Failure `json:"failure,omitempty"`
	Error   string  `json:"error,omitempty"` // if Failure is set

	Repository *Repository `json:"repository,omitempty"`
	State      *State      `json:"state,omitempty"`

	// Tree is git's hash of the files: the current ones, or those that a patch gives.
	Tree  string `json:"tree,omitempty"`
	Patch []byte `json:"patch,omitempty"`
	// Exact says of a diff that Patch gave Tree when it was applied. Problem is git's
	// message if it did not, or if it rejected a patch to check.
	Exact        bool       `json:"exact,omitempty"`
	Problem      string     `json:"problem,omitempty"`
	Omitted      []Omission `json:"omitted,omitempty"`
	OmittedCount int        `json:"omitted_count,omitempty"`
	// NewlineAdded and Regenerated say of a checked patch that Patch is not as it was.
	NewlineAdded bool `json:"newline_added,omitempty"`
	Regenerated  bool `json:"regenerated,omitempty"`

	Report    *ScrubReport `json:"report,omitempty"`
	Unchanged bool         `json:"unchanged,omitempty"` // the git directory has the requested inventory
	Inventory string       `json:"inventory,omitempty"`
}

// Failure is the kind of an error.
type Failure string

// The kinds of errors.
const (
	FailedSpace   Failure = "space"   // no disk has enough room
	FailedSize    Failure = "size"    // the change is too large for a patch
	FailedTime    Failure = "time"    // git did not end in time
	FailedRefused Failure = "refused" // the repository cannot be worked on, now or later
	FailedOther   Failure = "other"
)

// ScrubReport is what a scrub removed and what is left. The numbers are git's, counted
// after the scrub.
type ScrubReport struct {
	Head   string // empty for a repository without a commit
	Method string // how objects were removed: "none", "loose" or "repacked"

	RefsRemoved, ObjectsRemoved int
	Objects, Commits, Tags      int

	// StrayCommits are commits in the object store outside the history of HEAD.
	// StrayObjects belong neither to that history nor to one of its tags nor to
	// the index. StrayRefs are neither HEAD's branch nor tags in its history.
	// Remotes is the number of configured remotes.
	StrayCommits, StrayObjects, StrayRefs, Remotes int

	// Submodules is the number of submodule repositories, which are not
	// scrubbed.
	Submodules int
	// Duration is how long Scrub took. Prepared reports that the git directory
	// is as Prepare left it in the image; the fields above Duration are then
	// from the scrub by Prepare.
	Duration time.Duration
	Prepared bool
}

// IsClean reports whether nothing outside the history of HEAD is left.
func (p ScrubReport) IsClean() bool {
	return p.StrayCommits == 0 && p.StrayObjects == 0 && p.StrayRefs == 0 && p.Remotes == 0
}

// Encode returns a request or a response as the program reads and writes it: JSON,
// compressed, because JSON has bytes as base64.
func Encode[M Request | Response](message M) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		err = json.NewEncoder(w).Encode(message)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return b.Bytes(), nil
}

// Decode is the inverse of Encode. A message may have maxMessage bytes of JSON.
func Decode[M Request | Response](data []byte) (m M, err error) {
	in := bytes.NewReader(data)
	err = json.NewDecoder(io.LimitReader(flate.NewReader(in), maxMessage)).Decode(&m)
	if err == nil && in.Len() > 0 {
		err = errors.New("bytes after its end")
	}
	if err != nil {
		return m, fmt.Errorf("%w: %w", errMessage, err)
	}
	return m, nil
}

const maxMessage = 256 << 20

var errMessage = errors.New("invalid message")
