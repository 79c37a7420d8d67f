// Package submission writes a run in the layout of the public SWE-bench leaderboard
// (github.com/SWE-bench/experiments, evaluation/<split>/<date>_<name>):
//
//	all_preds.jsonl       one prediction per line
//	trajs/<id>.traj       trajectory
//	logs/<id>/            patch.diff, eval.sh, run_instance.log, test_output.txt, report.json
//	metadata.yaml         description of the system; the user completes it
//	README.md             results and checklist; the user completes it
//
// The package uploads nothing.
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
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// Config configures a submission.
type Config struct {
	Run   *runs.Run
	RunID string // run id of the evaluation; Write copies its logs
	Dir   string // the folder that Write creates; must not exist
	// Name is the suggested name on the leaderboard.
	Name string
	// HasVerdict is the set of instances with a verdict. Some verdicts have no
	// report, for example if the patch did not apply or the tests timed out.
	HasVerdict map[string]bool
	// Results is the text for the results section of README.md.
	Results string
}

// Result describes the written and the missing files.
type Result struct {
	Predictions int `json:"predictions"`
	Trajs       int `json:"trajs"`
	Logs        int `json:"logs"` // instances with a report
	// Bytes is the total size of all files. TooLarge are the paths, relative to
	// Dir, of files that GitHub would reject.
	Bytes    int64    `json:"bytes"`
	TooLarge []string `json:"large,omitempty"`
	// NoResult are the instances without a prediction. NoTraj are those with a
	// prediction but no trajectory, NoVerdict those with a patch but no verdict.
	NoResult  []string `json:"no_result,omitempty"`
	NoTraj    []string `json:"no_trajectory,omitempty"`
	NoVerdict []string `json:"no_verdict,omitempty"`
}

// Complete reports whether all instances have the required files.
func (r Result) Complete() bool { return len(r.NoResult)+len(r.NoTraj)+len(r.NoVerdict) == 0 }

// maxFileSize is GitHub's limit on the size of a file, in bytes.
const maxFileSize = 100 << 20

// Errors returned by Write.
var (
	ErrExists        = errors.New("already exists")
	ErrNoPredictions = errors.New("has no predictions")
)

// Write creates the folder of the submission, completely or not at all. The error
// wraps ErrExists if the folder exists, and ErrNoPredictions if the run has no
// predictions.
func Write(c Config) (Result, error) {
	if _, err := os.Lstat(c.Dir); err == nil {
		return Result{}, fmt.Errorf("%s %w", c.Dir, ErrExists)
	}
	runRoot, err := rootdir.Open(c.Run.Dir)
	if err != nil {
		return Result{}, fmt.Errorf("write submission: %w", err)
	}
	defer runRoot.Close() //nolint:errcheck // only read
	preds, err := readPredictions(runRoot)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Result{}, err
	}
	if len(preds.List) == 0 {
		return Result{}, fmt.Errorf("%s %w", c.Run.Dir, ErrNoPredictions)
	}
	parent := filepath.Dir(filepath.Clean(c.Dir))
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // results are for sharing
		return Result{}, fmt.Errorf("write submission: %w", err)
	}
	tempDir, err := os.MkdirTemp(parent, ".mini-submission-")
	if err != nil {
		return Result{}, fmt.Errorf("write submission: %w", err)
	}
	defer os.RemoveAll(tempDir) //nolint:errcheck // already renamed unless Write fails
	result, err := c.fill(runRoot, tempDir, preds.List)
	if err == nil {
		err = os.Chmod(tempDir, 0o755) //nolint:gosec // results are for sharing
	}
	if err == nil {
		err = os.Rename(tempDir, c.Dir)
	}
	if err != nil {
		return Result{}, fmt.Errorf("write submission: %w", err)
	}
	return result, nil
}

// readPredictions reads the predictions of a run.
func readPredictions(runRoot *rootdir.Dir) (trajectories.Predictions, error) {
	path := filepath.Join(runRoot.Path(), "preds.json")
	f, err := runRoot.Open(path) // fails for a link out of the run, because its target must not be published
	if err != nil {
		return trajectories.Predictions{}, err
	}
	if err := f.Close(); err != nil {
		return trajectories.Predictions{}, err
	}
	return trajectories.ReadPredictions(path)
}

// fill writes all files to a new folder.
func (c Config) fill(runRoot *rootdir.Dir, dir string, preds []trajectories.Prediction) (Result, error) {
	preds = slices.Clone(preds)
	slices.SortFunc(preds, func(a, b trajectories.Prediction) int { return datasets.CompareNatural(a.InstanceID, b.InstanceID) })
	result := Result{Predictions: len(preds), NoResult: c.missingPredictions(preds)}
	if err := writePredictions(filepath.Join(dir, "all_preds.jsonl"), preds); err != nil {
		return result, err
	}
	for _, folder := range []string{"trajs", "logs"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil { //nolint:gosec // results are for sharing
			return result, err
		}
	}
	layout, err := grade.NewLayout(c.Run.Dir, c.RunID)
	if err != nil {
		return result, err
	}
	for _, p := range preds {
		files, err := layout.Files(p.Model, p.InstanceID) // also validates the names
		if err != nil {
			return result, err
		}
		copied, err := copyFile(runRoot, filepath.Join(c.Run.Dir, p.InstanceID, p.InstanceID+".traj.json"), filepath.Join(dir, "trajs", p.InstanceID+".traj"))
		switch {
		case err != nil:
			return result, err
		case copied:
			result.Trajs++
		default:
			result.NoTraj = append(result.NoTraj, p.InstanceID)
		}
		if p.Patch == "" {
			continue // empty patches have no logs
		}
		hasReport, err := copyLogs(runRoot, files, filepath.Join(dir, "logs", p.InstanceID))
		switch {
		case err != nil:
			return result, err
		case hasReport:
			result.Logs++
		case c.HasVerdict[p.InstanceID]: // a verdict without a report, as in the official harness
		default:
			result.NoVerdict = append(result.NoVerdict, p.InstanceID)
		}
	}
	if err := c.writeTexts(dir, result); err != nil {
		return result, err
	}
	return result, result.measure(dir)
}

// measure sums up the sizes of all files.
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
		if info.Size() > maxFileSize {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			r.TooLarge = append(r.TooLarge, filepath.ToSlash(name))
		}
		return nil
	})
}

// missingPredictions returns the instances of the run without a prediction.
func (c Config) missingPredictions(preds []trajectories.Prediction) []string {
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

// copyLogs copies the existing files of one evaluation to a new folder and reports
// whether they include a report.
func copyLogs(runRoot *rootdir.Dir, files grade.Files, to string) (hasReport bool, err error) {
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // results are for sharing
		return false, err
	}
	copiedAny := false
	for _, path := range []string{files.Patch, files.Script, files.Log, files.TestOutput, files.Report} {
		copied, err := copyFile(runRoot, path, filepath.Join(to, filepath.Base(path)))
		if err != nil {
			return false, err
		}
		copiedAny = copiedAny || copied
		hasReport = copied // the report is the last
	}
	if !copiedAny {
		return false, os.Remove(to)
	}
	return hasReport, nil
}

// copyFile copies a file. It returns false if the file is missing or not a regular
// file. It does not follow links, because the run's folder is not trusted.
func copyFile(runRoot *rootdir.Dir, srcPath, dstPath string) (copied bool, err error) {
	info, err := runRoot.Lstat(srcPath)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	src, err := runRoot.Open(srcPath)
	if err != nil {
		return false, err
	}
	defer src.Close()                                                          //nolint:errcheck // read only
	dst, err := os.OpenFile(dstPath, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // results are for sharing
	if err != nil {
		return false, err
	}
	_, err = io.Copy(dst, src)
	return err == nil, errors.Join(err, dst.Close())
}
