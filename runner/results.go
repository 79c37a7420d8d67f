package runner

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Results is results.json.
type Results struct {
	Format    string            `json:"format"`
	Instances map[string]Result `json:"instances"`
}

// Result is one instance in results.json: how its selected attempt ended. Where
// several were asked for it is that of the first, which no verdict has chosen.
type Result struct {
	// Class is empty where no attempt at the first sample has ended yet, and
	// others are in Samples.
	Class         trajectories.Class `json:"class"`
	ExitStatus    string             `json:"exit_status"`
	Verdict       *string            `json:"verdict"` // the class of an evaluation; null before there is one
	Attempt       int                `json:"attempt"`
	Attempts      int                `json:"attempts,omitempty"`
	Steps         int                `json:"steps"`
	Usage         model.Usage        `json:"usage"`
	Cost          *model.Cost        `json:"cost"` // null where nobody knows any of it
	Start         time.Time          `json:"start"`
	End           time.Time          `json:"end"`
	Seconds       float64            `json:"seconds"`
	Times         trajectories.Times `json:"times,omitzero"` // where they went
	Autosubmitted bool               `json:"autosubmitted,omitempty"`
	PatchBytes    int                `json:"patch_bytes"`
	PartialPatch  trajectories.Bytes `json:"partial_patch,omitempty"`
	Error         string             `json:"error,omitempty"`
	Hint          string             `json:"hint,omitempty"`
	Warnings      []string           `json:"warnings,omitempty"`
	// Sample is there in Samples, which are all that were asked for, where that
	// is more than one.
	Sample  int      `json:"sample,omitempty"`
	Samples []Result `json:"samples,omitempty"`
}

// flush writes results.json and preds.json as they are now.
func (b *book) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = time.Now()
	results := Results{Format: trajectories.Format, Instances: map[string]Result{}}
	preds := map[string]trajectories.Prediction{}
	for id, e := range b.entries {
		if p, ok := b.prediction(id, 1); ok {
			preds[id] = p
		}
		if res, ok := b.result(id, e); ok {
			results.Instances[id] = res
		}
	}
	if err := b.folder.writeJSON(resultsFile, results); err != nil {
		return err
	}
	err := b.folder.root.Replace(filepath.Join(b.folder.dir, predsFile), func(w io.Writer) error {
		return trajectories.EncodePredictions(w, preds)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", predsFile, err)
	}
	return nil
}

// result is an instance with its verdicts; false where no attempt at it has
// ended. The caller holds the lock.
func (b *book) result(id string, e *entry) (Result, bool) {
	if len(e.samples) == 0 {
		return Result{}, false
	}
	res := e.result()
	for i := range res.Samples {
		if p, ok := b.prediction(id, res.Samples[i].Sample); ok {
			res.Samples[i].Verdict = b.folder.verdict(p)
		}
	}
	if p, ok := b.prediction(id, 1); ok {
		res.Verdict = b.folder.verdict(p)
	}
	return res, true
}

// prediction is what a sample of an instance has submitted; false where it has
// no result. Its caller holds the lock.
func (b *book) prediction(id string, k int) (trajectories.Prediction, bool) {
	e := b.entries[id]
	if e == nil || e.samples[k] == nil || !e.samples[k].outcome.Class.Counts() {
		return trajectories.Prediction{}, false
	}
	s := e.samples[k]
	return trajectories.Prediction{
		Model: cmp.Or(s.model, b.modelName), InstanceID: id, Patch: asText(s.outcome.Submission),
	}, true
}

// result is that of the first sample, with the others beside it.
func (e *entry) result() Result {
	res := Result{Attempts: e.last}
	if first := e.samples[1]; first != nil {
		if res = first.result(e.last); len(e.samples) == 1 {
			return res
		}
	}
	res.Samples = e.results()
	return res
}

// results are those of all samples of which an attempt has ended, in order.
func (e *entry) results() []Result {
	var all []Result
	for _, k := range slices.Sorted(maps.Keys(e.samples)) {
		s := e.samples[k].result(0)
		s.Sample = k
		all = append(all, s)
	}
	return all
}

func (s *sample) result(attempts int) Result {
	o := s.outcome
	return Result{
		Class: o.Class, ExitStatus: o.ExitStatus, Attempt: s.selected, Attempts: attempts,
		Steps: o.Steps, Usage: o.Usage, Cost: o.Cost.Known(o.Usage),
		Start: o.Start, End: o.End, Seconds: o.Took().Seconds(), Times: o.Times,
		Autosubmitted: o.Autosubmitted, PatchBytes: len(o.Submission), PartialPatch: o.PartialPatch,
		Error: o.Error, Hint: o.Hint, Warnings: o.Warnings,
	}
}

// Spent is the cost, as far as it is known.
func (r Result) Spent() model.Cost {
	if r.Cost == nil {
		return 0
	}
	return *r.Cost
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

// writeJSON replaces one of the folder's own files in one piece.
func (f *Folder) writeJSON(name string, v any) error {
	data, err := text.JSON(v)
	if err == nil {
		err = f.root.WriteFile(filepath.Join(f.dir, name), data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
