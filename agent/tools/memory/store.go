package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/atomicfile"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
	// lockTimeout bounds the wait for a lock that another process holds;
	// lockPoll is the interval between tries.
	lockTimeout = 10 * time.Second
	lockPoll    = 5 * time.Millisecond
)

// Store keeps notes in one file. A second file, with the suffix .lock, is the
// lock. Any number of goroutines and processes may use it concurrently.
type Store struct {
	path string
}

// NewStore returns a store that keeps its notes in the file path. Add creates
// the file; Add, Remove and Clear create its directory.
func NewStore(path string) *Store { return &Store{path: path} }

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Notes returns all notes, oldest first.
func (s *Store) Notes() ([]Note, error) {
	c, err := readFile(s.path)
	if err != nil {
		return nil, err
	}
	return c.Notes, nil
}

// AddResult is the result of Add.
type AddResult struct {
	Note
	// Duplicate says that no note was added, because Note, with the same text
	// and category, already existed.
	Duplicate bool
}

// Add stores a text. An empty category means DefaultCategory. The error is an
// ErrInvalid if the text or category is invalid, but not if there are too many
// notes.
func (s *Store) Add(ctx context.Context, category, text string) (AddResult, error) {
	var a AddResult
	var err error
	if a.Category, err = normalizeCategory(category); err == nil {
		a.Text, err = normalizeText(text)
	}
	if err != nil {
		return AddResult{}, err
	}
	err = s.change(ctx, func(c *storedNotes) (bool, error) {
		same := func(n Note) bool { return n.Category == a.Category && n.Text == a.Text }
		if i := slices.IndexFunc(c.Notes, same); i >= 0 {
			a.Note, a.Duplicate = c.Notes[i], true
			return false, nil
		}
		switch {
		case len(c.Notes) >= MaxNotes:
			return false, fmt.Errorf("there are %d notes, and more cannot be kept; remove some that are no longer needed", len(c.Notes))
		case c.textSize()+len(a.Text) > MaxTotalBytes:
			return false, fmt.Errorf("the notes have %d bytes, and at most %d can be kept; remove some that are no longer needed", c.textSize(), MaxTotalBytes)
		}
		a.ID, a.Time = c.Next, time.Now().UTC().Truncate(time.Second)
		c.Next++
		c.Notes = append(c.Notes, a.Note)
		return true, nil
	})
	return a, err
}

// Remove deletes the note with an ID and returns it. The error is an ErrInvalid
// if there is no such note.
func (s *Store) Remove(ctx context.Context, id int) (Note, error) {
	var removed Note
	err := s.change(ctx, func(c *storedNotes) (bool, error) {
		i := slices.IndexFunc(c.Notes, func(n Note) bool { return n.ID == id })
		if i < 0 {
			return false, invalidf("there is no note %d", id)
		}
		removed = c.Notes[i]
		c.Notes = slices.Delete(c.Notes, i, i+1)
		return true, nil
	})
	return removed, err
}

// change holds the lock and calls f with the file's content. If f returns true,
// it writes the content back.
func (s *Store) change(ctx context.Context, f func(*storedNotes) (bool, error)) (err error) {
	release, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	c, err := readFile(s.path)
	if err != nil {
		return err
	}
	changed, err := f(c)
	if err != nil || !changed {
		return err
	}
	data, err := c.encode()
	if err == nil {
		err = atomicfile.Write(s.path, data, fileMode)
	}
	if err != nil {
		return fmt.Errorf("write notes (the file is unchanged): %w", err)
	}
	return nil
}

func (s *Store) lock(ctx context.Context) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(s.path), folderMode); err != nil {
		return nil, fmt.Errorf("create directory for notes: %w", err)
	}
	lock := flock.New(s.path+".lock", flock.SetPermissions(fileMode))
	lockCtx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(lockCtx, lockPoll); err != nil {
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case lockCtx.Err() != nil:
			err = fmt.Errorf("another process holds the lock for more than %v; retry later", lockTimeout)
		}
		return nil, errors.Join(fmt.Errorf("lock notes: %w", err), lock.Close())
	}
	return lock.Close, nil
}
