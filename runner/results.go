package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/google/renameio/v2"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Results is results.json.
type Results struct {
	Format    string            `json:"format"`
	Instances map[string]Result `json:"instances"`
}

// Result is one instance in results.json: how its selected attempt ended.
type Result struct {
	Class         trajectories.Class `json:"class"`
	ExitStatus    string             `json:"exit_status"`
	Verdict       *string            `json:"verdict"` // the class of an evaluation; null before there is one
	Attempt       int                `json:"attempt"`
	Attempts      int                `json:"attempts"`
	Steps         int                `json:"steps"`
	Usage         model.Usage        `json:"usage"`
	Cost          model.Cost         `json:"cost"`
	Start         time.Time          `json:"start"`
	End           time.Time          `json:"end"`
	Seconds       float64            `json:"seconds"`
	Autosubmitted bool               `json:"autosubmitted,omitempty"`
	PatchBytes    int                `json:"patch_bytes"`
	PartialPatch  trajectories.Bytes `json:"partial_patch,omitempty"`
	Error         string             `json:"error,omitempty"`
	Hint          string             `json:"hint,omitempty"`
	Warnings      []string           `json:"warnings,omitempty"`
}

// flush writes results.json and preds.json as they are now.
func (b *book) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = time.Now()
	results := Results{Format: trajectories.Format, Instances: map[string]Result{}}
	preds := map[string]trajectories.Prediction{}
	for id, e := range b.entries {
		if e.selected == 0 {
			continue
		}
		res := e.result()
		if p, ok := b.prediction(id); ok {
			preds[id], res.Verdict = p, b.folder.verdict(p)
		}
		results.Instances[id] = res
	}
	if err := writeJSON(filepath.Join(b.folder.dir, resultsFile), results); err != nil {
		return err
	}
	return trajectories.WritePredictions(filepath.Join(b.folder.dir, predsFile), preds)
}

// prediction is what an instance's selected attempt has submitted; false where
// it has no result. Its caller holds the lock.
func (b *book) prediction(id string) (trajectories.Prediction, bool) {
	e := b.entries[id]
	if e == nil || e.selected == 0 || !e.outcome.Class.Counts() {
		return trajectories.Prediction{}, false
	}
	return trajectories.Prediction{
		Model: cmp.Or(e.model, b.modelName), InstanceID: id, Patch: asText(e.outcome.Submission),
	}, true
}

func (e *entry) result() Result {
	o := e.outcome
	return Result{
		Class: o.Class, ExitStatus: o.ExitStatus, Attempt: e.selected, Attempts: e.last,
		Steps: o.Steps, Usage: o.Usage, Cost: o.Cost,
		Start: o.Start, End: o.End, Seconds: o.Took().Seconds(),
		Autosubmitted: o.Autosubmitted, PatchBytes: len(o.Submission), PartialPatch: o.PartialPatch,
		Error: o.Error, Hint: o.Hint, Warnings: o.Warnings,
	}
}

// asText is a submission as a prediction file can hold it. The agent has made
// a binary patch of what is not UTF-8; where it could not, the outcome has a
// warning and the journal the bytes.
func asText(patch []byte) string {
	if utf8.Valid(patch) {
		return string(patch)
	}
	return string([]rune(string(patch)))
}

// writeJSON replaces a file in one piece.
func writeJSON(path string, v any) error {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := renameio.WriteFile(path, data.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
