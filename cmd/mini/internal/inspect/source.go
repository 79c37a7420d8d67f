package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories/convert"
)

// Source is where trajectories are: a run, a folder of runs or files, a part of
// a run, or one file. It may be gone through again, which reads anew only what
// has changed. It is for one goroutine at a time.
type Source struct {
	path  string
	file  bool // one file
	part  bool // of a run
	known map[string]summary
	runs  map[string]*judged
}

// Batch is what was found since the batch before.
type Batch struct {
	// Items are new, or take the place of those with the same key.
	Items []*Item
	// Files were looked at so far.
	Files int
	// Notes say what could not be read that is no trajectory.
	Notes []string
	// Live says that a mini works on some of it.
	Live bool
}

// OpenSource looks what a path is.
func OpenSource(path string) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is neither a file nor a folder", path)
	}
	return &Source{path: filepath.Clean(path), file: !info.IsDir(), known: map[string]summary{}, runs: map[string]*judged{}}, nil
}

// Single says that the source is one file, or was found to be one instance of a
// run: if it has one trajectory, that is what was meant.
func (s *Source) Single() bool { return s.file || s.part }

// Walk tells of all trajectories, batch by batch: of a run what results.json has
// at once, then what takes opening files. The error is ctx's, or found's.
func (s *Source) Walk(ctx context.Context, found func(Batch) error) error {
	w := &walk{Source: s, ctx: ctx, found: found}
	index, id, attempt, err := s.within()
	if err != nil {
		return err
	}
	switch {
	case index != nil:
		s.part = id != ""
		return w.run(index, id, attempt)
	case s.file:
		return w.foreign(s.path, true)
	}
	return w.folder()
}

// within finds the run that the path is, or is a part of.
func (s *Source) within() (index *runner.Index, id string, attempt int, err error) {
	dir := s.path
	if s.file {
		dir = filepath.Dir(dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", 0, err
	}
	for range 4 { // RUN/<id>/attempts/<n>
		index, err := runner.ReadIndex(s.shown(dir))
		if err == nil {
			id, attempt, ok := index.Has(s.path)
			here, _ := filepath.Abs(s.path)
			if ok && (id != "" || here == dir) && (!s.file || attempt > 0) {
				return index, id, attempt, nil
			}
			return nil, "", 0, nil
		}
		if !errors.Is(err, runner.ErrNoRun) && !errors.Is(err, fs.ErrPermission) {
			return nil, "", 0, err
		}
		dir = filepath.Dir(dir)
	}
	return nil, "", 0, nil
}

// shown is a folder at or above the path, as relative as that was given.
func (s *Source) shown(dir string) string {
	if filepath.IsAbs(s.path) {
		return dir
	}
	here, err := os.Getwd()
	if err != nil {
		return dir
	}
	rel, err := filepath.Rel(here, dir)
	if err != nil {
		return dir
	}
	return rel
}

// walk is one time through a source.
type walk struct {
	*Source
	ctx   context.Context //nolint:containedctx // it lives as long as Walk does
	found func(Batch) error
	files int
	live  bool
}

func (w *walk) tell(items []*Item, notes ...string) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	return w.found(Batch{Items: items, Files: w.files, Notes: notes, Live: w.live})
}

// folder walks a folder that is no run. Runs in it are read as such.
func (w *walk) folder() error {
	var failed error
	enter := func(dir string) bool {
		if failed != nil {
			return false
		}
		if dir == w.path {
			return true
		}
		index, err := runner.ReadIndex(dir)
		if err != nil {
			return true
		}
		failed = w.run(index, "", 0)
		return false
	}
	for f := range convert.Walk(w.path, enter) {
		if failed != nil {
			return failed
		}
		w.files++
		var err error
		if f.Err != nil {
			err = w.tell(nil, f.Err.Error())
		} else {
			err = w.foreign(f.Path, false)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(failed, w.tell(nil))
}

// run tells of a run, or of one instance or attempt of it.
func (w *walk) run(x *runner.Index, id string, attempt int) error {
	w.live = w.live || x.Worker > 0
	model := cmp.Or(x.Manifest.Model.Name, x.Manifest.Model.Class)
	several := false
	for _, a := range x.Attempts {
		several = several || a.Sample > 1
	}
	var items, all []*Item
	unfinished := map[*Item]runner.Indexed{}
	for _, a := range x.Attempts {
		if id != "" && a.ID != id || attempt > 0 && a.Number != attempt {
			continue
		}
		it := &Item{ID: a.ID, Attempt: a.Number, Run: x.Dir, Model: model, Path: a.Journal, Selected: a.Selected || a.Newest && a.Result == nil, State: Unread}
		if several {
			it.Sample = a.Sample
		}
		if a.Result != nil {
			it.take(a.Attempt)
		} else {
			unfinished[it] = a
		}
		items = append(items, it)
	}
	w.files += len(items)
	known := w.judged(x.Dir)
	known.judge(items)
	if err := w.tell(items, x.Unread...); err != nil {
		return err
	}
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].ID == items[0].ID {
			n++
		}
		if done := w.complete(items[:n], unfinished, x.Worker > 0); len(done) > 0 {
			if err := w.tell(done); err != nil {
				return err
			}
		}
		all = append(all, items[:n]...)
		items = items[n:]
	}
	if again := w.judge(x.Dir, all); again != nil {
		return w.tell(again)
	}
	return nil
}

// complete reads what results.json does not say of the attempts at an instance,
// and puts copies in their places, which it returns.
func (w *walk) complete(items []*Item, unfinished map[*Item]runner.Indexed, worked bool) []*Item {
	var done []*Item
	newest := map[int]int{} // sample -> attempt
	for i, old := range items {
		a, ok := unfinished[old]
		if ok {
			it := *old
			w.read(&it, a)
			items[i] = &it
			done = append(done, &it)
		}
		k := max(1, items[i].Sample)
		newest[k] = max(newest[k], items[i].Attempt)
	}
	several := len(newest) > 1
	for _, it := range done {
		if newest[max(1, it.Sample)] != it.Attempt {
			it.Selected = false
		} else if it.Selected = true; it.State == Stopped && worked {
			it.State = Running
			if !it.start.IsZero() { // its command may run for long, of which nothing is on record
				it.Took = max(it.Took, time.Since(it.start))
			}
		}
		if !several && it.Sample == 1 {
			it.Sample = 0
		}
	}
	return done
}

// read completes an attempt from its journal, where that has changed.
func (w *walk) read(it *Item, a runner.Indexed) {
	info, err := os.Lstat(a.Journal)
	if s, ok := w.known[a.Journal]; ok && err == nil && s.same(info) {
		*it = *s.items[0]
		return
	}
	found, err := runner.ReadAttempt(a.Journal, a.Number)
	if err != nil {
		it.State, it.Problem = Broken, err.Error()
		return
	}
	it.take(found)
	it.Sample = found.Sample
	if info != nil {
		kept := *it
		w.known[a.Journal] = summary{info.Size(), info.ModTime(), []*Item{&kept}}
	}
}

// summary is what is remembered of a file.
type summary struct {
	size  int64
	mod   time.Time
	items []*Item
}

func (s summary) same(info fs.FileInfo) bool {
	return s.size == info.Size() && s.mod.Equal(info.ModTime())
}
