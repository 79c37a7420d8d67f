package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/atomicfile"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
	// patience is how long another process may have the file, and poll how often
	// one looks.
	patience = 10 * time.Second
	poll     = 5 * time.Millisecond
)

// Store is the notes of one file. Beside it there is a lock, of the same name
// with .lock. It is safe for concurrent use, by any number of processes.
type Store struct {
	path string
}

// NewStore has notes in a file, which is made with the first note, and its folder
// with it.
func NewStore(path string) *Store { return &Store{path: path} }

// Path is the file.
func (s *Store) Path() string { return s.path }

// Notes are all notes, the oldest first.
func (s *Store) Notes() ([]Note, error) {
	c, err := read(s.path)
	if err != nil {
		return nil, err
	}
	return c.Notes, nil
}

// Added is what became of a new note.
type Added struct {
	Note
	// Known says that there was one with this text and category already, which is
	// Note, and that nothing was added.
	Known bool
}

// Add keeps a text; an empty category is General. A text or a category that cannot
// be kept is an error that is ErrMistake; that there are too many notes is another.
func (s *Store) Add(ctx context.Context, cat, words string) (Added, error) {
	var a Added
	var err error
	if a.Category, err = category(cat); err == nil {
		a.Text, err = text(words)
	}
	if err != nil {
		return Added{}, err
	}
	err = s.change(ctx, func(c *content) (bool, error) {
		same := func(n Note) bool { return n.Category == a.Category && n.Text == a.Text }
		if i := slices.IndexFunc(c.Notes, same); i >= 0 {
			a.Note, a.Known = c.Notes[i], true
			return false, nil
		}
		switch {
		case len(c.Notes) >= MaxNotes || c.Next >= maxID:
			return false, fmt.Errorf("there are %d notes, and more cannot be kept; remove some that nobody needs", len(c.Notes))
		case c.size()+len(a.Text) > MaxText:
			return false, fmt.Errorf("the notes have %d bytes, and at most %d can be kept; remove some that nobody needs", c.size(), MaxText)
		}
		a.ID, a.Time = c.Next, time.Now().UTC().Truncate(time.Second)
		c.Next++
		c.Notes = append(c.Notes, a.Note)
		return true, nil
	})
	return a, err
}

// Remove takes a note away and returns it. That there is none is an error that is
// ErrMistake.
func (s *Store) Remove(ctx context.Context, id int) (Note, error) {
	var gone Note
	err := s.change(ctx, func(c *content) (bool, error) {
		i := slices.IndexFunc(c.Notes, func(n Note) bool { return n.ID == id })
		if i < 0 {
			return false, mistakef("there is no note %d", id)
		}
		gone = c.Notes[i]
		c.Notes = slices.Delete(c.Notes, i, i+1)
		return true, nil
	})
	return gone, err
}

// Clear takes away the notes of a category, or all where it is empty, and says
// how many that were.
func (s *Store) Clear(ctx context.Context, cat string) (int, error) {
	if cat != "" {
		var err error
		if cat, err = category(cat); err != nil {
			return 0, err
		}
	}
	gone := 0
	err := s.change(ctx, func(c *content) (bool, error) {
		before := len(c.Notes)
		c.Notes = slices.DeleteFunc(c.Notes, func(n Note) bool { return cat == "" || n.Category == cat })
		gone = before - len(c.Notes)
		return gone > 0, nil
	})
	return gone, err
}

// change lets f change what the file has while nobody else does, and writes it
// where f says that it changed something.
func (s *Store) change(ctx context.Context, f func(*content) (bool, error)) (err error) {
	release, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	s.sweep()
	c, err := read(s.path)
	if err != nil {
		return err
	}
	changed, err := f(c)
	if err != nil || !changed {
		return err
	}
	data, err := c.bytes()
	if err == nil {
		err = atomicfile.Write(s.path, data, fileMode)
	}
	if err != nil {
		return fmt.Errorf("write notes, which stay as they were: %w", err)
	}
	return nil
}

func (s *Store) lock(ctx context.Context) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(s.path), folderMode); err != nil {
		return nil, fmt.Errorf("make folder for notes: %w", err)
	}
	lock := flock.New(s.path+".lock", flock.SetPermissions(fileMode))
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if _, err := lock.TryLockContext(waiting, poll); err != nil {
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case waiting.Err() != nil:
			err = fmt.Errorf("another process has had them for %v; try again later", patience)
		}
		return nil, errors.Join(fmt.Errorf("lock notes: %w", err), lock.Close())
	}
	return lock.Close, nil
}

// sweep removes what a process left that died while it wrote. Nobody writes while
// the file is locked; what cannot be removed does no harm.
func (s *Store) sweep() {
	dir, prefix := filepath.Dir(s.path), "."+filepath.Base(s.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), prefix)
		if _, err := strconv.ParseUint(number, 10, 64); ok && err == nil && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
