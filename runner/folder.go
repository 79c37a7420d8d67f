package runner

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Folder is the folder of a run, held by one mini at a time.
type Folder struct {
	dir    string
	root   *rootdir.Dir // nil in a folder that is only read
	lock   *flock.Flock
	own    func(verdicts.Record) bool // of verdicts; see OwnVerdicts
	events *os.File

	eventsSize int64 // up to here events has whole lines; Log.mu guards it

	mu        sync.Mutex
	eventFail error
	images    map[string]string             // name -> id, as they are seen
	verdicts  map[string][]verdicts.Verdict // instance -> its verdicts, as far as they were read
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
	eventsFile  = datasets.EventsFile
	resultsFile = datasets.ResultsFile
	predsFile   = datasets.PredsFile
	runFile     = datasets.RunFile
	configFile  = datasets.ConfigFile
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
	f := &Folder{dir: dir, lock: lock, images: map[string]string{}}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open run: %w", err), f.Close())
	}
	return f, nil
}

// open opens what a folder is worked in with.
func (f *Folder) open() (err error) {
	if err := os.WriteFile(f.lock.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return err
	}
	if f.root, err = rootdir.Open(f.dir); err != nil {
		return err
	}
	path := filepath.Join(f.dir, eventsFile)
	if f.events, err = f.root.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	if f.eventsSize, err = wholeLines(f.events); err != nil {
		return err
	}
	return f.events.Truncate(f.eventsSize) // a line that is torn is of a mini that was killed
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

// Root is the folder for those who change files in it: no link in it leads out.
func (f *Folder) Root() *rootdir.Dir { return f.root }

// Close gives the folder up.
func (f *Folder) Close() error {
	var err error
	if f.events != nil {
		err = f.events.Close()
	}
	if f.root != nil {
		err = errors.Join(err, f.root.Close())
	}
	return errors.Join(err, f.lock.Unlock())
}

// newAttempt makes the folder of an attempt and returns the journal's path.
func (f *Folder) newAttempt(id string, n int) (string, error) {
	dir := filepath.Join(f.dir, id, attemptsDir, strconv.Itoa(n))
	if err := f.root.MkdirAll(dir); err != nil {
		return "", fmt.Errorf("make attempt: %w", err)
	}
	return filepath.Join(dir, journalFile), nil
}

// newJournal makes the file of a journal, and leaves none where begin fails.
func (f *Folder) newJournal(path string, begin func(*os.File) (*trajectories.Journal, error)) (*trajectories.Journal, error) {
	file, err := f.root.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j, err := begin(file)
	if err != nil {
		return nil, errors.Join(err, f.root.Remove(path))
	}
	return j, nil
}

// continueJournal opens the journal of an attempt that goes on.
func (f *Folder) continueJournal(path string, from trajectories.Resume) (*trajectories.Journal, error) {
	info, err := f.root.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file", path)
	}
	var file *os.File
	if err == nil {
		file, err = f.root.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("continue journal: %w", err)
	}
	return trajectories.ContinueIn(file, from)
}

// Journal is where the journal of an attempt is.
func (f *Folder) Journal(id string, n int) string {
	return filepath.Join(f.dir, id, attemptsDir, strconv.Itoa(n), journalFile)
}

func (f *Folder) traj(id string) string {
	return filepath.Join(f.dir, id, id+".traj.json")
}

// attempts are the numbers of an instance's attempts, ascending.
func (f *Folder) attempts(id string) ([]int, error) {
	look, read := os.Lstat, os.ReadDir
	if f.root != nil { // what is read here is written to
		look, read = f.root.Lstat, f.root.ReadDir
	}
	dir := filepath.Join(f.dir, id, attemptsDir)
	info, err := look(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.IsDir() { // a link could lead to the attempts of another run
		err = fmt.Errorf("%s is not a folder; replace it by one", dir)
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = read(dir)
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
	slices.Sort(numbers)
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
		if _, err := os.Lstat(filepath.Join(f.dir, e.Name(), attemptsDir)); err == nil && e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// writeEvent appends to events.jsonl. The run goes on when that fails, and
// says so at its end: the journals are the truth. What was written of the line
// is cut off, so that the next event begins on a line of its own.
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
	if f.eventFail == nil && err != nil {
		f.eventFail = fmt.Errorf("write events: %w", err)
	}
}

// wholeLines is how many bytes of a file are lines with their end.
func wholeLines(file *os.File) (int64, error) {
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
