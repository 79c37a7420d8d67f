package runner

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Folder is the folder of a run, locked by one process.
type Folder struct {
	runs.Layout
	lock         *flock.Flock
	isOwnVerdict func(verdicts.Record) bool // reports whether a verdict record is the user's; see SetVerdictFilter
	events       *os.File

	eventsSize int64 // length of events in complete lines; guarded by EventLog.mu

	mu          sync.Mutex
	eventsError error
	images      map[string]string             // name -> digest or ID
	verdicts    map[string][]verdicts.Verdict // by instance; read on demand
}

// LockedError reports that another process has locked the folder.
type LockedError struct {
	Dir string
	PID string // of that process; "" if unknown
}

func (e *LockedError) Error() string {
	holder := "another mini"
	if e.PID != "" {
		holder += " (process " + e.PID + ")"
	}
	return fmt.Sprintf("%s: %s is working in this folder; wait for it, or choose another folder with -o", e.Dir, holder)
}

// ErrNotEmpty reports that a folder has contents but is not the folder of a run.
var ErrNotEmpty = errors.New("is not empty and not the folder of a run")

// Files in the folder of a run.
const (
	lockFile    = runs.LockFile
	eventsFile  = datasets.EventsFile
	resultsFile = datasets.ResultsFile
	predsFile   = datasets.PredsFile
	runFile     = datasets.RunFile
	configFile  = datasets.ConfigFile
)

// Open creates the folder of a run if necessary, for this user only, and locks it. The
// error is a *LockedError if another process has locked the folder, and wraps ErrNotEmpty if
// the folder contains something else than a run.
func Open(dir string) (*Folder, error) { return OpenWithMode(dir, 0o700) }

// OpenWithMode is Open with the mode, before the umask, of a folder that it creates.
func OpenWithMode(dir string, mode fs.FileMode) (*Folder, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755) //nolint:gosec // the folders of runs may be shared
	if err == nil {
		err = os.Mkdir(dir, mode)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open run: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	for _, name := range []string{lockFile, eventsFile} { // opening a pipe would block; a link may lead elsewhere
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s %w: its %s is not a regular file; choose another folder with -o", dir, ErrNotEmpty, name)
		}
	}
	lock := flock.New(path)
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock run %s: %w", dir, err)
	}
	if !ok {
		return nil, &LockedError{Dir: dir, PID: runs.LockHolder(dir)}
	}
	f := &Folder{Layout: runs.Layout{Dir: dir}, lock: lock, images: map[string]string{}}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open run: %w", err), f.Close())
	}
	return f, nil
}

// open writes the PID to the lock file and opens the folder and events.jsonl for
// writing.
func (f *Folder) open() (err error) {
	if err := os.WriteFile(f.lock.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return err
	}
	if f.Root, err = rootdir.Open(f.Dir); err != nil {
		return err
	}
	path := filepath.Join(f.Dir, eventsFile)
	if f.events, err = f.Root.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	if f.eventsSize, err = completeLength(f.events); err != nil {
		return err
	}
	return f.events.Truncate(f.eventsSize) // a killed process may have left a partial line
}

// CheckFolder returns an error that wraps ErrNotEmpty if dir has contents but is
// not the folder of a run. A missing or empty folder is valid.
func CheckFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("open run: %w", err)
	case len(entries) == 0:
		return nil
	}
	for _, name := range []string{runFile, lockFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s %w; give a new one with -o", dir, ErrNotEmpty)
}

// Close closes the folder's files and unlocks the folder.
func (f *Folder) Close() error {
	var err error
	if f.events != nil {
		err = f.events.Close()
	}
	if f.Root != nil {
		err = errors.Join(err, f.Root.Close())
	}
	return errors.Join(err, f.lock.Unlock())
}

// newJournal creates a file, with its folder, and calls create to write a journal's start to it. It
// removes the file if create fails.
func (f *Folder) newJournal(path string, create func(*os.File) (*trajectories.Journal, error)) (*trajectories.Journal, error) {
	err := f.Root.MkdirAll(filepath.Dir(path))
	var file *os.File
	if err == nil {
		file, err = f.Root.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j, err := create(file)
	if err != nil {
		return nil, errors.Join(err, f.Root.Remove(path))
	}
	return j, nil
}

// continueJournal opens the journal of a resumed attempt for appending.
func (f *Folder) continueJournal(path string, from trajectories.Resume) (*trajectories.Journal, error) {
	info, err := f.Root.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file", path)
	}
	var file *os.File
	if err == nil {
		file, err = f.Root.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("continue journal: %w", err)
	}
	return trajectories.ReopenFile(file, from)
}

// writeEvent appends an event to events.jsonl and removes a partially written line.
// The run reports the first write error when it ends and continues until then,
// because the journals are authoritative.
func (f *Folder) writeEvent(e Event, redact func([]byte) []byte) {
	line, err := e.Line()
	if err == nil && redact != nil {
		line, err = trajectories.RedactJSON(bytes.TrimSuffix(line, []byte("\n")), redact)
		line = append(line, '\n')
	}
	if err == nil {
		_, err = f.events.Write(line)
		if err == nil {
			f.eventsSize += int64(len(line))
		} else {
			err = errors.Join(err, f.events.Truncate(f.eventsSize))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.eventsError == nil && err != nil {
		f.eventsError = fmt.Errorf("write events: %w", err)
	}
}

// completeLength returns the length of a file up to and including its last newline.
func completeLength(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 4<<10)
	for end := info.Size(); end > 0; {
		from := max(0, end-int64(len(block)))
		part := block[:end-from]
		if _, err := file.ReadAt(part, from); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
		end = from
	}
	return 0, nil
}

func (f *Folder) eventsErr() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.eventsError
}

// recordImage stores the image of a sandbox until EndSession writes it to run.json.
func (f *Folder) recordImage(info env.Info) {
	if info.Image == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.images[info.Image] = cmp.Or(info.ImageDigest, info.ImageID)
}
