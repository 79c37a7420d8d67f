// Package web shows runs in a browser: pages of runs, instances, attempts and comparisons. A
// Server serves them on this machine; WriteFile writes them into one file. Both treat run folders as
// untrusted, and change nothing but the labels and notes that the user sets in a form.
//
// A page is made in two steps: a function such as newRunPage collects its data in a struct, and a
// template in templates/ formats it. All numbers come from packages report and compare.
package web

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/compare"
)

// Options configures a Viewer.
type Options struct {
	// Rows returns the rows of instances by id, for gold patches and the names of tests, as far as
	// they are on this machine. It must not use the network. Rows may be nil.
	Rows func(sets []datasets.SourceInfo, ids map[string]bool) map[string]datasets.Instance
	// Temporary is a folder that is shown by its base name; may be empty.
	Temporary string
	// Find returns the folders of the runs that there are now. The pages list those of them that can be
	// read. If it is nil, the runs stay those of Open.
	Find func() ([]string, error)
	// Redact removes the secrets of this machine from texts. WriteFile needs it; nil leaves them.
	Redact func([]byte) []byte
}

// Viewer holds the runs that are shown. Its methods are safe for concurrent use.
type Viewer struct {
	options  Options
	attempts attemptCache

	mu       sync.Mutex
	runs     []*run // replaced as a whole
	found    time.Time
	findTime time.Duration
}

// Open opens the folders of runs. It returns an error for a folder that is not one. The error
// wraps runs.ErrNotRunFolder.
func Open(dirs []string, o Options) (*Viewer, error) {
	v := &Viewer{options: o, attempts: attemptCache{redact: o.Redact}}
	all, err := v.newRuns(dirs)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if _, err := r.load(); err != nil {
			return nil, fmt.Errorf("open %s: %w", r.Dir, err)
		}
	}
	v.runs = all
	return v, nil
}

// newRuns returns the runs in folders. Those that the viewer has stay the same.
func (v *Viewer) newRuns(dirs []string) ([]*run, error) {
	var paths []string
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", dir, err)
		}
		paths = append(paths, path)
	}
	old := map[string]*run{}
	for _, r := range v.runs {
		old[r.path] = r
	}
	var all []*run
	names, addresses := compare.Names(dirs), keys(paths)
	for i, dir := range dirs {
		r := &run{Dir: filepath.Clean(dir), Name: names[i], Key: addresses[i], path: filepath.ToSlash(paths[i]), rows: v.options.Rows}
		if dir == v.options.Temporary {
			r.Name, r.IsTemporary = filepath.Base(dir), true
		}
		if before := old[r.path]; before != nil && before.Name == r.Name && before.Key == r.Key {
			r = before
		}
		all = append(all, r)
	}
	return all, nil
}

// all returns the runs that are shown.
func (v *Viewer) all() []*run {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.runs
}

// refresh looks for the runs that there are now. If it cannot, the runs stay as they are.
func (v *Viewer) refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.options.Find == nil || time.Since(v.found) < max(recheck, 10*v.findTime) {
		return
	}
	start := time.Now()
	dirs, err := v.options.Find()
	if v.found = time.Now(); err != nil {
		return
	}
	if all, err := v.newRuns(dirs); err == nil {
		v.runs = all
	}
	v.findTime = time.Since(start)
}

// keys returns the names of runs in addresses: the path below the folder that contains all of them
// or, of a single run, the name of its folder.
func keys(paths []string) []string {
	if len(paths) == 1 {
		return []string{filepath.Base(paths[0])}
	}
	return compare.Names(paths)
}

// run returns the run of an address. The address may have been made when other runs were shown
// too, or fewer: it names the run whose path ends with its key. run returns nil if there is none,
// or several.
func (v *Viewer) run(key string) *run {
	if r := findRun(v.all(), key); r != nil {
		return r
	}
	v.refresh()
	return findRun(v.all(), key)
}

func findRun(all []*run, key string) *run {
	var found []*run
	for _, r := range all {
		if r.Key == key {
			return r
		}
		if key != "" && strings.HasSuffix(r.path, "/"+key) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}
