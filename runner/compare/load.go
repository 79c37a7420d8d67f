package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// maxConfig bounds config.yaml, in bytes.
const maxConfig = 16 << 20

// Load reads the folder of a run and its verdicts. The folder is untrusted. The
// error wraps runs.ErrNotRunFolder if dir is not the folder of a run.
func Load(dir string) (Run, error) {
	run, err := runs.Read(dir)
	if err != nil {
		return Run{}, err
	}
	return NewRun(run)
}

// NewRun returns a run that has been read, with its verdicts.
func NewRun(run *runs.Run) (Run, error) {
	found, err := run.Verdicts()
	if err != nil {
		return Run{}, err
	}
	dir := filepath.Clean(run.Dir)
	r := Run{Name: dir, Folder: dir, Selected: max(run.Manifest.Selected(), len(run.Instances))}
	records := found.Index()
	for _, in := range run.Instances {
		r.Instances = append(r.Instances, newInstance(in, run.Manifest.Repetitions(), records))
	}
	r.Settings, err = settingsOf(run.Dir, run.Manifest)
	return r, err
}

// Select keeps the instances of a selection. Instances that the run has not started
// do not count any more, because their ids are unknown.
func (r *Run) Select(s datasets.Selection) error {
	var ids []string
	for _, in := range r.Instances {
		ids = append(ids, in.ID)
	}
	selected, err := s.Apply(ids)
	if err != nil || len(selected) == len(ids) {
		return err
	}
	r.Instances = slices.DeleteFunc(r.Instances, func(in Instance) bool { return !slices.Contains(selected, in.ID) })
	r.Selected = len(r.Instances)
	return nil
}

func newInstance(in runs.Instance, requested int, records verdicts.Index) Instance {
	i := Instance{ID: in.ID, Requested: max(requested, len(in.Repetitions), 1), Bill: Cost{Known: true}}
	for _, r := range in.Repetitions {
		i.Requested = max(i.Requested, r.Repetition)
		if a, ok := newAttempt(r); ok {
			if v := records.Find(in.ID, r.Repetition, r.PatchBytes, verdicts.Class(*r.Verdict)); v != nil {
				a.Flagged = len(v.Flags) > 0 || v.IsQuarantined()
				i.Spec = v.Basis.ScriptSHA256
			}
			i.Attempts = append(i.Attempts, a)
		}
	}
	for _, a := range in.AllAttempts() {
		t := a.Totals()
		i.Bill = i.Bill.add(Cost{float64(t.Cost), t.Usage.Unpriced == 0})
	}
	return i
}

// newAttempt returns a result as an attempt; false if it has no verdict of the
// tests.
func newAttempt(r runs.Result) (Attempt, bool) {
	if !r.Class.IsResult() || r.Verdict == nil {
		return Attempt{}, false
	}
	class := verdicts.Class(*r.Verdict)
	if !class.IsVerdict() || !slices.Contains(verdicts.Classes(), class) {
		return Attempt{}, false
	}
	var reward *float64
	if n, ok := verdicts.Reward(r.Rewards); ok {
		reward = &n
	}
	return Attempt{
		Reward:  reward,
		Outcome: string(class), Resolved: class == verdicts.Resolved, AtLimit: r.Class == trajectories.Limit,
		Steps: min(max(r.Steps, 0), maxSteps), Cost: costOf(r),
	}, true
}

func costOf(r runs.Result) Cost {
	c := Cost{Known: r.Usage.Unpriced == 0}
	if r.Cost != nil {
		c.Dollars = float64(*r.Cost)
	}
	return c
}

// maxSteps bounds the number of steps, which comes from an untrusted file.
const maxSteps = 1_000_000

// imagePrefix starts the names of settings that are digests of images.
const imagePrefix = "image "

// settingsOf returns what may explain a difference between runs: the settings
// that affect results, the dataset, the images and the version of mini.
func settingsOf(dir string, m runs.Manifest) (map[string]string, error) {
	settings := map[string]string{}
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	data, err := root.ReadFile(filepath.Join(root.Path(), datasets.ConfigFile), maxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read run: %w", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, datasets.ConfigFile), err)
	}
	flatten("", config, settings)
	set := func(name, value string) {
		if value != "" {
			settings[name] = value
		}
	}
	set("dataset", m.Dataset.Name)
	var rows []string
	for _, e := range m.Dataset.Editions {
		rows = append(rows, e.SHA256)
	}
	set("dataset rows", strings.Join(rows, " "))
	set("mini version", m.MiniVersion)
	for name, digest := range m.Images {
		set(imagePrefix+name, digest)
	}
	return settings, nil
}

// flatten adds the leaves of a configuration by their dotted keys, without
// settings that do not affect results.
func flatten(path string, value any, into map[string]string) {
	if path != "" && !runner.AffectsResults(path) {
		return
	}
	if group, ok := value.(map[string]any); ok {
		for name, v := range group {
			flatten(strings.TrimPrefix(path+"."+name, "."), v, into)
		}
		return
	}
	if text, ok := value.(string); ok {
		into[path] = text
	} else if data, err := json.Marshal(value); err == nil {
		into[path] = string(data)
	}
}
