package subagents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/minibench/mini/trajectories"
)

// JournalDir holds the journals of children next to that of their parent:
// Subdir/1/journal.jsonl and so on.
type JournalDir struct {
	// Dir is the directory of the parent's journal, and ParentJournal the file
	// name of that journal. Subdir is the subdirectory for the children.
	Dir, ParentJournal, Subdir string
	// Header has the fields that are the same for all children.
	Header trajectories.Header
	Sync   trajectories.SyncPolicy
}

// LastNumber returns the highest number of a child, including children of
// earlier sessions; 0 if there are none.
func (d JournalDir) LastNumber() int {
	list, err := os.ReadDir(filepath.Join(d.Dir, d.Subdir))
	if err != nil {
		return 0
	}
	newest := 0
	for _, e := range list {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

// Create creates the journal of a new child and sets its number in the header.
func (d JournalDir) Create(h trajectories.Header) (*Journal, error) {
	if d.Dir == "" {
		return nil, errors.New("the directory for the journals of children is not set")
	}
	root, err := os.OpenRoot(d.Dir) // the folder of a resumed attempt is untrusted: it may contain symbolic links
	if err != nil {
		return nil, fmt.Errorf("create directory for children: %w", err)
	}
	defer root.Close() //nolint:errcheck // the journal's file stays open
	if err := root.MkdirAll(d.Subdir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory for children: %w", err)
	}
	for n := d.LastNumber() + 1; ; n++ {
		dir := filepath.Join(d.Subdir, strconv.Itoa(n))
		err := root.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue // created by a concurrent call
		}
		if err != nil {
			return nil, fmt.Errorf("create directory for a child: %w", err)
		}
		path := filepath.Join(dir, trajectories.ChildJournalName)
		file, err := root.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, fmt.Errorf("create journal: %w", err)
		}
		j, err := trajectories.NewJournal(file, withNumber(d.baseHeader(h), n, filepath.ToSlash(filepath.Join("..", "..", d.ParentJournal))))
		if err != nil {
			return nil, errors.Join(err, root.Remove(path))
		}
		j.SetSyncPolicy(d.Sync)
		return &Journal{j, filepath.Join(d.Dir, path), filepath.ToSlash(filepath.Join(d.Subdir, strconv.Itoa(n), trajectories.ChildJournalName)), n}, nil
	}
}

// baseHeader returns d.Header with the parent of h and without an origin.
func (d JournalDir) baseHeader(h trajectories.Header) trajectories.Header {
	header := d.Header
	header.Parent, header.Origin = h.Parent, nil
	return header
}

// withNumber returns h with the current format, the child's number n and the path
// of the parent's journal.
func withNumber(h trajectories.Header, n int, journal string) trajectories.Header {
	p := *h.Parent
	p.Child, p.Journal = n, journal
	h.Parent, h.Format = &p, trajectories.Format
	return h
}

// Journal is the journal of a child.
type Journal struct {
	*trajectories.Journal
	path, name string // of the file; name is relative to JournalDir.Dir
	child      int    // number of the child, from 1
}

// Number implements agent.ChildJournal.
func (j *Journal) Number() int { return j.child }

// Name implements agent.ChildJournal.
func (j *Journal) Name() string { return j.name }

// Finish closes the journal and returns its path, relative to the directory of
// the parent's journal, and its SHA-256 digest.
func (j *Journal) Finish() (path, digest string, err error) {
	if err := j.Close(); err != nil {
		return "", "", err
	}
	f, err := os.Open(j.path)
	if err != nil {
		return "", "", fmt.Errorf("read journal of child: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", "", fmt.Errorf("read journal of child: %w", err)
	}
	return j.name, hex.EncodeToString(hash.Sum(nil)), nil
}
