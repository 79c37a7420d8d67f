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

	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// Source is a place with trajectories: a run, a folder of runs or files, a part of a run, or
// one file. It can be walked repeatedly; a file outside of runs is read again only if the file or
// the text of the filter has changed. A Source is not safe for concurrent use.
type Source struct {
	path   string
	isFile bool // the path is a file
	isPart bool // the path is an instance or attempt of a run
	cache  map[string]cachedFile
}

// cachedFile holds the entries of a file as of the last walk.
type cachedFile struct {
	size    int64
	modTime time.Time
	text    string // text of the filter of that walk
	entries []*Entry
}

// Batch is some of the entries that a walk has found.
type Batch struct {
	// Entries are new, or replace earlier entries with the same key.
	Entries []*Entry
	// Files is the number of files scanned so far.
	Files int
	// Notes are messages about files that could not be read and that have no entry.
	Notes []string
	// Running means that a process is working on a run of the source.
	Running bool
}

// OpenSource opens the source at a path. Of a .traj.json file of mini, it reads the journal.
func OpenSource(path string) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is neither a file nor a folder", path)
	}
	return &Source{path: filepath.Clean(formats.Journal(path)), isFile: !info.IsDir(), cache: map[string]cachedFile{}}, nil
}

// IsSingle reports whether the path names a file, or an instance or attempt of a run. If such a
// source has only one trajectory, callers show the trajectory and not the list. The result is
// valid after Walk.
func (s *Source) IsSingle() bool { return s.isFile || s.isPart }

// Walk finds all trajectories and calls onBatch with batches of them: of each run first those in
// results.json, then those for which it must open files. If f has a text, Walk searches each
// trajectory for it. It returns the error of ctx or onBatch, or why a run cannot be read.
func (s *Source) Walk(ctx context.Context, f query.Filter, onBatch func(Batch) error) error {
	w := &walker{Source: s, ctx: ctx, filter: f, onBatch: onBatch}
	run, id, attempt, err := s.findRun()
	if err != nil {
		return err
	}
	switch {
	case run != nil:
		s.isPart = id != ""
		return w.walkRun(run, id, attempt)
	case s.isFile:
		return w.readFile(s.path, true)
	}
	return w.walkFolder()
}

// findRun finds the run that contains the path. id and attempt are set if the path names an
// instance or attempt of the run. run is nil if the path is neither a run nor an instance or
// attempt of one.
func (s *Source) findRun() (run *runs.Run, id string, attempt int, err error) {
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return nil, "", 0, err
	}
	dir, displayed := abs, s.path // the same folder; errors and entries show displayed
	if s.isFile {
		dir, displayed = filepath.Dir(dir), filepath.Dir(displayed)
	}
	for range 4 { // a path in a run has at most the levels RUN/<id>/attempts/<n>
		run, err := runs.Detect(displayed)
		if err == nil {
			id, attempt, ok := run.Locate(s.path)
			if ok && (id != "" || abs == dir) && (!s.isFile || attempt > 0) {
				return run, id, attempt, nil
			}
			return nil, "", 0, nil
		}
		if !errors.Is(err, runs.ErrNotRunFolder) && !errors.Is(err, fs.ErrPermission) {
			return nil, "", 0, err
		}
		dir = filepath.Dir(dir)
		if displayed = filepath.Join(displayed, ".."); !filepath.IsLocal(displayed) {
			displayed = dir // above the working directory
		}
	}
	return nil, "", 0, nil
}

// walker is the state of one Walk.
type walker struct {
	*Source
	ctx     context.Context //nolint:containedctx // the context of Walk
	filter  query.Filter
	onBatch func(Batch) error
	files   int
	running bool // a process is working on a run of the source
}

// report calls onBatch, unless ctx has ended.
func (w *walker) report(entries []*Entry, notes ...string) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	return w.onBatch(Batch{Entries: entries, Files: w.files, Notes: notes, Running: w.running})
}

// walkFolder walks a folder that is not a run, including the runs in it.
func (w *walker) walkFolder() error {
	var runErr error
	enter := func(dir string) bool {
		if runErr != nil || dir == w.path {
			return runErr == nil
		}
		run, err := runs.Detect(dir)
		if err != nil {
			return true
		}
		runErr = w.walkRun(run, "", 0)
		return false
	}
	for f := range formats.FindFiles(w.path, enter) {
		if runErr != nil {
			return runErr
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
	return errors.Join(runErr, w.report(nil))
}

// walkRun walks a run, or one instance or attempt of it.
func (w *walker) walkRun(run *runs.Run, id string, attempt int) error {
	w.running = w.running || run.WorkerPID > 0
	recorded, err := run.Verdicts()
	given, labelsErr := run.Labels()
	notes := run.ReadErrors
	for _, err := range []error{err, labelsErr} {
		if err != nil {
			notes = append(notes, err.Error())
		}
	}
	found, hasRepetitions := recorded.Index(), false
	var ended []*Entry
	unfinished := map[string][]*Entry{} // attempts that results.json does not have, by instance
	for _, in := range run.Instances {
		for _, a := range in.AllAttempts() {
			hasRepetitions = hasRepetitions || a.Repetition > 1
			if id != "" && in.ID != id || attempt > 0 && a.Number != attempt {
				continue
			}
			w.files++
			e := &Entry{
				ID: in.ID, Attempt: a.Number, Repetition: a.Repetition, Run: run.Dir, Path: a.Journal, Selected: a.Result != nil,
				Model:  cmp.Or(run.Manifest.Model.Name, run.Manifest.Model.Class),
				Labels: given[in.ID],
			}
			if a.Result == nil {
				unfinished[in.ID] = append(unfinished[in.ID], e)
				continue
			}
			e.setAttempt(a)
			e.setVerdict(found)
			ended = append(ended, e)
		}
	}
	newest := map[string]int{} // number of the newest attempt, by instance and repetition
	for _, e := range ended {
		newest[e.ID+"#"+fmt.Sprint(e.Repetition)] = e.Attempt
	}
	if err := w.report(w.search(clearSingleRepetitions(ended, hasRepetitions)), notes...); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(unfinished)) {
		for _, e := range unfinished[id] {
			e.readJournal()
			key := e.ID + "#" + fmt.Sprint(e.Repetition)
			newest[key] = max(newest[key], e.Attempt)
			hasRepetitions = hasRepetitions || e.Repetition > 1
		}
		for _, e := range unfinished[id] {
			e.Selected = newest[e.ID+"#"+fmt.Sprint(e.Repetition)] == e.Attempt
			if e.Selected && e.State == Stopped && run.WorkerPID > 0 {
				e.State = Running
			}
			e.setVerdict(found)
		}
		if err := w.report(w.search(clearSingleRepetitions(unfinished[id], hasRepetitions))); err != nil {
			return err
		}
	}
	return nil
}

// clearSingleRepetitions clears the repetition numbers unless an instance has several
// repetitions.
func clearSingleRepetitions(entries []*Entry, hasRepetitions bool) []*Entry {
	for _, e := range entries {
		if !hasRepetitions {
			e.Repetition = 0
		}
	}
	return entries
}

// readJournal sets the fields to what the attempt's journal says.
func (e *Entry) readJournal() {
	a := runs.Attempt{Number: e.Attempt, Journal: e.Path}
	if err := a.Load(); err != nil {
		e.State, e.Problem = Broken, fmt.Sprintf("%s: %v", e.Path, err)
		return
	}
	e.setAttempt(a)
	e.Repetition = a.Repetition
}

// search searches attempts for the text of the filter and sets textMissing. It returns entries.
func (w *walker) search(entries []*Entry) []*Entry {
	if w.filter.Text == "" {
		return entries
	}
	for _, e := range entries {
		if w.ctx.Err() != nil {
			break
		}
		info, err := os.Stat(e.Path)
		if cached, ok := w.cache[e.Path]; err == nil && ok && cached.isCurrent(info, w.filter.Text) {
			e.textMissing = cached.entries[0].textMissing
			continue
		}
		e.textMissing = true
		if query.FileMayContain(e.Path, w.filter.Text) {
			t, _ := OpenTrajectory(e) // search the readable part of a damaged journal
			e.textMissing = t == nil || !w.filter.MatchesText(t.Timeline)
		}
		if err == nil {
			w.cache[e.Path] = cachedFile{info.Size(), info.ModTime(), w.filter.Text, []*Entry{e}}
		}
	}
	return entries
}

// isCurrent reports whether the file and the text of the filter are unchanged.
func (c cachedFile) isCurrent(info fs.FileInfo, text string) bool {
	return c.size == info.Size() && c.modTime.Equal(info.ModTime()) && c.text == text
}

// readFile reads the trajectories of a file in any format. A file of unknown format is an entry
// with an error if required is set, else it is skipped.
func (w *walker) readFile(path string, required bool) error {
	info, err := os.Stat(path)
	if err == nil {
		if cached, ok := w.cache[path]; ok && cached.isCurrent(info, w.filter.Text) {
			return w.report(cached.entries)
		}
	}
	var entries []*Entry
	for f, err := range formats.OpenAll(path) {
		if w.ctx.Err() != nil {
			return w.report(nil)
		}
		if errors.Is(err, formats.ErrUnknownFormat) && !required {
			continue
		}
		e := &Entry{Path: path, Selected: true, textMissing: w.filter.Text != ""}
		if err != nil {
			e.ID, e.State, e.Problem = idFromPath(path), Broken, err.Error()
			e.Row = -len(entries) - 1 // unique, and negative as the entry cannot be opened
		} else {
			e.ID, e.Row, e.Format, e.Attempt = f.Header.InstanceID, f.Row, f.Format, f.Header.Attempt
			e.Model = f.Header.ModelName
			t, err := timeline.Build(f.Records)
			e.setTimeline(t)
			if e.textMissing = !w.filter.MatchesText(t); err != nil {
				e.State, e.Problem = Broken, err.Error()
			}
		}
		entries = append(entries, e)
		if len(entries)%100 == 0 {
			if err := w.report(entries[len(entries)-100:]); err != nil {
				return err
			}
		}
	}
	if info != nil && len(entries) > 0 {
		w.cache[path] = cachedFile{info.Size(), info.ModTime(), w.filter.Text, entries}
	}
	return w.report(entries)
}

// idFromPath derives an instance id from a file name.
func idFromPath(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".json", ".jsonl", ".traj", ".trajectory"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// setVerdict sets the verdict of an attempt that has ended and counts, and adds the flags of the
// verdict.
func (e *Entry) setVerdict(recorded verdicts.Index) {
	if e.State != Ended || !e.Selected {
		return
	}
	v := recorded.Find(e.ID, e.Repetition, e.patchBytes, "")
	if v == nil {
		return
	}
	e.Verdict = string(v.Class)
	for _, name := range v.FlagNames() {
		if !slices.Contains(e.Flags, name) {
			e.Flags = append(e.Flags, name)
		}
	}
}

// newestVerdict returns the newest verdict that matches, or nil. It excludes verdicts of
// baseline evaluations, with the gold patch or without a patch.
func newestVerdict(all []verdicts.Verdict, matches func(verdicts.Verdict) bool) *verdicts.Verdict {
	var newest *verdicts.Verdict
	for i, v := range all {
		if !v.IsBaseline() && matches(v) && (newest == nil || v.Written.After(newest.Written)) {
			newest = &all[i]
		}
	}
	return newest
}

// Trajectory is an attempt whose steps have been read, all or those before the damage of a file.
type Trajectory struct {
	*timeline.Timeline
	Entry   *Entry
	size    int64     // of the file when it was read
	modTime time.Time // of the file when it was read
}

// OpenTrajectory reads a trajectory. If the file is damaged, OpenTrajectory returns the readable
// part, which ends with an item about the error, or the error if there is no such part.
func OpenTrajectory(e *Entry) (*Trajectory, error) {
	switch {
	case e.Path == "":
		return nil, fmt.Errorf("%s: journal not found: only results.json is left", e.ID)
	case e.Row < 0:
		return nil, errors.New(e.Problem)
	}
	info, err := os.Stat(e.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", e.Path)
	}
	t := &Trajectory{Entry: e, size: info.Size(), modTime: info.ModTime()}
	if e.Format == "" || e.Format == trajectories.Format {
		t.Timeline, err = timeline.Build(trajectories.Read(e.Path))
	} else {
		t.Timeline, err = readRow(e)
	}
	if err != nil && (t.Timeline == nil || t.IsEmpty()) {
		return nil, err
	}
	return t, nil
}

// readRow reads one trajectory of a file in another format.
func readRow(e *Entry) (*timeline.Timeline, error) {
	for f, err := range formats.OpenAll(e.Path) {
		switch {
		case err != nil && e.Row == 0:
			return nil, err
		case err == nil && f.Row == e.Row:
			return timeline.Build(f.Records)
		}
	}
	return nil, fmt.Errorf("%s has changed: it has no row %d", e.Path, e.Row)
}

// HasChanged reports whether the file has changed since it was read.
func (t *Trajectory) HasChanged() bool {
	info, err := os.Stat(t.Entry.Path)
	return err == nil && (info.Size() != t.size || !info.ModTime().Equal(t.modTime))
}
