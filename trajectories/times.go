package trajectories

// Times divides the duration of an attempt by activity. Other activities are not
// counted. SandboxStart includes the creation of the first sandbox, which is before
// Outcome.Start.
type Times struct {
	SandboxStart Seconds `json:"start"`    // creating the sandbox, with image pulls and replayed commands
	Scrub        Seconds `json:"scrub"`    // scrubbing the repository
	Model        Seconds `json:"model"`    // model calls, including waits for the provider
	Commands     Seconds `json:"commands"` // commands of replies, and the start-up command
	Diff         Seconds `json:"diff"`     // the working tree diff, and patch checks
}

// Add adds the duration of a record of type typ. It ignores types without an activity.
func (t *Times) Add(typ Type, d Seconds) {
	switch typ {
	case TypeReplay:
		t.SandboxStart += d
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
