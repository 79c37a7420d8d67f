package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
	"github.com/minibench/mini/trajectories/filter"
	"github.com/minibench/mini/trajectories/timeline"
)

// Source is where trajectories are: a run, a folder of runs or files, a part of
// a run, or one file. It may be walked again, which reads only those files of others
// again that have changed. It is for one goroutine at a time.
type Source struct {
	path  string
	file  bool // one file
	part  bool // of a run
	known map[string]summary
}

// summary is what is remembered of a file.
type summary struct {
	size  int64
	mod   time.Time
	text  string // that was searched for
	items []*Item
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
	return &Source{path: filepath.Clean(path), file: !info.IsDir(), known: map[string]summary{}}, nil
}

// Single says that the source is one file, or was found to be one instance of a
// run: if it has one trajectory, that is what was meant.
func (s *Source) Single() bool { return s.file || s.part }

// Walk finds all trajectories and calls found with them, batch by batch: of a run
// what results.json has at once, then what takes opening files. Where f has a text,
// each of them is searched for it. The error is ctx's, or found's.
func (s *Source) Walk(ctx context.Context, f filter.Filter, found func(Batch) error) error {
	w := &walk{Source: s, ctx: ctx, filter: f, found: found}
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
	here, err := filepath.Abs(s.path)
	if err != nil {
		return nil, "", 0, err
	}
	dir, shown := here, s.path
	if s.file {
		dir, shown = filepath.Dir(dir), filepath.Dir(shown)
	}
	for range 4 { // RUN/<id>/attempts/<n>
		index, err := runner.ReadIndex(shown)
		if err == nil {
			id, attempt, ok := index.Has(s.path)
			if ok && (id != "" || here == dir) && (!s.file || attempt > 0) {
				return index, id, attempt, nil
			}
			return nil, "", 0, nil
		}
		if !errors.Is(err, runner.ErrNoRun) && !errors.Is(err, fs.ErrPermission) {
			return nil, "", 0, err
		}
		dir = filepath.Dir(dir)
		if shown = filepath.Join(shown, ".."); !filepath.IsLocal(shown) {
			shown = dir // above the working directory
		}
	}
	return nil, "", 0, nil
}

// walk is one time through a source.
type walk struct {
	*Source
	ctx    context.Context //nolint:containedctx // it lives as long as Walk does
	filter filter.Filter
	found  func(Batch) error
	files  int
	live   bool
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
		if failed != nil || dir == w.path {
			return failed == nil
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

// run walks a run, or one instance or attempt of it.
func (w *walk) run(x *runner.Index, id string, attempt int) error {
	w.live = w.live || x.Worker > 0
	several := slices.ContainsFunc(x.Attempts, func(a runner.Indexed) bool { return a.Sample > 1 })
	judged, err := verdicts.Read(x.Dir)
	if err != nil {
		x.Unread = append(x.Unread, err.Error())
	}
	var ended []*Item
	begun := map[string][]*Item{} // by instance, those that results.json does not have
	for _, a := range x.Attempts {
		if id != "" && a.ID != id || attempt > 0 && a.Number != attempt {
			continue
		}
		w.files++
		it := &Item{
			ID: a.ID, Attempt: a.Number, Sample: a.Sample, Run: x.Dir, Path: a.Journal, Selected: a.Selected,
			Model: cmp.Or(x.Manifest.Model.Name, x.Manifest.Model.Class),
		}
		if a.Result == nil {
			begun[a.ID] = append(begun[a.ID], it)
			continue
		}
		it.take(a.Attempt)
		it.judge(judged.Verdicts)
		ended = append(ended, it)
	}
	newest := map[string]int{} // of a sample: the attempt
	for _, it := range ended {
		newest[it.ID+"#"+fmt.Sprint(it.Sample)] = it.Attempt
	}
	if err := w.tell(w.searched(shown(ended, several)), x.Unread...); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(begun)) {
		for _, it := range begun[id] {
			it.read()
			sample := it.ID + "#" + fmt.Sprint(it.Sample)
			newest[sample] = max(newest[sample], it.Attempt)
			several = several || it.Sample > 1
		}
		for _, it := range begun[id] {
			it.Selected = newest[it.ID+"#"+fmt.Sprint(it.Sample)] == it.Attempt
			if it.Selected && it.State == Stopped && x.Worker > 0 {
				it.State = Running
			}
			it.judge(judged.Verdicts)
		}
		if err := w.tell(w.searched(shown(begun[id], several))); err != nil {
			return err
		}
	}
	return nil
}

// shown leaves samples out where there is one of each instance.
func shown(items []*Item, several bool) []*Item {
	for _, it := range items {
		if !several {
			it.Sample = 0
		}
	}
	return items
}

// read completes an attempt from its journal.
func (it *Item) read() {
	a, err := runner.ReadAttempt(it.Path, it.Attempt)
	if err != nil {
		it.State, it.Problem = Broken, err.Error()
		return
	}
	it.take(a)
	it.Sample = a.Sample
}

// searched searches attempts for the text of the filter.
func (w *walk) searched(items []*Item) []*Item {
	if w.filter.Text == "" {
		return items
	}
	for _, it := range items {
		if w.ctx.Err() != nil {
			break
		}
		info, err := os.Stat(it.Path)
		if s, ok := w.known[it.Path]; err == nil && ok && s.same(info, w.filter.Text) {
			it.lacks = s.items[0].lacks
			continue
		}
		it.lacks = true
		if mayHave(it.Path, w.filter.Text) {
			t, _ := Open(it) // what can be read is searched
			it.lacks = t == nil || !w.filter.Has(t.Timeline)
		}
		if err == nil {
			w.known[it.Path] = summary{info.Size(), info.ModTime(), w.filter.Text, []*Item{it}}
		}
	}
	return items
}

// mayHave says whether a journal may have a text, by its bytes: reading it takes ten
// times as long. What is no UTF-8 stands in it as base64.
func mayHave(path, needle string) bool {
	data, err := os.ReadFile(path) //nolint:gosec // G304: the file that is inspected
	if err != nil {
		return false
	}
	quoted, err := text.JSON(needle)
	if err != nil {
		return true
	}
	all := string(data)
	return strings.Contains(all, `"base64"`) || filter.Matcher(strings.Trim(string(quoted), "\"\n"))(all)
}

func (s summary) same(info fs.FileInfo, text string) bool {
	return s.size == info.Size() && s.mod.Equal(info.ModTime()) && s.text == text
}

// foreign reads the trajectories in a file of any format. A file that was met in a
// folder, and is none, is passed over.
func (w *walk) foreign(path string, named bool) error {
	info, err := os.Stat(path)
	if err == nil {
		if s, ok := w.known[path]; ok && s.same(info, w.filter.Text) {
			return w.tell(s.items)
		}
	}
	var items []*Item
	for f, err := range convert.All(path) {
		if w.ctx.Err() != nil {
			return w.tell(nil)
		}
		if errors.Is(err, convert.ErrUnknown) && !named {
			continue
		}
		it := &Item{Path: path, Selected: true, lacks: w.filter.Text != ""}
		if err != nil {
			it.ID, it.State, it.Problem = nameOf(path), Broken, err.Error()
			it.Row = -len(items) - 1 // no row: it cannot be opened
		} else {
			it.ID, it.Row, it.Format, it.Attempt = f.Header.InstanceID, f.Row, f.Format, f.Header.Attempt
			it.Model = f.Header.ModelName
			t, err := timeline.Read(f.Records)
			it.sum(t)
			if it.lacks = !w.filter.Has(t); err != nil {
				it.State, it.Problem = Broken, err.Error()
			}
		}
		items = append(items, it)
		if len(items)%100 == 0 {
			if err := w.tell(items[len(items)-100:]); err != nil {
				return err
			}
		}
	}
	if info != nil && len(items) > 0 {
		w.known[path] = summary{info.Size(), info.ModTime(), w.filter.Text, items}
	}
	return w.tell(items)
}

// nameOf is a file as an instance is called.
func nameOf(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".json", ".jsonl", ".traj", ".trajectory"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// judge gives an attempt its verdict. The patch itself is in the journal, which is
// not opened: its size tells an earlier one of the same sample, most of the time.
func (it *Item) judge(all []verdicts.Verdict) {
	if it.State != Ended || !it.Selected {
		return
	}
	v := newest(all, func(v verdicts.Verdict) bool {
		return v.Instance == it.ID && max(1, v.Sample) == max(1, it.Sample) && v.Basis.PatchBytes == it.patchBytes
	})
	if v == nil {
		return
	}
	it.Verdict = string(v.Class)
	for _, name := range v.FlagNames() {
		if !slices.Contains(it.Flags, name) {
			it.Flags = append(it.Flags, name)
		}
	}
}

// newest is the verdict that fits and was written last; the baseline of the machine
// is none. It is nil where none fits.
func newest(all []verdicts.Verdict, fits func(verdicts.Verdict) bool) *verdicts.Verdict {
	var found *verdicts.Verdict
	for i, v := range all {
		baseline := v.Model == evaluate.GoldModel || v.Model == evaluate.NoopModel
		if !baseline && fits(v) && (found == nil || v.Written.After(found.Written)) {
			found = &all[i]
		}
	}
	return found
}

// Trajectory is one attempt in memory, as it is read.
type Trajectory struct {
	*timeline.Timeline
	Item *Item
	size int64
	mod  time.Time
}

// Open reads a trajectory. Of a damaged one the beginning is there, and its end
// says so.
func Open(it *Item) (*Trajectory, error) {
	switch {
	case it.Path == "":
		return nil, fmt.Errorf("%s: results.json is all that is left; its journal is not there", it.ID)
	case it.Row < 0:
		return nil, errors.New(it.Problem)
	}
	info, err := os.Stat(it.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file", it.Path)
	}
	t := &Trajectory{Item: it, size: info.Size(), mod: info.ModTime()}
	if it.Format == "" || it.Format == trajectories.Format {
		t.Timeline, err = timeline.Read(trajectories.Read(it.Path))
	} else {
		t.Timeline, err = readRow(it)
	}
	if err != nil && (t.Timeline == nil || t.IsEmpty()) {
		return nil, err
	}
	return t, nil
}

// readRow reads a trajectory from a file of another format.
func readRow(it *Item) (*timeline.Timeline, error) {
	for f, err := range convert.All(it.Path) {
		switch {
		case err != nil && it.Row == 0:
			return nil, err
		case err == nil && f.Row == it.Row:
			return timeline.Read(f.Records)
		}
	}
	return nil, fmt.Errorf("%s has changed: its row %d is not there any more", it.Path, it.Row)
}

// changed says whether the file is another one than was read.
func (t *Trajectory) changed() bool {
	info, err := os.Stat(t.Item.Path)
	return err == nil && (info.Size() != t.size || !info.ModTime().Equal(t.mod))
}
