// Package savedlogs grades the saved logs of earlier evaluations. It runs no tests
// and needs no container.
//
//	found, err := savedlogs.FindLogs([]string{"logs/run_evaluation/first"})
//	rows, err := savedlogs.ReadRows(ctx, sources, found.IDs())
//	for r := range savedlogs.Grader{}.Grade(ctx, found.Folders, rows) { ... }
package savedlogs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
)

// logNames are the possible names of a log; the first existing one is used.
var logNames = []string{"test_output.txt", "test_output.txt.gz"}

// patchName is the name of the model's patch beside a log.
const patchName = "patch.diff"

// otherFiles are the other files of an evaluation. A folder with one of them but no log
// is an evaluation without a log.
var otherFiles = []string{patchName, "run_instance.log", "eval.sh", "report.json"}

// Folder is a folder with the log of one evaluation.
type Folder struct {
	Path       string // a path given by the user, or a path below one
	InstanceID string // name of the folder
	logName    string // file name of the log
	realPath   string // path without symbolic links
}

// SearchResult is the result of FindLogs.
type SearchResult struct {
	Folders []Folder // in natural order of their paths
	// WithoutLog lists the folders of evaluations without a log, for example
	// because the patch did not apply or the evaluation was interrupted.
	WithoutLog []string
	// Skipped lists paths that cannot be read, and links to paths outside the
	// folder given by the user.
	Skipped []Skipped
}

// Skipped is a path that was not searched.
type Skipped struct{ Path, Reason string }

// IDs returns the distinct instance ids of the folders, sorted.
func (f SearchResult) IDs() []string {
	var ids []string
	for _, folder := range f.Folders {
		ids = append(ids, folder.InstanceID)
	}
	slices.SortFunc(ids, datasets.CompareNatural)
	return slices.Compact(ids)
}

// ErrNoLogs reports a path without logs.
var ErrNoLogs = errors.New("no test_output.txt and no test_output.txt.gz")

// FindLogs searches paths and all folders below them for logs. It returns each
// folder once, even if several paths lead to it. It skips unreadable folders.
// Below a path it does not follow links to folders: FindLogs finds a target below
// the same path anyway, and skips one outside. The error wraps ErrNoLogs if there
// is no log at all, or a path has no log and nothing was skipped in it.
func FindLogs(paths []string) (SearchResult, error) {
	s := searcher{seen: map[string]bool{}}
	for _, path := range paths {
		if err := s.searchPath(path); err != nil {
			return SearchResult{}, err
		}
	}
	byPath := func(a, b Folder) int { return datasets.CompareNatural(a.Path, b.Path) }
	slices.SortFunc(s.found.Folders, byPath)
	slices.SortFunc(s.found.WithoutLog, datasets.CompareNatural)
	slices.SortFunc(s.found.Skipped, func(a, b Skipped) int { return datasets.CompareNatural(a.Path, b.Path) })
	if len(s.found.Folders) == 0 && len(s.found.Skipped) > 0 {
		first := s.found.Skipped[0]
		return SearchResult{}, fmt.Errorf("%w that can be read: %s: %s", ErrNoLogs, first.Path, first.Reason)
	}
	return s.found, nil
}

type searcher struct {
	found   SearchResult
	topPath string          // the path given by the user, without symbolic links
	seen    map[string]bool // folders, by path without symbolic links
}

// searchPath searches one path given by the user.
func (s *searcher) searchPath(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such folder", path)
	case err != nil:
		return fmt.Errorf("find logs: %w", err)
	case slices.Contains(logNames, filepath.Base(path)):
		path = filepath.Dir(path) // the user gave the log itself
	case !info.IsDir():
		return fmt.Errorf("%s: not a folder; name a folder with logs", path)
	}
	if s.topPath, err = resolveLinks(path); err != nil {
		return fmt.Errorf("find logs: %w", err)
	}
	folders, skipped := len(s.found.Folders), len(s.found.Skipped)
	s.walk(filepath.Clean(path), s.topPath)
	if len(s.found.Folders) == folders && len(s.found.Skipped) == skipped && !s.hasLogBelow(s.topPath) {
		return fmt.Errorf("%s: %w in it or below it", path, ErrNoLogs)
	}
	return nil
}

// resolveLinks resolves symbolic links and returns an absolute path.
func resolveLinks(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func (s *searcher) skip(path, reason string) {
	s.found.Skipped = append(s.found.Skipped, Skipped{path, reason})
}

// skipUnreadable skips a path that cannot be read, with the error as the reason.
func (s *searcher) skipUnreadable(path string, err error) {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	s.skip(path, err.Error())
}

// staysInside reports whether a link points below the path given by the user. If
// not, it skips the link. A broken link counts as inside, so that reading the
// link reports the error.
func (s *searcher) staysInside(link string) bool {
	realPath, err := resolveLinks(link)
	if err != nil || isBelow(s.topPath, realPath) {
		return true
	}
	s.skip(link, "the link points outside the given folder; name its target instead")
	return false
}

// isBelow reports whether path equals top or is below it. Neither may contain
// symbolic links.
func isBelow(top, path string) bool {
	const separator = string(filepath.Separator)
	return path == top || strings.HasPrefix(path, strings.TrimSuffix(top, separator)+separator)
}

// hasLogBelow reports whether the search has found a log in a folder or below it.
func (s *searcher) hasLogBelow(realPath string) bool {
	return slices.ContainsFunc(s.found.Folders, func(f Folder) bool { return isBelow(realPath, f.realPath) })
}

// walk searches a folder. realPath is the path of the folder without symbolic
// links.
func (s *searcher) walk(path, realPath string) {
	if s.seen[realPath] {
		return
	}
	s.seen[realPath] = true
	entries, err := os.ReadDir(path)
	if err != nil {
		s.skipUnreadable(path, err)
		return
	}
	present := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		entryPath, isLink := filepath.Join(path, name), e.Type()&fs.ModeSymlink != 0
		switch {
		case e.IsDir():
			s.walk(entryPath, filepath.Join(realPath, name))
		case slices.Contains(logNames, name) || slices.Contains(otherFiles, name):
			present[name] = !isLink || s.staysInside(entryPath)
		case isLink:
			if info, err := os.Stat(entryPath); err == nil && info.IsDir() { // other links are irrelevant
				s.staysInside(entryPath)
			}
		}
	}
	s.addFolder(path, realPath, present)
}

// addFolder adds a folder to the result if it has files of an evaluation. present
// has the names of these files; the value is false for a link that was skipped.
func (s *searcher) addFolder(path, realPath string, present map[string]bool) {
	for _, name := range logNames {
		if present[name] {
			id := filepath.Base(path)
			if strings.Trim(id, ".") == "" { // "." or ".."
				id = filepath.Base(realPath)
			}
			s.found.Folders = append(s.found.Folders, Folder{Path: path, InstanceID: id, logName: name, realPath: realPath})
			return
		}
	}
	if slices.Contains(slices.Collect(maps.Values(present)), true) {
		s.found.WithoutLog = append(s.found.WithoutLog, path)
	}
}
