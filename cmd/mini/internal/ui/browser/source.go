package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// listing is what a walk has found so far.
type listing struct {
	entries  []*Entry
	files    int      // number of files scanned
	problems []string // errors of files that have no entry
	running  bool     // a process is working on a run of the source
	// single reports that the path is a file, or an instance or attempt of a run. If there is only one
	// trajectory, it is shown instead of the list.
	single bool
}

// walker is the state of one walk.
type walker struct {
	ctx    context.Context //nolint:containedctx // the context of walk
	filter query.Filter
	onAdd  func(listing)
	found  listing
}

// walk finds all trajectories at a path: a run, a folder of runs or files, a part of a run, or one
// file; of a .traj.json file of mini, it reads the journal. It calls onAdd with the listing so far for
// each entry. If the filter has a text, walk searches each trajectory for it. It returns the error of
// ctx, or why the path cannot be read.
func walk(ctx context.Context, path string, f query.Filter, onAdd func(listing)) (listing, error) {
	path = filepath.Clean(formats.Journal(path))
	w := &walker{ctx: ctx, filter: f, onAdd: onAdd}
	info, err := os.Stat(path)
	if err != nil {
		return w.found, err
	}
	run, id, attempt, err := findRun(path, info.IsDir())
	w.found.single = id != "" || !info.IsDir()
	switch {
	case err != nil:
	case run != nil:
		w.readRun(run, id, attempt)
	case info.IsDir():
		w.readFolder(path)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is neither a file nor a folder", path)
	default:
		w.readFile(path, true)
	}
	return w.found, cmp.Or(context.Cause(ctx), err)
}

// findRun finds the run that a path is, or is an instance or attempt of. run is nil if there is
// none.
func findRun(path string, isDir bool) (run *runs.Run, id string, attempt int, err error) {
	if isDir {
		run, err = runs.Detect(path)
		if err == nil || !errors.Is(err, runs.ErrNotRunFolder) {
			return run, "", 0, err
		}
	}
	dir, _, ok := cmdutil.FindRunAbove(path)
	if !ok {
		return nil, "", 0, nil
	}
	if run, err = runs.Detect(dir); err != nil {
		return nil, "", 0, err
	}
	if id, attempt, _ = run.Locate(path); id == "" || !isDir && attempt == 0 {
		return nil, "", 0, nil
	}
	return run, id, attempt, nil
}

func (w *walker) add(e *Entry) {
	w.found.entries = append(w.found.entries, e)
	w.onAdd(w.found)
}

func (w *walker) addProblem(err error) {
	if err != nil {
		w.found.problems = append(w.found.problems, err.Error())
	}
}

// readFolder reads a folder that is not a run, including the runs in it.
func (w *walker) readFolder(path string) {
	enter := func(dir string) bool {
		run, err := runs.Detect(dir)
		if err == nil && w.ctx.Err() == nil {
			w.readRun(run, "", 0)
		}
		return err != nil && w.ctx.Err() == nil
	}
	for f := range formats.FindFiles(path, enter) {
		if w.ctx.Err() != nil {
			break
		}
		w.found.files++
		if w.addProblem(f.Err); f.Err == nil {
			w.readFile(f.Path, false)
		}
	}
}

// readRun reads a run, or one instance or attempt of it. Of the attempts in results.json, it opens
// no files.
func (w *walker) readRun(run *runs.Run, id string, attempt int) {
	w.found.running = w.found.running || run.WorkerPID > 0
	w.found.problems = append(w.found.problems, run.ReadErrors...)
	recorded, err := run.Verdicts()
	w.addProblem(err)
	given, err := run.Labels()
	w.addProblem(err)
	index, hasRepetitions := recorded.Index(), false
	var entries []*Entry
	for _, in := range run.Instances {
		first, newest := len(entries), map[int]int{} // numbers of the newest attempts, by repetition
		for _, a := range in.AllAttempts() {
			hasRepetitions = hasRepetitions || a.Repetition > 1
			if id != "" && in.ID != id || attempt > 0 && a.Number != attempt || w.ctx.Err() != nil {
				continue
			}
			e := &Entry{
				ID: in.ID, Attempt: a.Number, Run: run.Dir, Path: a.Journal, Labels: given[in.ID],
				Model: cmp.Or(run.Manifest.Model.Name, run.Manifest.Model.Class),
			}
			if a.Result == nil {
				err = a.Load()
			}
			if e.setAttempt(a); err != nil {
				e.State, e.Problem, err = Broken, fmt.Sprintf("%s: %v", e.Path, err), nil
			}
			e.Repetition, newest[a.Repetition] = a.Repetition, max(newest[a.Repetition], a.Number)
			hasRepetitions = hasRepetitions || a.Repetition > 1 // known after Load
			entries = append(entries, e)
			w.found.files++
		}
		for _, e := range entries[first:] {
			e.Selected = in.Selects(e.Attempt) || newest[e.Repetition] == e.Attempt
			if e.Selected && e.State == Stopped && run.WorkerPID > 0 {
				e.State = Running
			}
			if e.State != Ended || !e.Selected {
				continue
			}
			if v := index.Find(e.ID, e.Repetition, e.patchBytes, ""); v != nil {
				e.Verdict, e.Flags = string(v.Class), append(e.Flags, v.FlagNames()...)
			}
		}
	}
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return
		}
		if !hasRepetitions {
			e.Repetition = 0
		}
		if w.filter.Text != "" {
			e.textMissing = true
			if query.FileMayContain(e.Path, w.filter.Text) {
				t, _ := OpenTrajectory(e) // search the readable part of a damaged journal
				e.textMissing = t == nil || !w.filter.MatchesText(t.Timeline)
			}
		}
		w.add(e)
	}
}

// readFile reads the trajectories of a file in any format. A file of unknown format is an entry
// with an error if required is set, else it is skipped.
func (w *walker) readFile(path string, required bool) {
	failed := 0
	for f, err := range formats.OpenAll(path) {
		if w.ctx.Err() != nil {
			return
		}
		if errors.Is(err, formats.ErrUnknownFormat) && !required {
			continue
		}
		e := &Entry{Path: path, Selected: true, textMissing: w.filter.Text != ""}
		if err != nil {
			failed++
			e.ID = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), ".traj")
			e.State, e.Problem, e.Row = Broken, err.Error(), -failed
		} else {
			e.ID, e.Row, e.Format = f.Header.InstanceID, f.Row, f.Format
			e.Attempt, e.Model = f.Header.Attempt, f.Header.ModelName
			t, err := timeline.Build(f.Records)
			e.setAttempt(attemptOf(t))
			if e.textMissing = !w.filter.MatchesText(t); err != nil {
				e.State, e.Problem = Broken, err.Error()
			}
		}
		w.add(e)
	}
}

// Trajectory is an attempt whose steps have been read, all or those before the damage of a file.
type Trajectory struct {
	*timeline.Timeline
	path string
	file os.FileInfo // when it was read
}

// OpenTrajectory reads a trajectory. If the file is damaged, OpenTrajectory returns the readable
// part, which ends with an item about the error, or the error if there is no such part.
func OpenTrajectory(e *Entry) (*Trajectory, error) {
	info, err := os.Stat(e.Path)
	t := &Trajectory{path: e.Path, file: info}
	switch {
	case e.Path == "":
		return nil, fmt.Errorf("%s: journal not found: only results.json is left", e.ID)
	case e.Row < 0:
		return nil, errors.New(e.Problem)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", e.Path)
	case e.Format == "" || e.Format == trajectories.Format:
		t.Timeline, err = timeline.Build(trajectories.Read(e.Path))
	default:
		err = fmt.Errorf("%s has changed: it has no row %d", e.Path, e.Row)
		for f, openErr := range formats.OpenAll(e.Path) {
			if openErr == nil && f.Row == e.Row {
				t.Timeline, err = timeline.Build(f.Records)
				break
			}
		}
	}
	if err != nil && (t.Timeline == nil || t.IsEmpty()) {
		return nil, err
	}
	return t, nil
}

// HasChanged reports whether the file has changed since it was read.
func (t *Trajectory) HasChanged() bool {
	info, err := os.Stat(t.path)
	return err == nil && (info.Size() != t.file.Size() || !info.ModTime().Equal(t.file.ModTime()))
}
