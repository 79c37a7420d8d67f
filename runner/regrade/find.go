package regrade

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// ErrNothing says that a folder has no evaluations.
var ErrNothing = errors.New("has no saved evaluations: no verdicts, and no logs/run_evaluation")

// Found is what a folder holds.
type Found struct {
	// Verdicts are the records of mini's evaluations. What another harness has
	// evaluated there is among them as if it had a record, without a Path.
	Verdicts []verdicts.Verdict
	Unread   []string // says what could not be read, a sentence each
}

// Find looks into the folder of a run, or the one in which the official harness
// has written its logs. The error wraps ErrNothing where it has no evaluation.
func Find(dir string) (Found, error) {
	records, err := verdicts.Read(dir)
	if err != nil {
		return Found{}, err
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return Found{}, fmt.Errorf("find logs: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	f := Found{Verdicts: records.Verdicts, Unread: records.Unread}
	has := map[string]bool{}
	for _, v := range records.Verdicts {
		run, err := grade.NewRun(dir, v.RunID)
		if err != nil {
			continue
		}
		if files, err := run.Files(v.Model, v.Instance); err == nil {
			has[files.Dir] = true
		}
	}
	dirs, err := root.Glob(datasets.LogsDir + "/run_evaluation/*/*/*")
	if err != nil {
		return Found{}, fmt.Errorf("find logs: %w", err)
	}
	for _, d := range dirs {
		if has[d] {
			continue
		}
		if v, ok := foreign(root, d); ok {
			f.Verdicts = append(f.Verdicts, v)
		}
	}
	if len(f.Verdicts) == 0 && len(f.Unread) == 0 {
		return Found{}, fmt.Errorf("%s %w", dir, ErrNothing)
	}
	return f, nil
}

// foreign is what another harness has left of an evaluation. It is false
// where there is no log to be judged.
func foreign(root *rootdir.Dir, folder string) (verdicts.Verdict, bool) {
	log := filepath.Join(folder, "test_output.txt")
	info, err := root.Lstat(log)
	if err != nil || !info.Mode().IsRegular() {
		return verdicts.Verdict{}, false
	}
	rel, err := filepath.Rel(root.Path(), folder)
	if err != nil {
		return verdicts.Verdict{}, false
	}
	model := filepath.Dir(folder)
	id := filepath.Base(folder)
	class := reported(root, filepath.Join(folder, "report.json"), id)
	if class == verdicts.Error && cutShort(root, log) {
		class = verdicts.TimedOut
	}
	return verdicts.Verdict{Record: verdicts.Record{
		Format: verdicts.Format, Instance: id, Model: filepath.Base(model), RunID: filepath.Base(filepath.Dir(model)), Class: class,
		Runs: []verdicts.Attempt{{Purpose: verdicts.ForVerdict, Class: class, Dir: filepath.ToSlash(rel)}},
	}}, true
}

// maxReport bounds what is read of a report.json, in bytes.
const maxReport = 64 << 20

// reported is the class by a report.json: error where it is missing, or says
// nothing.
func reported(root *rootdir.Dir, path, id string) verdicts.Class {
	data, err := root.ReadFile(path, maxReport)
	if err != nil {
		return verdicts.Error
	}
	var report map[string]struct {
		Resolved *bool `json:"resolved"`
	}
	if json.Unmarshal(data, &report) != nil || report[id].Resolved == nil {
		return verdicts.Error
	}
	if *report[id].Resolved {
		return verdicts.Resolved
	}
	return verdicts.Unresolved
}

// cutShort says that the harness stopped the script: it says so at the end of
// the log.
func cutShort(root *rootdir.Dir, log string) bool {
	f, err := root.Open(log)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // read only
	const most = 200
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return false
		}
	}
	end, err := io.ReadAll(io.LimitReader(f, most))
	end = bytes.TrimSpace(end)
	return err == nil && bytes.Contains(end, []byte("\nTimeout error: ")) && bytes.HasSuffix(end, []byte(" seconds exceeded."))
}
