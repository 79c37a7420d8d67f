// Package saved gives verdicts on evaluations of the past, from the logs that
// they left. It runs nothing, and needs no container.
//
//	found, err := saved.Find([]string{"logs/run_evaluation/first"})
//	rows, err := saved.ReadRows(ctx, sources, found.IDs())
//	for r := range saved.Grader{}.Grade(ctx, found.Folders, rows) { ... }
package saved

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
)

// names of the log within its folder; the first one that is there counts.
var logNames = []string{"test_output.txt", "test_output.txt.gz"}

// patchName is the model's patch beside a log.
const patchName = "patch.diff"

// traces are files of an evaluation that may have left no log. A report alone is
// one too: nobody could tell whence it is.
var traces = []string{patchName, "run_instance.log", "eval.sh", "report.json"}

// Folder is a folder with the log of one evaluation.
type Folder struct {
	Path       string // as it was named, or found below what was named
	InstanceID string // the folder's name
	log        string // the log's name
	real       string // the path without links
}

// Found is what a search found.
type Found struct {
	Folders []Folder // in the natural order of their paths
	// Logless are folders of evaluations that have no log: the patch did not
	// apply, or the evaluation was cut short.
	Logless []string
}

// IDs are the instances that the folders are named after, each once, sorted.
func (f Found) IDs() []string {
	var ids []string
	for _, folder := range f.Folders {
		ids = append(ids, folder.InstanceID)
	}
	slices.SortFunc(ids, datasets.Natural)
	return slices.Compact(ids)
}

// ErrNoLogs says that there is no log where one was looked for.
var ErrNoLogs = errors.New("no test_output.txt and no test_output.txt.gz")

// Find looks for logs in folders, and in all folders below them. A folder is
// taken once, however many ways lead there: links to folders are followed when
// all else has been seen, so that circles of them end. Each of the paths has to
// lead to a log; the error wraps ErrNoLogs when one does not.
func Find(paths []string) (Found, error) {
	s := search{seen: map[string]bool{}}
	for _, path := range paths {
		if err := s.start(path); err != nil {
			return Found{}, err
		}
	}
	byPath := func(a, b Folder) int { return datasets.Natural(a.Path, b.Path) }
	slices.SortFunc(s.found.Folders, byPath)
	slices.SortFunc(s.found.Logless, datasets.Natural)
	return s.found, nil
}

type search struct {
	found Found
	seen  map[string]bool // folders, by the path without links
	links []string        // to folders, yet to be followed
}

// start looks below one path that was named.
func (s *search) start(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such folder", path)
	case err != nil:
		return fmt.Errorf("find logs: %w", err)
	case slices.Contains(logNames, filepath.Base(path)):
		path = filepath.Dir(path) // somebody named the log itself
	case !info.IsDir():
		return fmt.Errorf("%s: not a folder; name one that holds logs", path)
	}
	before := len(s.found.Folders)
	real, err := s.follow(path)
	for len(s.links) > 0 && err == nil {
		slices.SortFunc(s.links, datasets.Natural)
		links := s.links
		s.links = nil
		for _, link := range links {
			if _, err = s.follow(link); err != nil {
				break
			}
		}
	}
	if err == nil && len(s.found.Folders) == before && !s.has(real) {
		err = fmt.Errorf("%s: %w in it or below it", path, ErrNoLogs)
	}
	return err
}

// has says that a log was found in a folder or below it.
func (s *search) has(real string) bool {
	return slices.ContainsFunc(s.found.Folders, func(f Folder) bool {
		return f.real == real || strings.HasPrefix(f.real, strings.TrimSuffix(real, string(filepath.Separator))+string(filepath.Separator))
	})
}

// follow walks a folder that may be a link, and returns its path without links.
func (s *search) follow(path string) (real string, err error) {
	real, err = filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", fmt.Errorf("find logs: %w", err)
	}
	return real, s.walk(filepath.Clean(path), real)
}

// walk takes a folder and what is below it. real is its path without links.
func (s *search) walk(path, real string) error {
	if s.seen[real] {
		return nil
	}
	s.seen[real] = true
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("find logs: %w", err)
	}
	has := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		below := filepath.Join(path, name)
		switch {
		case e.IsDir():
			if err := s.walk(below, filepath.Join(real, name)); err != nil {
				return err
			}
		case slices.Contains(logNames, name) || slices.Contains(traces, name):
			has[name] = true
		case e.Type()&fs.ModeSymlink != 0:
			if info, err := os.Stat(below); err == nil && info.IsDir() { // a link to nowhere is nobody's log
				s.links = append(s.links, below)
			}
		}
	}
	s.take(path, real, has)
	return nil
}

// take adds a folder that has files of an evaluation.
func (s *search) take(path, real string, has map[string]bool) {
	for _, name := range logNames {
		if has[name] {
			id := filepath.Base(path)
			if strings.Trim(id, ".") == "" { // of "." or ".."
				id = filepath.Base(real)
			}
			s.found.Folders = append(s.found.Folders, Folder{Path: path, InstanceID: id, log: name, real: real})
			return
		}
	}
	if len(has) > 0 {
		s.found.Logless = append(s.found.Logless, path)
	}
}
