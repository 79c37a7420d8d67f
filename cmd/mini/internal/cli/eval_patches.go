package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/trajectories"
)

// patches are what is to be judged: predictions, or for every row the same.
type patches struct {
	name     string
	list     []trajectories.Prediction
	warnings []string
	// ofRow is gold or noop, "" for predictions.
	ofRow func(datasets.Instance) evaluate.Task
	// run is the folder of the run that the predictions are from, "" where they
	// are from elsewhere.
	run string
	// further are those of a run that has several for an instance.
	further []runner.Submission
}

// predsFile is where a run has what it submitted.
const predsFile = "preds.json"

// readPatches finds what -p names. The words come before files of that name,
// which are ./gold and ./noop.
func readPatches(name string) (patches, error) {
	switch name {
	case "":
		return patches{}, usagef("-p is needed: a file of predictions, the folder of a run, gold or noop")
	case evaluate.GoldModel:
		return patches{name: name, ofRow: evaluate.Gold}, nil
	case evaluate.NoopModel:
		return patches{name: name, ofRow: evaluate.Noop}, nil
	}
	p := patches{name: name}
	path := name
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, usagef("-p %s: no such file or folder; PREDS is a file of predictions, the folder of a run, gold or noop", name)
	case err != nil:
		return p, err
	case info.IsDir():
		path = filepath.Join(name, predsFile)
		if !exists(path) {
			return p, usagef("-p %s: the folder has no %s, which mini bench writes; name the file", name, predsFile)
		}
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return p, usagef("-p %s: neither a file nor a folder", name)
	}
	if dir := filepath.Dir(path); filepath.Base(path) == predsFile && exists(filepath.Join(dir, "run.json")) {
		p.run = dir
	}
	read, err := trajectories.ReadPredictions(path)
	if err != nil {
		return p, err
	}
	p.list = read.List
	for _, text := range read.Warnings {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %s", path, text))
	}
	if err := p.findFurther(); err != nil {
		return p, err
	}
	if len(p.list)+len(p.further) == 0 {
		return p, usagef("%s has no predictions", path)
	}
	return p, nil
}

// findFurther reads what further samples of a run have submitted. They are
// judged where the folder is named, and not for its file of predictions.
func (p *patches) findFurther() error {
	if p.run == "" || filepath.Clean(p.name) != p.run {
		return nil
	}
	run, err := runner.ReadRun(p.run)
	if err != nil {
		return err
	}
	if p.further, err = run.Further(); err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %v; without a verdict", p.run, err))
	}
	return nil
}

// namelessModel is what the official harness calls a model that a prediction
// does not name.
const namelessModel = "None"

// tasks are the patches for a row: one, none, or those of several samples.
func (p patches) tasks(in datasets.Instance, byID map[string]trajectories.Prediction) []evaluate.Task {
	if p.ofRow != nil {
		return []evaluate.Task{p.ofRow(in)}
	}
	var tasks []evaluate.Task
	if pred, ok := byID[in.ID]; ok {
		tasks = append(tasks, prediction(in, pred))
	}
	for _, s := range p.further {
		if s.InstanceID == in.ID {
			t := prediction(in, s.Prediction)
			t.Sample = s.Sample
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// has says that there is a patch for an instance.
func (p patches) has(id string, byID map[string]trajectories.Prediction) bool {
	_, ok := byID[id]
	return ok || p.ofRow != nil || slices.ContainsFunc(p.further, func(s runner.Submission) bool { return s.InstanceID == id })
}

// prediction is a model's patch as a task.
func prediction(in datasets.Instance, p trajectories.Prediction) evaluate.Task {
	model := p.Model
	if model == "" {
		model = namelessModel
	}
	if p.Null {
		return evaluate.Prediction(in, model, nil)
	}
	return evaluate.Prediction(in, model, []byte(p.Patch))
}

// adopt takes the rows of the run that the patches are from, where nobody
// says which: its datasets, and those it selected.
func (o *evalOptions) adopt(run string) error {
	r, err := runner.ReadRun(run)
	if err != nil {
		return err
	}
	d := r.Manifest.Dataset
	o.rows = d.Editions
	for _, e := range d.Editions {
		o.subsets = append(o.subsets, e.Name)
		if len(d.Editions) == 1 && o.split == "" {
			o.split = e.Split
		}
	}
	if o.selection.Filter != "" || o.selection.Slice != "" || len(o.selection.IDs) > 0 {
		return nil
	}
	data, err := json.Marshal(d.Selection)
	if err == nil && d.Selection != nil {
		err = json.Unmarshal(data, &o.selection)
	}
	if err != nil {
		return fmt.Errorf("read which rows the run %s has: %w; name them with --subset", run, err)
	}
	return nil
}
