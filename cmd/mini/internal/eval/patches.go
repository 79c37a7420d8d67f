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

// patches holds the patches to evaluate: predictions, or a patch derived from
// each row (gold and noop).
type patches struct {
	name        string // value of -p
	predictions []trajectories.Prediction
	warnings    []string
	// taskFor returns the task for the gold or noop patch of a row; nil for predictions.
	taskFor func(datasets.Instance) evaluate.Task
	// run is the folder of the run that made the predictions; "" if unknown.
	run string
	// repetitions are the submissions of a run with -k, without the first repetitions, which
	// are in preds.json.
	repetitions []runs.Submission
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
	p.predictions = list.List
	for _, w := range list.Warnings {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %s", path, w))
	}
	if err := p.findRepetitions(); err != nil {
		return p, err
	}
	if len(p.predictions)+len(p.repetitions) == 0 {
		return p, usage.Errorf("%s has no predictions", path)
	}
	return p, nil
}

// findRepetitions reads the submissions of a run that preds.json does not contain. It
// does nothing if -p names the file instead of the folder.
func (p *patches) findRepetitions() error {
	if p.run == "" || filepath.Clean(p.name) != p.run {
		return nil
	}
	run, err := runs.Read(p.run)
	if err != nil {
		return err
	}
	if p.repetitions, err = run.ExtraSubmissions(); err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %v; these attempts get no verdict", p.run, err))
	}
	return nil
}

// namelessModel is the official harness's name for the model of a prediction
// without a model name.
const namelessModel = "None"

// tasks returns a task for each patch of an instance. byID has the predictions by
// instance id.
func (p patches) tasks(in datasets.Instance, byID map[string]trajectories.Prediction) []evaluate.Task {
	if p.taskFor != nil {
		return []evaluate.Task{p.taskFor(in)}
	}
	var tasks []evaluate.Task
	if pred, ok := byID[in.ID]; ok {
		tasks = append(tasks, NewTask(in, pred))
	}
	for _, s := range p.repetitions {
		if s.InstanceID == in.ID {
			t := NewTask(in, s.Prediction)
			t.Repetition = s.Repetition
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// includes reports whether the instance has a patch.
func (p patches) includes(id string, byID map[string]trajectories.Prediction) bool {
	_, ok := byID[id]
	return ok || p.taskFor != nil ||
		slices.ContainsFunc(p.repetitions, func(s runs.Submission) bool { return s.InstanceID == id })
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

// useRunDataset selects the datasets of the run that made the patches. Unless a flag
// selects rows, it also selects the rows of the run.
func (o *options) useRunDataset(run string) error {
	r, err := runs.Open(run)
	if err != nil {
		return err
	}
	dataset := r.Manifest.Dataset
	o.runSources = dataset.Editions
	for _, source := range dataset.Editions {
		o.Subsets = append(o.Subsets, source.Name)
		if len(dataset.Editions) == 1 && o.Split == "" {
			o.Split = source.Split
		}
	}
	if o.selection.Filter != "" || o.selection.Slice != "" || len(o.selection.IDs) > 0 {
		return nil
	}
	data, err := json.Marshal(dataset.Selection)
	if err == nil && dataset.Selection != nil {
		err = json.Unmarshal(data, &o.selection)
	}
	if err != nil {
		return fmt.Errorf("read rows of the run %s: %w; name them with --subset", run, err)
	}
	return nil
}
