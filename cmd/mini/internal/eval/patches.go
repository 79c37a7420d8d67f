package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// patches holds the patches to evaluate: submissions, or a patch derived from
// each row (gold and noop).
type patches struct {
	name string // value of -p
	// submissions are the predictions, with the repetition 0, and the submissions of a run with
	// -k that are not in preds.json.
	submissions []runs.Submission
	warnings    []string
	// taskFor returns the task for the gold or noop patch of a row; nil for submissions.
	taskFor func(datasets.Instance) evaluate.Task
	// run is the folder of the run that made the predictions; "" if unknown.
	run string
}

// hasRepetitions reports whether there are submissions of later repetitions.
func (p patches) hasRepetitions() bool {
	return slices.ContainsFunc(p.submissions, func(s runs.Submission) bool { return s.Repetition > 0 })
}

// predsFile is the name of the file of predictions in the folder of a run.
const predsFile = "preds.json"

// readPatches reads the patches that -p names. The words gold and noop do not name
// files; users can pass such files as ./gold and ./noop.
func readPatches(name string) (patches, error) {
	switch name {
	case "":
		return patches{}, usage.Errorf("-p is required: a file of predictions, the folder of a run, gold or noop")
	case evaluate.GoldModel:
		return patches{name: name, taskFor: evaluate.GoldTask}, nil
	case evaluate.NoopModel:
		return patches{name: name, taskFor: evaluate.NoopTask}, nil
	}
	p := patches{name: name}
	path := name
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, usage.Errorf("-p %s: no such file or folder; "+
			"pass a file of predictions, the folder of a run, gold or noop", name)
	case err != nil:
		return p, err
	case info.IsDir():
		path = filepath.Join(name, predsFile)
		if !cmdutil.FileExists(path) {
			return p, usage.Errorf("-p %s: the folder has no %s; pass the file of predictions", name, predsFile)
		}
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return p, usage.Errorf("-p %s: neither a file nor a folder", name)
	}
	if dir := filepath.Dir(path); filepath.Base(path) == predsFile && cmdutil.FileExists(filepath.Join(dir, "run.json")) {
		p.run = dir
	}
	read := trajectories.ReadPredictions
	if path == name {
		read = trajectories.ReadPipedPredictions
	}
	list, err := read(path)
	if err != nil {
		return p, err
	}
	for _, prediction := range list.List {
		p.submissions = append(p.submissions, runs.Submission{Prediction: prediction})
	}
	for _, w := range list.Warnings {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %s", path, w))
	}
	if p.run != "" && filepath.Clean(name) == p.run { // -p names the folder, not the file
		run, err := runs.Read(p.run)
		if err != nil {
			return p, err
		}
		repetitions, err := run.ExtraSubmissions()
		if err != nil {
			p.warnings = append(p.warnings, fmt.Sprintf("%s: %v; these attempts get no verdict", p.run, err))
		}
		p.submissions = append(p.submissions, repetitions...)
	}
	if len(p.submissions) == 0 {
		return p, usage.Errorf("%s has no predictions", path)
	}
	return p, nil
}

// namelessModel is the official harness's name for the model of a prediction
// without a model name.
const namelessModel = "None"

// tasks returns a task for each patch of an instance.
func (p patches) tasks(in datasets.Instance) (tasks []evaluate.Task) {
	if p.taskFor != nil {
		return []evaluate.Task{p.taskFor(in)}
	}
	for _, s := range p.submissions {
		if s.InstanceID == in.ID {
			t := NewTask(in, s.Prediction)
			t.Repetition = s.Repetition
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// includes reports whether the instance has a patch.
func (p patches) includes(id string) bool {
	return p.taskFor != nil || slices.ContainsFunc(p.submissions, func(s runs.Submission) bool { return s.InstanceID == id })
}

// NewTask returns a task that evaluates a prediction.
func NewTask(in datasets.Instance, p trajectories.Prediction) evaluate.Task {
	model := p.Model
	if model == "" {
		model = namelessModel
	}
	if p.IsNull {
		return evaluate.NewTask(in, model, nil)
	}
	return evaluate.NewTask(in, model, []byte(p.Patch))
}

// useRunDataset selects the datasets of the run that made the patches, and returns them. Unless
// a flag selects rows, it also selects the rows of the run.
func (o *Options) useRunDataset(run string) ([]datasets.SourceInfo, error) {
	r, err := runs.Open(run)
	if err != nil {
		return nil, err
	}
	dataset := r.Manifest.Dataset
	for _, source := range dataset.Editions {
		o.datasets.Subsets = append(o.datasets.Subsets, source.Name)
		if len(dataset.Editions) == 1 && o.datasets.Split == "" {
			o.datasets.Split = source.Split
		}
	}
	if o.selection.Filter != "" || o.selection.Slice != "" || len(o.selection.IDs) > 0 || dataset.Selection == nil {
		return dataset.Editions, nil
	}
	data, err := json.Marshal(dataset.Selection)
	if err == nil {
		err = json.Unmarshal(data, &o.selection)
	}
	if err != nil {
		return nil, fmt.Errorf("read rows of the run %s: %w; name them with --subset", run, err)
	}
	return dataset.Editions, nil
}
