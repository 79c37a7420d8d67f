// Package submission lays a run out as the public SWE-bench leaderboard wants
// it (github.com/SWE-bench/experiments, evaluation/<split>/<date>_<name>):
//
//	all_preds.jsonl       a prediction a line
//	trajs/<id>.traj       how the agent came to it
//	logs/<id>/            patch.diff, eval.sh, run_instance.log, test_output.txt, report.json
//	metadata.yaml         who and what; to be filled in
//	README.md             the figures, and what the rules ask; to be filled in
//
// Nothing is sent anywhere.
package submission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/trajectories"
)

// Config says what is laid out.
type Config struct {
	Run   *runner.Run
	RunID string // of the evaluation whose logs are taken
	Dir   string // to be made; it must not be there
	// Name is what the leaderboard is to show, as a first proposal.
	Name string
	// Judged are the instances that have a verdict. It may be one that leaves no
	// report: the patch does not apply, or the tests took too long.
	Judged map[string]bool
	// Results is text for README.md: the figures.
	Results string
}

// Result is what was laid out, and what is missing.
type Result struct {
	Predictions int `json:"predictions"`
	Trajs       int `json:"trajs"`
	Logs        int `json:"logs"` // instances with a report
	// Bytes are those of all files. Large are files, relative to the folder, that
	// GitHub refuses.
	Bytes int64    `json:"bytes"`
	Large []string `json:"large,omitempty"`
	// NoResult are instances of the run without a prediction. NoTraj and
	// NoVerdict have one, and no trajectory, or neither a report of an evaluation
	// nor a verdict that leaves none; a patch that is empty needs none.
	NoResult  []string `json:"no_result,omitempty"`
	NoTraj    []string `json:"no_trajectory,omitempty"`
	NoVerdict []string `json:"no_verdict,omitempty"`
}

// Complete says that nothing is missing.
func (r Result) Complete() bool { return len(r.NoResult)+len(r.NoTraj)+len(r.NoVerdict) == 0 }

// mostFile is how large a file on GitHub may be, in bytes.
const mostFile = 100 << 20

// Errors that callers tell apart.
var (
	ErrExists        = errors.New("is there already")
	ErrNoPredictions = errors.New("has no predictions")
)

// Write makes the folder, whole or not at all. It never writes into one that is
// there: the error wraps ErrExists then, and ErrNoPredictions where the run has
// none.
func Write(c Config) (Result, error) {
	if _, err := os.Lstat(c.Dir); err == nil {
		return Result{}, fmt.Errorf("%s %w", c.Dir, ErrExists)
	}
	run, err := rootdir.Open(c.Run.Dir)
	if err != nil {
		return Result{}, fmt.Errorf("lay out submission: %w", err)
	}
	defer run.Close() //nolint:errcheck // only read
	preds, err := readPredictions(run)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Result{}, err
	}
	if len(preds.List) == 0 {
		return Result{}, fmt.Errorf("%s %w", c.Run.Dir, ErrNoPredictions)
	}
	parent := filepath.Dir(filepath.Clean(c.Dir))
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // results are for sharing
		return Result{}, fmt.Errorf("lay out submission: %w", err)
	}
	temp, err := os.MkdirTemp(parent, ".mini-submission-")
	if err != nil {
		return Result{}, fmt.Errorf("lay out submission: %w", err)
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it has another name by then, or is of no use
	r, err := c.fill(run, temp, preds.List)
	if err == nil {
		err = os.Chmod(temp, 0o755) //nolint:gosec // results are for sharing
	}
	if err == nil {
		err = os.Rename(temp, c.Dir)
	}
	if err != nil {
		return Result{}, fmt.Errorf("lay out submission: %w", err)
	}
	return r, nil
}

// readPredictions reads those of a run.
func readPredictions(run *rootdir.Dir) (trajectories.Predictions, error) {
	path := filepath.Join(run.Path(), "preds.json")
	f, err := run.Open(path) // what is laid out is published: a link out of the run is an error
	if err != nil {
		return trajectories.Predictions{}, err
	}
	if err := f.Close(); err != nil {
		return trajectories.Predictions{}, err
	}
	return trajectories.ReadPredictions(path)
}

// fill writes everything into a new folder.
func (c Config) fill(run *rootdir.Dir, dir string, preds []trajectories.Prediction) (Result, error) {
	preds = slices.Clone(preds)
	slices.SortFunc(preds, func(a, b trajectories.Prediction) int { return datasets.Natural(a.InstanceID, b.InstanceID) })
	r := Result{Predictions: len(preds), NoResult: c.without(preds)}
	if err := writePredictions(filepath.Join(dir, "all_preds.jsonl"), preds); err != nil {
		return r, err
	}
	for _, folder := range []string{"trajs", "logs"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil { //nolint:gosec // results are for sharing
			return r, err
		}
	}
	evaluation, err := grade.NewRun(c.Run.Dir, c.RunID)
	if err != nil {
		return r, err
	}
	for _, p := range preds {
		from, err := evaluation.Files(p.Model, p.InstanceID) // checks the names, too
		if err != nil {
			return r, err
		}
		copied, err := copyFile(run, filepath.Join(c.Run.Dir, p.InstanceID, p.InstanceID+".traj.json"), filepath.Join(dir, "trajs", p.InstanceID+".traj"))
		switch {
		case err != nil:
			return r, err
		case copied:
			r.Trajs++
		default:
			r.NoTraj = append(r.NoTraj, p.InstanceID)
		}
		if p.Patch == "" {
			continue // nothing is run for it, by the official harness either
		}
		judged, err := copyLogs(run, from, filepath.Join(dir, "logs", p.InstanceID))
		switch {
		case err != nil:
			return r, err
		case judged:
			r.Logs++
		case c.Judged[p.InstanceID]: // without a report, as the official harness has it
		default:
			r.NoVerdict = append(r.NoVerdict, p.InstanceID)
		}
	}
	if err := c.words(dir, r); err != nil {
		return r, err
	}
	return r, r.measure(dir)
}

// measure looks how large everything is.
func (r *Result) measure(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		r.Bytes += info.Size()
		if info.Size() > mostFile {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			r.Large = append(r.Large, filepath.ToSlash(name))
		}
		return nil
	})
}

// without are the instances of the run that have no prediction.
func (c Config) without(preds []trajectories.Prediction) []string {
	has := map[string]bool{}
	for _, p := range preds {
		has[p.InstanceID] = true
	}
	var ids []string
	for _, in := range c.Run.Instances {
		if !has[in.ID] {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

func writePredictions(path string, preds []trajectories.Prediction) error {
	var lines strings.Builder
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	for _, p := range preds {
		if err := enc.Encode(p); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(lines.String()), 0o644) //nolint:gosec // results are for sharing
}

// copyLogs copies the files of one evaluation, those that there are. It is
// false where a patch that applied has no report.
func copyLogs(run *rootdir.Dir, from grade.Files, to string) (judged bool, err error) {
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // results are for sharing
		return false, err
	}
	any := false
	for _, path := range []string{from.Patch, from.Script, from.Log, from.TestOutput, from.Report} {
		copied, err := copyFile(run, path, filepath.Join(to, filepath.Base(path)))
		if err != nil {
			return false, err
		}
		any = any || copied
		judged = copied // the report is the last
	}
	if !any {
		return false, os.Remove(to)
	}
	return judged, nil
}

// copyFile copies a plain file. It is false where there is none: a link is not
// followed, for the folder may come from a stranger.
func copyFile(run *rootdir.Dir, from, to string) (copied bool, err error) {
	info, err := run.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	in, err := run.Open(from)
	if err != nil {
		return false, err
	}
	defer in.Close()                                                      //nolint:errcheck // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // results are for sharing
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, in)
	return err == nil, errors.Join(err, out.Close())
}
