package trajectories

// Times break down the duration of an attempt. Start precedes Outcome.Start. Time
// that fits no field is not counted.
type Times struct {
	Start    Seconds `json:"start"`    // creating the sandbox: pulls, and replayed commands
	Scrub    Seconds `json:"scrub"`    // scrubbing the repository
	Model    Seconds `json:"model"`    // model calls, including waits for the provider
	Commands Seconds `json:"commands"` // commands of replies, and the start-up command
	Diff     Seconds `json:"diff"`     // the working tree diff, and patch checks
}

// Add adds the duration of a record of type t.
func (t *Times) Add(kind Type, d Seconds) {
	switch kind {
	case TypeReplay:
		t.Start += d
	case TypeScrub:
		t.Scrub += d
	case TypeCall, TypeSummary:
		t.Model += d
	case TypeExecution:
		t.Commands += d
	case TypePatchCheck, TypeDiff:
		t.Diff += d
	}
}
