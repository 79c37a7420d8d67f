// Package undo takes snapshots of the working tree of a user's repository,
// shows the changes since then, and restores the files.
//
//	s, err := undo.TakeSnapshot(ctx, dir, store)  // at the start of a session
//	d, err := s.Diff(ctx)                         // at any time
//	result, err := s.Restore(ctx, d.TreeID)       // restore the files
//	s, err = undo.OpenSnapshot(store)             // after mini was killed
//
// It works on the host's files, next to running commands. (Package
// agent/worktree handles changes in containers.) The repository is only read:
// the indexes, objects and settings of a snapshot are in the store, a folder of
// mini. Git runs without the repository's settings, so that it starts no
// filters, hooks or monitors. Files are stored byte for byte, without
// conversion of line ends. A folder outside of repositories is stored in the same
// way if it is small.
//
// RecordStep splits the changes into steps, and UndoStep takes the last one back.
//
// The files of git itself are not part of a snapshot; GitFiles tells which of them have changed.
//
// Ignored files, nested repositories, and files that could not be stored at the
// start (too large or unreadable) are neither shown by Diff nor changed by
// Restore.
package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/minibench/mini/env/helper/repository"
	"github.com/minibench/mini/internal/atomicfile"
)

// Errors that mean that there can be no snapshot. The session continues without
// one.
var (
	// ErrGitNotFound means that git is not installed.
	ErrGitNotFound = errors.New("git not found")
	// ErrNoRepository means that the folder is not in a git repository or, for TakeSnapshot,
	// in an unsupported one.
	ErrNoRepository = errors.New("no git repository")
	// ErrTooLarge means that the folder is not in a git repository, and has more than
	// maxFolderFiles files or maxFolder bytes.
	ErrTooLarge = errors.New("too large to be copied")
)

// Limits of a folder that is not in a repository.
const (
	maxFolder      = 200 << 20
	maxFolderFiles = 20_000
)

// Limits on files that the repository's objects do not contain already: the
// size of one file, and of all, in bytes.
const (
	maxFile  = 100 << 20
	maxStore = 1 << 30
)

// Snapshot is the state of a working tree.
type Snapshot struct {
	meta      metadata
	store     string   // folder of the snapshot's data
	git       string   // path of the git program
	hiddenEnv []string // environment variables removed for git
	mu        sync.Mutex
	current   string // the tree of currentIndex; "" if that is not up to date
	remaining int64  // bytes that may still be stored
	last      string // the state that the next step begins with; "" if it is unknown
}

// metadata is the snapshot's data besides git's objects.
type metadata struct {
	Top  string `json:"top"`  // the working tree
	Tree string `json:"tree"` // id of the tree object
	// Modes are the permissions that git does not store, by path.
	Modes map[string]fs.FileMode `json:"modes,omitempty"`
	// Unstored are paths that existed at the start and are not stored; folders
	// end with a slash.
	Unstored []string `json:"foreign,omitempty"`
	// Steps are the steps that changed files and are not taken back, oldest first.
	Steps []step `json:"steps,omitempty"`
}

const metadataFile = "snapshot.json"

// TakeSnapshot stores the working tree around dir in store, a folder that it
// creates and the caller removes. Git runs without the environment variables in
// hidden and those named like secrets.
func TakeSnapshot(ctx context.Context, dir, store string, hidden ...string) (*Snapshot, error) {
	s := &Snapshot{store: store, hiddenEnv: hidden}
	if err := s.take(ctx, dir); err != nil {
		return nil, fmt.Errorf("take snapshot: %w", err)
	}
	return s, nil
}

// OpenSnapshot opens a snapshot in a store. hidden is as for TakeSnapshot.
func OpenSnapshot(store string, hidden ...string) (*Snapshot, error) {
	s := &Snapshot{store: store, hiddenEnv: hidden}
	text, err := os.ReadFile(filepath.Join(store, metadataFile)) //nolint:gosec // the caller's folder
	if err == nil {
		err = json.Unmarshal(text, &s.meta)
	}
	if err == nil && !filepath.IsAbs(s.meta.Top) {
		err = errors.New("no folder in its metadata")
	}
	if err == nil {
		s.git, err = findGit()
	}
	if err != nil {
		return nil, fmt.Errorf("open snapshot %s: %w", store, err)
	}
	return s, nil
}

// Check returns nil if TakeSnapshot can store the working tree around dir, or dir itself, else
// ErrGitNotFound, ErrTooLarge, ErrNoRepository or the error of reading the repository. hidden is as for
// TakeSnapshot.
func Check(ctx context.Context, dir string, hidden ...string) error {
	git, err := findGit()
	if err == nil {
		_, err = findTree(ctx, git, dir, hidden)
	}
	if err != nil {
		return fmt.Errorf("find working tree: %w", err)
	}
	return nil
}

func (s *Snapshot) take(ctx context.Context, dir string) error {
	var err error
	if s.git, err = findGit(); err != nil {
		return err
	}
	repo, err := findTree(ctx, s.git, dir, s.hiddenEnv)
	if err != nil {
		return err
	}
	ctx, stop := repository.Watch(ctx, repo.top)
	defer stop()
	s.meta = metadata{Top: repo.top}
	if err := s.makeShadow(repo); err != nil {
		return err
	}
	if err := s.readIndex(ctx, repo); err != nil {
		return err
	}
	if err := s.recordUnstored(ctx); err != nil {
		return err
	}
	s.remaining = maxStore
	if s.meta.Tree, err = s.writeTree(ctx, startIndex, ""); err != nil {
		return err
	}
	s.last = s.meta.Tree
	if err := s.recordModes(ctx); err != nil {
		return err
	}
	return s.saveMetadata()
}

func (s *Snapshot) saveMetadata() error {
	text, err := json.Marshal(s.meta)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.store, metadataFile), text, 0o600)
}

// unstoredMatcher returns a function that reports whether a path existed at the start and is
// not stored.
func (s *Snapshot) unstoredMatcher() func(path string) bool {
	set := make(map[string]bool, len(s.meta.Unstored))
	for _, p := range s.meta.Unstored {
		set[p] = true
	}
	return func(path string) bool {
		if set[path] || set[path+"/"] {
			return true
		}
		for i := range len(path) {
			if path[i] == '/' && set[path[:i+1]] {
				return true
			}
		}
		return false
	}
}

// splitNul splits the output of git -z.
func splitNul(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}
