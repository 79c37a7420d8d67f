package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/trajectories"
)

// LockFile is the file in the folder of a run that has the PID of its process.
const LockFile = ".lock"

const attemptsDir = "attempts"

// Limits on the size of files that mini reads at once, in bytes.
const (
	MaxManifest = 16 << 20
	maxResults  = 512 << 20
	maxLock     = 32
)

// Layout has the paths in the folder of a run.
type Layout struct {
	Dir string
	// Root is the folder opened for writing; nil if it is only read.
	Root *rootdir.Dir
}

// Journal returns the path of an attempt's journal.
func (l Layout) Journal(id string, n int) string {
	return filepath.Join(l.Dir, id, attemptsDir, strconv.Itoa(n), "journal.jsonl")
}

// Trajectory returns the path of an instance's trajectory.
func (l Layout) Trajectory(id string) string { return filepath.Join(l.Dir, id, id+".traj.json") }

// Listed is an instance with a folder of attempts.
type Listed struct {
	ID       string
	Attempts []int // numbers, ascending
	Err      error // why the attempts cannot be listed
}

// List returns the instances in the folder.
func (l Layout) List() ([]Listed, error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	return l.listIn(entries), nil
}

func (l Layout) listIn(entries []os.DirEntry) (all []Listed) {
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		numbers, err := l.attempts(e.Name())
		if !errors.Is(err, os.ErrNotExist) {
			all = append(all, Listed{e.Name(), numbers, err})
		}
	}
	return all
}

// attempts returns the numbers of an instance's attempts, ascending.
func (l Layout) attempts(id string) ([]int, error) {
	lstat, readDir := os.Lstat, os.ReadDir
	if l.Root != nil {
		lstat, readDir = l.Root.Lstat, l.Root.ReadDir
	}
	dir := filepath.Join(l.Dir, id, attemptsDir)
	info, err := lstat(dir)
	if err == nil && !info.IsDir() { // a link could lead to another run
		err = fmt.Errorf("%s is not a folder; replace it by one", dir)
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = readDir(dir)
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

// ReadResults reads results.json. The folder is not trusted.
func ReadResults(dir string) (res Results, err error) {
	err = readJSON(filepath.Join(dir, datasets.ResultsFile), maxResults, &res)
	return res, err
}

// readJSON reads a JSON file of at most limit bytes.
func readJSON(path string, limit int64, v any) error {
	data, err := readRegularFile(path, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// readRegularFile reads a file of at most limit bytes. It rejects links and pipes,
// because the folder is not trusted.
func readRegularFile(path string, limit int64) ([]byte, error) {
	f, err := rootdir.OpenRegular(path, syscall.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	if info, err := f.Stat(); err != nil || info.Size() > limit {
		return nil, errors.Join(err, fmt.Errorf("%s has more than %d MB", path, max(limit>>20, 1)))
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// LockHolder returns the PID in the lock file as text; "" if the file is missing or
// larger than maxLock.
func LockHolder(dir string) string {
	data, err := readRegularFile(filepath.Join(dir, LockFile), maxLock)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// workerPID returns the PID in the lock file if that process is alive, otherwise 0.
// It does not acquire the lock, because a mini that starts meanwhile would find the
// folder locked.
func workerPID(dir string) int {
	pid, err := strconv.Atoi(LockHolder(dir))
	if err != nil || pid <= 0 {
		return 0
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return 0
	}
	defer p.Release() //nolint:errcheck // nothing to release
	if err := p.Signal(syscall.Signal(0)); err != nil && !os.IsPermission(err) {
		return 0
	}
	return pid
}

// ReadEnds returns the header and the outcome of a journal, and whether it has an
// outcome. The header is empty if it cannot be read. The journal may be missing,
// because its attempt is being created, and must be a regular file, because a pipe
// in an untrusted folder would block.
func ReadEnds(journal string) (h trajectories.Header, out trajectories.Outcome, ended bool, err error) {
	info, err := os.Lstat(journal)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return h, out, false, nil
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("its journal is not a plain file")
	case err == nil:
		out, ended, err = trajectories.ReadOutcome(journal)
	}
	if err == nil {
		h = readHeader(journal)
	}
	return h, out, ended, err
}

// readHeader returns the header of a journal, or an empty one if it cannot be read.
func readHeader(journal string) trajectories.Header {
	h, err := trajectories.ReadHeader(journal)
	if err != nil {
		return trajectories.Header{}
	}
	return h
}

// RepetitionOf returns the repetition in a journal's header. It is 1 in headers of
// older versions, which lack the repetition, and at most MaxRepetitions.
func RepetitionOf(h trajectories.Header) int { return min(max(1, h.Repetition), MaxRepetitions) }
