package trajectories

// Times say where the time of an attempt went. Start is before the outcome's
// start; what is none of these is in no field.
type Times struct {
	Start    Seconds `json:"start"`    // making the sandbox: pulls, and commands that were run again
	Scrub    Seconds `json:"scrub"`    // of the repository
	Model    Seconds `json:"model"`    // calls, with the waits for the provider
	Commands Seconds `json:"commands"` // those of replies, and the start-up command
	Diff     Seconds `json:"diff"`     // the working diff, and checks of submissions
}

// Add counts the duration of a record of this type.
func (t *Times) Add(kind Type, took Seconds) {
	switch kind {
	case TypeReplay:
		t.Start += took
	case TypeScrub:
		t.Scrub += took
	case TypeCall, TypeSummary:
		t.Model += took
	case TypeExecution:
		t.Commands += took
	case TypeCheck, TypeDiff:
		t.Diff += took
	}
}
