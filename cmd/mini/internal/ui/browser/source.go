package browser

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
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// Source is a place with trajectories: a run, a folder of runs or files, a part of a run, or
// one file. It can be walked repeatedly; imported files are read again only if they have
// changed. It is not safe for concurrent use.
type Source struct {
	path   string
	isFile bool // the path is a file
	isPart bool // the path is an instance or attempt of a run
	cache  map[string]cachedFile
}

// cachedFile is the cached entries of a file.
type cachedFile struct {
	size    int64
	modTime time.Time
	text    string // search text of the walk
	entries []*Entry
}

// Batch is the entries found since the previous batch.
type Batch struct {
	// Entries are new, or replace those with the same key.
	Entries []*Entry
	// Files is the number of files scanned so far.
	Files int
	// Notes are errors of files that are not trajectories.
	Notes []string
	// Running means that a process is working on a run of the source.
	Running bool
}

// OpenSource opens the source at a path.
func OpenSource(path string) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is neither a file nor a folder", path)
	}
	return &Source{path: filepath.Clean(path), isFile: !info.IsDir(), cache: map[string]cachedFile{}}, nil
}

// IsSingle reports whether the path names a file, or an instance or attempt of a run. If it
// contains one trajectory, that one is opened at once.
func (s *Source) IsSingle() bool { return s.isFile || s.isPart }

// Walk finds all trajectories and calls found with batches of them: first those in
// results.json, then those that require opening files. If f has a text, each trajectory is
// searched for it. The error is that of ctx or found.
func (s *Source) Walk(ctx context.Context, f query.Filter, found func(Batch) error) error {
	w := &walker{Source: s, ctx: ctx, filter: f, found: found}
	index, id, attempt, err := s.findRun()
	if err != nil {
		return err
	}
	switch {
	case index != nil:
		s.isPart = id != ""
		return w.walkRun(index, id, attempt)
	case s.isFile:
		return w.readFile(s.path, true)
	}
	return w.walkFolder()
}

// findRun finds the run that contains the path, and the instance and attempt it names.
func (s *Source) findRun() (index *runner.Index, id string, attempt int, err error) {
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return nil, "", 0, err
	}
	dir, shown := abs, s.path
	if s.isFile {
		dir, shown = filepath.Dir(dir), filepath.Dir(shown)
	}
	for range 4 { // RUN/<id>/attempts/<n>
		index, err := runner.ReadIndex(shown)
		if err == nil {
			id, attempt, ok := index.Locate(s.path)
			if ok && (id != "" || abs == dir) && (!s.isFile || attempt > 0) {
				return index, id, attempt, nil
			}
			return nil, "", 0, nil
		}
		if !errors.Is(err, runner.ErrNotRunFolder) && !errors.Is(err, fs.ErrPermission) {
			return nil, "", 0, err
		}
		dir = filepath.Dir(dir)
		if shown = filepath.Join(shown, ".."); !filepath.IsLocal(shown) {
			shown = dir // above the working directory
		}
	}
	return nil, "", 0, nil
}

// walker is the state of one Walk.
type walker struct {
	*Source
	ctx    context.Context //nolint:containedctx // it lives as long as Walk does
	filter query.Filter
	found  func(Batch) error
	files  int
	live   bool
}

func (w *walker) report(items []*Entry, notes ...string) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	return w.found(Batch{Entries: items, Files: w.files, Notes: notes, Running: w.live})
}

// walkFolder walks a folder that is not a run, including the runs in it.
func (w *walker) walkFolder() error {
	var failed error
	enter := func(dir string) bool {
		if failed != nil || dir == w.path {
			return failed == nil
		}
		index, err := runner.ReadIndex(dir)
		if err != nil {
			return true
		}
		failed = w.walkRun(index, "", 0)
		return false
	}
	for f := range formats.FindFiles(w.path, enter) {
		if failed != nil {
			return failed
		}
		w.files++
		var err error
		if f.Err != nil {
			err = w.report(nil, f.Err.Error())
		} else {
			err = w.readFile(f.Path, false)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(failed, w.report(nil))
}

// walkRun walks a run, or one instance or attempt of it.
func (w *walker) walkRun(x *runner.Index, id string, attempt int) error {
	w.live = w.live || x.WorkerPID > 0
	several := slices.ContainsFunc(x.Attempts, func(a runner.IndexedAttempt) bool { return a.Repetition > 1 })
	recorded, err := verdicts.Read(x.Dir)
	if err != nil {
		x.ReadErrors = append(x.ReadErrors, err.Error())
	}
	var ended []*Entry
	unfinished := map[string][]*Entry{} // by instance: attempts missing in results.json
	for _, a := range x.Attempts {
		if id != "" && a.ID != id || attempt > 0 && a.Number != attempt {
			continue
		}
		w.files++
		it := &Entry{
			ID: a.ID, Attempt: a.Number, Repetition: a.Repetition, Run: x.Dir, Path: a.Journal, Selected: a.Selected,
			Model: cmp.Or(x.Manifest.Model.Name, x.Manifest.Model.Class),
		}
		if a.Result == nil {
			unfinished[a.ID] = append(unfinished[a.ID], it)
			continue
		}
		it.setAttempt(a.Attempt)
		it.setVerdict(recorded.Verdicts)
		ended = append(ended, it)
	}
	newest := map[string]int{} // by instance and repetition: the attempt number
	for _, it := range ended {
		newest[it.ID+"#"+fmt.Sprint(it.Repetition)] = it.Attempt
	}
	if err := w.report(w.search(clearSingleRepetitions(ended, several)), x.ReadErrors...); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(unfinished)) {
		for _, it := range unfinished[id] {
			it.readJournal()
			key := it.ID + "#" + fmt.Sprint(it.Repetition)
			newest[key] = max(newest[key], it.Attempt)
			several = several || it.Repetition > 1
		}
		for _, it := range unfinished[id] {
			it.Selected = newest[it.ID+"#"+fmt.Sprint(it.Repetition)] == it.Attempt
			if it.Selected && it.State == Stopped && x.WorkerPID > 0 {
				it.State = Running
			}
			it.setVerdict(recorded.Verdicts)
		}
		if err := w.report(w.search(clearSingleRepetitions(unfinished[id], several))); err != nil {
			return err
		}
	}
	return nil
}

// clearSingleRepetitions clears the repetition number if every instance has only one.
func clearSingleRepetitions(items []*Entry, several bool) []*Entry {
	for _, it := range items {
		if !several {
			it.Repetition = 0
		}
	}
	return items
}

// readJournal fills in an attempt from its journal.
func (it *Entry) readJournal() {
	a, err := runner.ReadAttempt(it.Path, it.Attempt)
	if err != nil {
		it.State, it.Problem = Broken, err.Error()
		return
	}
	it.setAttempt(a)
	it.Repetition = a.Repetition
}

// search searches attempts for the text of the filter.
func (w *walker) search(items []*Entry) []*Entry {
	if w.filter.Text == "" {
		return items
	}
	for _, it := range items {
		if w.ctx.Err() != nil {
			break
		}
		info, err := os.Stat(it.Path)
		if s, ok := w.cache[it.Path]; err == nil && ok && s.isCurrent(info, w.filter.Text) {
			it.textMissing = s.entries[0].textMissing
			continue
		}
		it.textMissing = true
		if mayContain(it.Path, w.filter.Text) {
			t, _ := Open(it) // a damaged journal is searched as far as it can be read
			it.textMissing = t == nil || !w.filter.MatchesText(t.Timeline)
		}
		if err == nil {
			w.cache[it.Path] = cachedFile{info.Size(), info.ModTime(), w.filter.Text, []*Entry{it}}
		}
	}
	return items
}

// mayContain reports whether a journal may contain a text, by its raw bytes: parsing it takes
// ten times as long. Journals store invalid UTF-8 as base64.
func mayContain(path, needle string) bool {
	data, err := os.ReadFile(path) //nolint:gosec // G304: the file that is inspected
	if err != nil {
		return false
	}
	quoted, err := text.JSON(needle)
	if err != nil {
		return true
	}
	all := string(data)
	return strings.Contains(all, `"base64"`) || query.TextMatcher(strings.Trim(string(quoted), "\"\n"))(all)
}

func (s cachedFile) isCurrent(info fs.FileInfo, text string) bool {
	return s.size == info.Size() && s.modTime.Equal(info.ModTime()) && s.text == text
}

// readFile reads the trajectories of a file in any format. Unless required is set, a file of
// unknown format is skipped.
func (w *walker) readFile(path string, required bool) error {
	info, err := os.Stat(path)
	if err == nil {
		if s, ok := w.cache[path]; ok && s.isCurrent(info, w.filter.Text) {
			return w.report(s.entries)
		}
	}
	var items []*Entry
	for f, err := range formats.OpenAll(path) {
		if w.ctx.Err() != nil {
			return w.report(nil)
		}
		if errors.Is(err, formats.ErrUnknownFormat) && !required {
			continue
		}
		it := &Entry{Path: path, Selected: true, textMissing: w.filter.Text != ""}
		if err != nil {
			it.ID, it.State, it.Problem = idFromPath(path), Broken, err.Error()
			it.Row = -len(items) - 1 // negative: the entry cannot be opened
		} else {
			it.ID, it.Row, it.Format, it.Attempt = f.Header.InstanceID, f.Row, f.Format, f.Header.Attempt
			it.Model = f.Header.ModelName
			t, err := timeline.Read(f.Records)
			it.setTimeline(t)
			if it.textMissing = !w.filter.MatchesText(t); err != nil {
				it.State, it.Problem = Broken, err.Error()
			}
		}
		items = append(items, it)
		if len(items)%100 == 0 {
			if err := w.report(items[len(items)-100:]); err != nil {
				return err
			}
		}
	}
	if info != nil && len(items) > 0 {
		w.cache[path] = cachedFile{info.Size(), info.ModTime(), w.filter.Text, items}
	}
	return w.report(items)
}

// idFromPath derives an instance id from a file name.
func idFromPath(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".json", ".jsonl", ".traj", ".trajectory"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// setVerdict sets the verdict of an attempt. It compares the size of the patch to exclude most
// verdicts of earlier attempts; the patch itself is in the journal, which is not opened.
func (it *Entry) setVerdict(all []verdicts.Verdict) {
	if it.State != Ended || !it.Selected {
		return
	}
	v := newestVerdict(all, func(v verdicts.Verdict) bool {
		return v.Instance == it.ID && max(1, v.Repetition) == max(1, it.Repetition) && v.Basis.PatchBytes == it.patchBytes
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

// newestVerdict returns the last written verdict that matches, or nil. Baseline runs are
// excluded.
func newestVerdict(all []verdicts.Verdict, matches func(verdicts.Verdict) bool) *verdicts.Verdict {
	var found *verdicts.Verdict
	for i, v := range all {
		baseline := v.Model == evaluate.GoldModel || v.Model == evaluate.NoopModel
		if !baseline && matches(v) && (found == nil || v.Written.After(found.Written)) {
			found = &all[i]
		}
	}
	return found
}

// Trajectory is one attempt in memory.
type Trajectory struct {
	*timeline.Timeline
	Entry   *Entry
	size    int64
	modTime time.Time
}

// Open reads a trajectory. A damaged one is returned as far as it can be read, and ends with
// the error.
func Open(it *Entry) (*Trajectory, error) {
	switch {
	case it.Path == "":
		return nil, fmt.Errorf("%s: journal not found: only results.json is left", it.ID)
	case it.Row < 0:
		return nil, errors.New(it.Problem)
	}
	info, err := os.Stat(it.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", it.Path)
	}
	t := &Trajectory{Entry: it, size: info.Size(), modTime: info.ModTime()}
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

// readRow reads one trajectory of a file in another format.
func readRow(it *Entry) (*timeline.Timeline, error) {
	for f, err := range formats.OpenAll(it.Path) {
		switch {
		case err != nil && it.Row == 0:
			return nil, err
		case err == nil && f.Row == it.Row:
			return timeline.Read(f.Records)
		}
	}
	return nil, fmt.Errorf("%s has changed: it has no row %d", it.Path, it.Row)
}

// HasChanged reports whether the file has changed since it was read.
func (t *Trajectory) HasChanged() bool {
	info, err := os.Stat(t.Entry.Path)
	return err == nil && (info.Size() != t.size || !info.ModTime().Equal(t.modTime))
}
