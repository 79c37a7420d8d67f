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
	"github.com/minibench/mini/runner/verdicts"
)

// maxConfig bounds config.yaml, in bytes.
const maxConfig = 16 << 20

// Load reads the folder of a run and its verdicts. The folder is untrusted. The
// error wraps runner.ErrNotRunFolder if dir is not the folder of a run.
func Load(dir string) (Run, error) {
	run, err := runner.ReadRun(dir)
	if err != nil {
		return Run{}, err
	}
	found, err := verdicts.Read(dir)
	if err != nil {
		return Run{}, err
	}
	r := Run{Name: filepath.Clean(dir), Selected: max(run.Manifest.Selected(), len(run.Instances))}
	records := newestRecords(found)
	for _, in := range run.Instances {
		r.Instances = append(r.Instances, newInstance(in, run.Manifest.Repetitions(), records))
	}
	r.Settings, err = settingsOf(dir, run.Manifest)
	return r, err
}

// attemptKey identifies the verdicts on one attempt.
type attemptKey struct {
	id         string
	repetition int
}

// newestRecords returns the newest verdict on each attempt.
func newestRecords(found verdicts.Set) map[attemptKey]verdicts.Verdict {
	records := map[attemptKey]verdicts.Verdict{}
	for _, v := range found.Verdicts {
		key := attemptKey{v.Instance, max(1, v.Repetition)}
		if old, ok := records[key]; !ok || v.Written.After(old.Written) {
			records[key] = v
		}
	}
	return records
}

func newInstance(in runner.Instance, requested int, records map[attemptKey]verdicts.Verdict) Instance {
	i := Instance{ID: in.ID, Requested: max(requested, len(in.Repetitions), 1), Bill: Cost{Known: true}}
	for _, r := range in.Repetitions {
		i.Requested = max(i.Requested, r.Repetition)
		if a, ok := newAttempt(r); ok {
			v := records[attemptKey{in.ID, r.Repetition}]
			a.Flagged = len(v.Flags) > 0 || v.IsQuarantined()
			i.Spec = v.Basis.ScriptSHA256
			i.Attempts = append(i.Attempts, a)
		}
	}
	for _, a := range in.Attempts {
		t := a.Totals()
		i.Bill = i.Bill.add(Cost{float64(t.Cost), t.Usage.Unpriced == 0})
	}
	if len(in.Attempts) == 0 { // only results.json is present
		for _, r := range in.Repetitions {
			i.Bill = i.Bill.add(costOf(r))
		}
	}
	return i
}

// newAttempt returns a result as an attempt; false if it has no verdict of the
// tests.
func newAttempt(r runner.Result) (Attempt, bool) {
	if !r.Class.IsResult() || r.Verdict == nil {
		return Attempt{}, false
	}
	class := verdicts.Class(*r.Verdict)
	if !class.IsFinal() || class == verdicts.Error || !slices.Contains(verdicts.Classes(), class) {
		return Attempt{}, false
	}
	return Attempt{
		Outcome: string(class), Resolved: class == verdicts.Resolved,
		Steps: r.Steps, Cost: costOf(r),
	}, true
}

func costOf(r runner.Result) Cost {
	c := Cost{Known: r.Usage.Unpriced == 0}
	if r.Cost != nil {
		c.Dollars = float64(*r.Cost)
	}
	return c
}

// settingsOf returns what may explain a difference between runs: the settings
// that affect results, the dataset, the images and the version of mini.
func settingsOf(dir string, m runner.Manifest) (map[string]string, error) {
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
		set("image "+name, digest)
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
