package regrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// maxSummary limits the size of a summary, in bytes.
const maxSummary = 64 << 20

// summarize updates the existing summaries of the folder. It does not create missing
// ones, which were never written or were moved.
func (c Config) summarize(root *rootdir.Dir, records []verdicts.Verdict) error {
	byRun := map[string][]verdicts.Record{}
	for _, v := range records {
		byRun[v.RunID] = append(byRun[v.RunID], v.Record)
	}
	entries, err := root.ReadDir(c.Dir)
	if err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	for id, records := range byRun {
		for _, e := range entries {
			model, ok := strings.CutSuffix(e.Name(), "."+id+".json")
			if !ok || !slices.ContainsFunc(records, func(r verdicts.Record) bool { return modelDirName(r.Model) == model }) {
				continue // the summary of another run, whose id ends in "." and this id
			}
			if err := c.updateOfficial(root, filepath.Join(c.Dir, e.Name()), model, id, records); err != nil {
				return err
			}
		}
		if err := c.updateOwn(root, id, records); err != nil {
			return err
		}
	}
	return nil
}

// updateOfficial updates the official summary <model>.<run id>.json. It keeps the
// lists of rows and predictions.
func (c Config) updateOfficial(root *rootdir.Dir, path, model, id string, records []verdicts.Record) error {
	data, err := root.ReadFile(path, maxSummary)
	if err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	var old struct {
		Submitted  []string `json:"submitted_ids"`
		Completed  []string `json:"completed_ids"`
		Incomplete []string `json:"incomplete_ids"`
		Empty      []string `json:"empty_patch_ids"`
		Errors     []string `json:"error_ids"`
	}
	if err := json.Unmarshal(data, &old); err != nil {
		return fmt.Errorf("read summary %s: %w", path, err)
	}
	byInstance := recordsByInstance(records, model)
	var preds []grade.Prediction
	for _, instance := range old.Submitted {
		p := grade.Prediction{InstanceID: instance, Model: model, Empty: slices.Contains(old.Empty, instance)}
		if r, ok := byInstance[instance]; ok {
			p.Model = r.Model
		}
		preds = append(preds, p)
	}
	ids := slices.Concat(old.Completed, old.Incomplete, old.Empty, old.Errors)
	slices.Sort(ids)
	layout, err := grade.NewLayout(c.Dir, id)
	if err != nil {
		return err
	}
	s, err := layout.Summarize(slices.Compact(ids), preds)
	if err != nil {
		return err
	}
	if err := root.WriteFile(path, s.JSON()); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// modelDirName returns the name of a model as used in file names.
func modelDirName(model string) string { return strings.ReplaceAll(model, "/", "__") }

// recordsByInstance selects one record per instance. It prefers the record of the
// summary's model to records of other models that continued the run.
func recordsByInstance(records []verdicts.Record, model string) map[string]verdicts.Record {
	byInstance := map[string]verdicts.Record{}
	for _, r := range records {
		if _, ok := byInstance[r.Instance]; !ok || modelDirName(r.Model) == model {
			byInstance[r.Instance] = r
		}
	}
	return byInstance
}

// updateOwn updates mini's own summary.
func (c Config) updateOwn(root *rootdir.Dir, id string, records []verdicts.Record) error {
	path := filepath.Join(c.Dir, verdicts.DirName, id+".json")
	data, err := root.ReadFile(path, maxSummary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var s evaluate.Summary
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	model, _ := strings.CutSuffix(filepath.Base(s.OfficialPath), "."+id+".json")
	byInstance := recordsByInstance(records, model)
	var counted []verdicts.Record
	for _, ids := range s.ByClass {
		for _, instance := range ids {
			if r, ok := byInstance[instance]; ok {
				counted = append(counted, r)
			}
		}
	}
	return verdicts.Write(root, path, s.WithRecords(counted))
}
