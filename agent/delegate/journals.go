package delegate

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
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/trajectories"
)

// Journals makes the journals of children. Methods are safe for concurrent use.
type Journals interface {
	// New makes that of another child, and gives it its number in header.Parent.
	New(header trajectories.Header) (Journal, error)
	// Made is the highest number that was given, also in earlier sessions.
	Made() int
}

// Journal is a child's.
type Journal interface {
	agent.Recorder
	// Child is its number, from 1.
	Child() int
	// Seal ends it, and says where it is and what its bytes add up to; both are
	// empty where it has no file.
	Seal() (name, sha256 string, err error)
}

// Kept keeps journals in memory, for attempts that do so themselves.
type Kept struct {
	mu  sync.Mutex
	all []*agent.Memory
}

var _ Journals = (*Kept)(nil)

// New implements Journals.
func (k *Kept) New(h trajectories.Header) (Journal, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.all) + 1
	h = numbered(h, n, "")
	m := agent.NewMemoryOf(h)
	k.all = append(k.all, m)
	return kept{m, n}, nil
}

// Made implements Journals.
func (k *Kept) Made() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// Children are what children left, in the order in which they began.
func (k *Kept) Children() []*agent.Memory {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*agent.Memory(nil), k.all...)
}

type kept struct {
	*agent.Memory
	n int
}

// Child implements Journal.
func (k kept) Child() int { return k.n }

// Seal implements Journal.
func (k kept) Seal() (name, sha256 string, err error) { return "", "", nil }

// Folder keeps the journals of children in files beside that of their parent:
// Name/1/journal.jsonl and so on.
type Folder struct {
	// Dir is the folder of the parent's journal, which is the file Journal in it.
	// Name is that of the folder for its children.
	Dir, Journal, Name string
	// Header is what children's headers begin with: those fields that are about
	// what made them.
	Header trajectories.Header
	Sync   trajectories.Sync
}

var _ Journals = Folder{}

// Made implements Journals.
func (f Folder) Made() int {
	list, err := os.ReadDir(filepath.Join(f.Dir, f.Name))
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

// New implements Journals.
func (f Folder) New(h trajectories.Header) (Journal, error) {
	root, err := os.OpenRoot(f.Dir) // an attempt that goes on may be a stranger's, with links out of it
	if err != nil {
		return nil, fmt.Errorf("make folder for children: %w", err)
	}
	defer root.Close() //nolint:errcheck // the journal has a file of its own
	if err := root.MkdirAll(f.Name, 0o755); err != nil {
		return nil, fmt.Errorf("make folder for children: %w", err)
	}
	for n := f.Made() + 1; ; n++ {
		dir := filepath.Join(f.Name, strconv.Itoa(n))
		err := root.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue // another child was faster
		}
		if err != nil {
			return nil, fmt.Errorf("make folder for a child: %w", err)
		}
		path := filepath.Join(dir, trajectories.ChildJournal)
		file, err := root.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, fmt.Errorf("create journal: %w", err)
		}
		j, err := trajectories.CreateIn(file, numbered(f.about(h), n, filepath.ToSlash(filepath.Join("..", "..", f.Journal))))
		if err != nil {
			return nil, errors.Join(err, root.Remove(path))
		}
		j.Sync(f.Sync)
		return &written{j, filepath.Join(f.Dir, path), filepath.ToSlash(filepath.Join(f.Name, strconv.Itoa(n), trajectories.ChildJournal)), n}, nil
	}
}

// about is a header with what is the same for all.
func (f Folder) about(h trajectories.Header) trajectories.Header {
	all := f.Header
	all.Parent, all.Origin = h.Parent, nil
	return all
}

func numbered(h trajectories.Header, n int, journal string) trajectories.Header {
	p := *h.Parent
	p.Child, p.Journal = n, journal
	h.Parent, h.Format = &p, trajectories.Format
	return h
}

type written struct {
	*trajectories.Journal
	path, name string
	n          int
}

// Child implements Journal.
func (w *written) Child() int { return w.n }

// Seal implements Journal.
func (w *written) Seal() (string, string, error) {
	if err := w.Close(); err != nil {
		return "", "", err
	}
	f, err := os.Open(w.path)
	if err != nil {
		return "", "", fmt.Errorf("read journal of child: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", "", fmt.Errorf("read journal of child: %w", err)
	}
	return w.name, hex.EncodeToString(hash.Sum(nil)), nil
}
