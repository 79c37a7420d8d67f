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
	"maps"
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
	// Skipped could not be read, or lead out of the folder that was named.
	Skipped []Skipped
}

// Skipped is a path that was passed over.
type Skipped struct{ Path, Reason string }

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
// all else has been seen, so that circles of them end. Links that lead out of the
// path that was named, and what cannot be read, are skipped. Each of the paths has
// to lead to a log, or to something skipped; the error wraps ErrNoLogs when one
// does not, and when there is no log at all.
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
	slices.SortFunc(s.found.Skipped, func(a, b Skipped) int { return datasets.Natural(a.Path, b.Path) })
	if len(s.found.Folders) == 0 && len(s.found.Skipped) > 0 {
		first := s.found.Skipped[0]
		return Found{}, fmt.Errorf("%w that can be read: %s: %s", ErrNoLogs, first.Path, first.Reason)
	}
	return s.found, nil
}

type search struct {
	found Found
	top   string          // the path that was named, without links
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
	if s.top, err = withoutLinks(path); err != nil {
		return fmt.Errorf("find logs: %w", err)
	}
	folders, skipped := len(s.found.Folders), len(s.found.Skipped)
	s.walk(filepath.Clean(path), s.top)
	for len(s.links) > 0 {
		slices.SortFunc(s.links, datasets.Natural)
		links := s.links
		s.links = nil
		for _, link := range links {
			s.follow(link)
		}
	}
	if len(s.found.Folders) == folders && len(s.found.Skipped) == skipped && !s.has(s.top) {
		return fmt.Errorf("%s: %w in it or below it", path, ErrNoLogs)
	}
	return nil
}

// withoutLinks is the path of what a path leads to.
func withoutLinks(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func (s *search) skip(path, reason string) {
	s.found.Skipped = append(s.found.Skipped, Skipped{path, reason})
}

// skipUnread skips what an error is about, whose path it names.
func (s *search) skipUnread(path string, err error) {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	s.skip(path, err.Error())
}

// leadsOut skips a link out of the path that was named.
func (s *search) leadsOut(link, real string) bool {
	if below(s.top, real) {
		return false
	}
	s.skip(link, "it is a link that leads out of the folder that was named; name what it leads to")
	return true
}

// staysIn says that a link to a file does not lead out; one to nowhere is a file
// that cannot be read.
func (s *search) staysIn(link string) bool {
	real, err := withoutLinks(link)
	return err != nil || !s.leadsOut(link, real)
}

// below says that a path is another one, or below it. Both are without links.
func below(top, path string) bool {
	return path == top || strings.HasPrefix(path, strings.TrimSuffix(top, string(filepath.Separator))+string(filepath.Separator))
}

// has says that a log was found in a folder or below it.
func (s *search) has(real string) bool {
	return slices.ContainsFunc(s.found.Folders, func(f Folder) bool { return below(real, f.real) })
}

// follow walks the folder that a link leads to.
func (s *search) follow(link string) {
	real, err := withoutLinks(link)
	if err != nil {
		s.skipUnread(link, err)
	} else if !s.leadsOut(link, real) {
		s.walk(link, real)
	}
}

// walk takes a folder and what is below it. real is its path without links.
func (s *search) walk(path, real string) {
	if s.seen[real] {
		return
	}
	s.seen[real] = true
	entries, err := os.ReadDir(path)
	if err != nil {
		s.skipUnread(path, err)
		return
	}
	has := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		at, isLink := filepath.Join(path, name), e.Type()&fs.ModeSymlink != 0
		switch {
		case e.IsDir():
			s.walk(at, filepath.Join(real, name))
		case slices.Contains(logNames, name) || slices.Contains(traces, name):
			has[name] = !isLink || s.staysIn(at)
		case isLink:
			if info, err := os.Stat(at); err == nil && info.IsDir() { // a link without a target is no log
				s.links = append(s.links, at)
			}
		}
	}
	s.take(path, real, has)
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
	if slices.Contains(slices.Collect(maps.Values(has)), true) {
		s.found.Logless = append(s.found.Logless, path)
	}
}
