package verdicts

import (
	"maps"
	"slices"
)

// KindHarbor is the kind of a record about a task in Harbor's form.
const KindHarbor = "harbor"

// StepVerdict is the verdict on one step of a task.
type StepVerdict struct {
	Name    string             `json:"name"`
	Class   Class              `json:"class"`
	Rewards map[string]float64 `json:"rewards,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	Seconds float64            `json:"duration_seconds"`
}

// Reward returns the reward that counts: the one named "reward", or else the first by name.
// ok is false if there are no rewards.
func Reward(rewards map[string]float64) (n float64, ok bool) {
	name := "reward"
	if _, ok := rewards[name]; !ok && len(rewards) > 0 {
		name = slices.Min(slices.Collect(maps.Keys(rewards)))
	}
	n, ok = rewards[name]
	return n, ok
}

// IsBinary reports whether the reward that counts is 0 or 1, or there is none. Only then
// resolved or not says it all.
func IsBinary(rewards map[string]float64) bool {
	n, _ := Reward(rewards)
	return n == 0 || n == 1
}
