// Package undo remembers the working tree of a user's repository, shows what
// has changed in it since, and puts the files back.
//
//	s, err := undo.Take(ctx, dir, store)    // at the start of a session
//	d, err := s.Diff(ctx)                   // at any moment
//	done, err := s.Restore(ctx, d.Tree)     // files as they were at the start
//	s, err = undo.Open(store)               // after mini was killed
//
// It works on the host's files, beside whatever runs there. (What changed in a
// container is for agent/worktree.) The repository is only read: indexes,
// objects and settings live in the store, a folder of mini's own. Git is run on
// that store and on none of the repository's settings, so that no filter, hook
// or monitor that somebody named there runs. Contents are taken byte for byte,
// without conversions of line ends or filters.
//
// What git ignored at the start, repositories within the repository and what
// was too large to be kept are neither shown nor touched.
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

	"github.com/minibench/mini/internal/atomicfile"
)

// Why there is no diff; a session goes on without.
var (
	// ErrNoGit says that there is no git on this machine.
	ErrNoGit = errors.New("there is no git")
	// ErrNoRepository says that the folder is in no repository, or in one
	// that cannot be worked on.
	ErrNoRepository = errors.New("there is no git repository")
)

// Limits of what is kept of files that git does not have already.
const (
	maxFile  = 100 << 20
	maxStore = 1 << 30
)

// Snapshot is a working tree as it was.
type Snapshot struct {
	noted  noted
	store  string
	git    string   // the program
	hidden []string // variables that git does not get
	mu     sync.Mutex
}

// noted is what the store's note says beside git's objects.
type noted struct {
	Top  string `json:"top"`  // where the files are
	Tree string `json:"tree"` // of the files
	// Modes are the permissions that git does not note, by path.
	Modes map[string]fs.FileMode `json:"modes,omitempty"`
	// Foreign are paths that were there and are not kept; those of folders end
	// with a slash.
	Foreign []string `json:"foreign,omitempty"`
}

const noteName = "snapshot.json"

// Take remembers the working tree around dir. The store is a folder that is
// made; it is the caller's to remove. Git does not get the variables of this
// process that are secret by their name, or hidden.
func Take(ctx context.Context, dir, store string, hidden ...string) (*Snapshot, error) {
	s := &Snapshot{store: store, hidden: hidden}
	if err := s.take(ctx, dir); err != nil {
		return nil, fmt.Errorf("remember working tree: %w", err)
	}
	return s, nil
}

// Open finds what Take left in a store; hidden is as for Take.
func Open(store string, hidden ...string) (*Snapshot, error) {
	s := &Snapshot{store: store, hidden: hidden}
	text, err := os.ReadFile(filepath.Join(store, noteName)) //nolint:gosec // the caller's folder
	if err == nil {
		err = json.Unmarshal(text, &s.noted)
	}
	if err == nil && !filepath.IsAbs(s.noted.Top) {
		err = errors.New("it names no folder")
	}
	if err == nil {
		s.git, err = program()
	}
	if err != nil {
		return nil, fmt.Errorf("open snapshot %s: %w", store, err)
	}
	return s, nil
}

// Possible returns nil where Take can remember the working tree around dir, else
// ErrNoGit, ErrNoRepository or what keeps git from reading the repository; hidden is as for Take.
func Possible(ctx context.Context, dir string, hidden ...string) error {
	git, err := program()
	if err == nil {
		_, err = find(ctx, git, dir, hidden)
	}
	if err != nil {
		return fmt.Errorf("find working tree: %w", err)
	}
	return nil
}

func (s *Snapshot) take(ctx context.Context, dir string) error {
	var err error
	if s.git, err = program(); err != nil {
		return err
	}
	repo, err := find(ctx, s.git, dir, s.hidden)
	if err != nil {
		return err
	}
	s.noted = noted{Top: repo.top}
	if err := s.makeShadow(repo); err != nil {
		return err
	}
	if err := s.readIndex(ctx, repo); err != nil {
		return err
	}
	if err := s.noteForeign(ctx); err != nil {
		return err
	}
	if s.noted.Tree, err = s.write(ctx, startIndex, true); err != nil {
		return err
	}
	if err := s.noteModes(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(s.noted)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.store, noteName), text, 0o600)
}

// foreign says whether a path is none of ours: it was there at the start, and
// was not kept.
func (s *Snapshot) foreign() func(path string) bool {
	set := make(map[string]bool, len(s.noted.Foreign))
	for _, p := range s.noted.Foreign {
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

// split are the names that git printed with -z.
func split(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}
