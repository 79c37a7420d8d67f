// Package web shows runs in a browser: pages of runs, instances, attempts and comparisons. A
// Server serves them on this machine; WriteFile writes them into one file. Both only read, and
// both treat run folders as untrusted.
//
// A page is made in two steps: a function such as newRunPage collects its data in a struct, and a
// template in templates/ formats it. All numbers come from packages report and compare.
package web

import (
	"fmt"
	"path/filepath"

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
	// Redact removes the secrets of this machine from texts. WriteFile needs it; nil leaves them.
	Redact func([]byte) []byte
}

// Viewer holds the runs that are shown. Its methods are safe for concurrent use.
type Viewer struct {
	runs     []*run
	attempts attemptCache
	redact   func([]byte) []byte
}

// Open opens the folders of runs. It returns an error for a folder that is not one. The error
// wraps runs.ErrNotRunFolder.
func Open(dirs []string, o Options) (*Viewer, error) {
	v := &Viewer{attempts: attemptCache{redact: o.Redact}, redact: o.Redact}
	names := compare.Names(dirs)
	for i, dir := range dirs {
		r := &run{Number: i, Dir: filepath.Clean(dir), Name: names[i], rows: o.Rows}
		if dir == o.Temporary {
			r.Name, r.IsTemporary = filepath.Base(dir), true
		}
		if _, err := r.load(); err != nil {
			return nil, fmt.Errorf("open %s: %w", dir, err)
		}
		v.runs = append(v.runs, r)
	}
	return v, nil
}

// run returns the run with a number, or nil.
func (v *Viewer) run(number int) *run {
	if number < 0 || number >= len(v.runs) {
		return nil
	}
	return v.runs[number]
}
