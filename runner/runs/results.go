package runs

import (
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Results is the contents of results.json.
type Results struct {
	Format    string            `json:"format"`
	Instances map[string]Result `json:"instances"`
}

// Result is the result of one instance in results.json. It describes the selected
// attempt of the first repetition.
type Result struct {
	// Class is empty if the first repetition has no ended attempt.
	Class      trajectories.Class `json:"class"`
	ExitStatus string             `json:"exit_status"`
	Verdict    *string            `json:"verdict"` // class of the verdict; null before evaluation
	// Rewards and SharedRewards are those of the verdict on a Harbor task; see
	// verdicts.Record.
	Rewards       map[string]float64 `json:"rewards,omitempty"`
	SharedRewards map[string]float64 `json:"shared_rewards,omitempty"`
	Attempt       int                `json:"attempt"`            // number of the selected attempt
	Attempts      int                `json:"attempts,omitempty"` // highest attempt number; 0 in Repetitions
	Steps         int                `json:"steps"`
	Usage         model.Usage        `json:"usage"`
	Cost          *model.Cost        `json:"cost"` // null if no cost is known
	Start         time.Time          `json:"start"`
	End           time.Time          `json:"end"`
	Seconds       float64            `json:"seconds"`
	Times         trajectories.Times `json:"times,omitzero"`
	Autosubmitted bool               `json:"autosubmitted,omitempty"`
	PatchBytes    int                `json:"patch_bytes"`
	PartialPatch  trajectories.Bytes `json:"partial_patch,omitempty"`
	Error         string             `json:"error,omitempty"`
	Hint          string             `json:"hint,omitempty"`
	NetworkProof  string             `json:"network_proof,omitempty"`
	Warnings      []string           `json:"warnings,omitempty"`
	// Repetitions are the results of all repetitions if there are several.
	// Repetition is set only in them.
	Repetition  int      `json:"sample,omitempty"`
	Repetitions []Result `json:"samples,omitempty"`
}

func (e Ended) result() Result {
	o := e.Outcome
	return Result{
		Class: o.Class, ExitStatus: o.ExitStatus, Attempt: e.Attempt,
		Steps: o.Steps, Usage: o.Usage, Cost: o.Cost.IfKnown(o.Usage),
		Start: o.Start, End: o.End, Seconds: o.ActiveDuration().Seconds(), Times: o.Times,
		Autosubmitted: o.Autosubmitted, PatchBytes: len(o.Submission), PartialPatch: o.PartialPatch,
		Error: o.Error, Hint: o.Hint, NetworkProof: o.NetworkProof, Warnings: o.Warnings,
	}
}

// CopyVerdict copies the class and the rewards of the verdict on another result.
func (r *Result) CopyVerdict(from Result) {
	r.Verdict, r.Rewards, r.SharedRewards = from.Verdict, from.Rewards, from.SharedRewards
}

// KnownCost returns the cost, or 0 if it is unknown.
func (r Result) KnownCost() model.Cost {
	if r.Cost == nil {
		return 0
	}
	return *r.Cost
}

// asText converts a submission for a prediction file. It replaces invalid UTF-8,
// which is rare: the agent encodes files that are not UTF-8 as a binary patch. If
// that failed, the outcome has a warning and the journal has the original bytes.
func asText(patch []byte) string {
	if utf8.Valid(patch) {
		return string(patch)
	}
	return string([]rune(string(patch)))
}
