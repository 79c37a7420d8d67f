package runner

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/env"
)

// Folder is the folder of a run, held by one mini at a time.
type Folder struct {
	dir    string
	lock   *flock.Flock
	events *os.File

	mu        sync.Mutex
	eventFail error
	images    map[string]string    // name -> id, as they are seen
	verdicts  map[string][]verdict // instance -> its verdicts, as far as they were read
}

// LockedError says that another mini holds the folder.
type LockedError struct {
	Dir string
	PID string // as that mini wrote it; may be empty
}

func (e *LockedError) Error() string {
	who := "another mini"
	if e.PID != "" {
		who += " (process " + e.PID + ")"
	}
	return fmt.Sprintf("%s: %s is working in this folder; wait for it, or give another one with -o", e.Dir, who)
}

// ErrNotRun says that a folder belongs to something else.
var ErrNotRun = errors.New("is not empty and not the folder of a run")

// The files of a run, within its folder.
const (
	lockFile    = ".lock"
	eventsFile  = "events.jsonl"
	resultsFile = "results.json"
	predsFile   = "preds.json"
	runFile     = "run.json"
	configFile  = "config.yaml"
	journalFile = "journal.jsonl"
	attemptsDir = "attempts"
)

// Open takes the folder of a run, making it where there is none. It fails with
// a *LockedError when another mini has it. A folder that is not empty must be
// a run's.
func Open(dir string) (*Folder, error) {
	if err := Fit(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for sharing
		return nil, fmt.Errorf("open run: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	for _, name := range []string{lockFile, eventsFile} { // a pipe would hang it, a link leads elsewhere
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s %w: its %s is no file; give a new one with -o", dir, ErrNotRun, name)
		}
	}
	lock := flock.New(path)
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock run %s: %w", dir, err)
	}
	if !ok {
		return nil, &LockedError{Dir: dir, PID: lockedBy(dir)}
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("open run: %w", err), lock.Unlock())
	}
	events, err := os.OpenFile(filepath.Join(dir, eventsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // results are for sharing
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open run: %w", err), lock.Unlock())
	}
	return &Folder{dir: dir, lock: lock, events: events, images: map[string]string{}}, nil
}

// Fit says whether a folder may become a run, or is one: it is not there, it is
// empty, or it is a run's. Else the error wraps ErrNotRun.
func Fit(dir string) error {
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
	return fmt.Errorf("%s %w; give a new one with -o", dir, ErrNotRun)
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Close gives the folder up.
func (f *Folder) Close() error {
	return errors.Join(f.events.Close(), f.lock.Unlock())
}

// newAttempt makes the folder of an attempt and returns the journal's path.
func (f *Folder) newAttempt(id string, n int) (string, error) {
	dir := filepath.Join(f.dir, id, attemptsDir, strconv.Itoa(n))
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for sharing
		return "", fmt.Errorf("make attempt: %w", err)
	}
	return filepath.Join(dir, journalFile), nil
}

func (f *Folder) journal(id string, n int) string {
	return filepath.Join(f.dir, id, attemptsDir, strconv.Itoa(n), journalFile)
}

// Journal is where the journal of an attempt is.
func (f *Folder) Journal(id string, attempt int) string { return f.journal(id, attempt) }

func (f *Folder) traj(id string) string {
	return filepath.Join(f.dir, id, id+".traj.json")
}

// attempts are the numbers of an instance's attempts, ascending.
func (f *Folder) attempts(id string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, id, attemptsDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	var numbers []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	sortInts(numbers)
	return numbers, nil
}

// ids are the instances that have attempts in this folder.
func (f *Folder) ids() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(f.dir, e.Name(), attemptsDir)); err == nil && e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// writeEvent appends to events.jsonl. The run goes on when that fails, and
// says so at its end: the journals are the truth.
func (f *Folder) writeEvent(e Event) {
	line, err := e.Line()
	if err == nil {
		_, err = f.events.Write(line)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.eventFail == nil && err != nil {
		f.eventFail = fmt.Errorf("write events: %w", err)
	}
}

func (f *Folder) eventsErr() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.eventFail
}

// sawImage remembers what a sandbox was made from, for run.json.
func (f *Folder) sawImage(info env.Info) {
	if info.Image == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.images[info.Image] = cmp.Or(info.ImageDigest, info.ImageID)
}
