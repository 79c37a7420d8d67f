// Package memory keeps what a model wants to know later: notes, which survive
// sessions, the goals of one attempt, and what was said earlier in it.
//
// Notes are in one file on the host, a Store, outside of any repository: no patch
// ever has them. A file belongs to a folder that a person works in, or to one
// attempt. Any number of processes may write it at once and none loses a note; a
// file that cannot be read stays as it is. Its content is the model's, and it may
// have been changed by other programs: it is bounded when it is read, and made harmless
// when it is shown.
//
//	store := memory.NewStore(filepath.Join(dir, "notes.json"))
//	added, err := store.Add(ctx, "build", "make helper comes first")
//	box, err := tools.New(tools.Config{Tools: append(memory.NoteTools(store), memory.NewGoals(), memory.Recall{})})
//
// Goals have no file: each change is in the record of the call that made it, and
// an attempt that is gone on with has them from there. What was said earlier
// comes from the attempt itself.
package memory

// The values of Config.Notes.
const (
	Off       = "off"
	Workspace = "workspace"
	Attempt   = "attempt"
)

// Keeping are all of them.
var Keeping = []string{Off, Workspace, Attempt}

// Config is the section memory of a configuration.
type Config struct {
	// Notes says whose notes they are: "off", "workspace" (every session in a
	// folder shares them) or "attempt". Where no folder of a person's is worked in,
	// as in a batch and in containers, workspace is attempt: nothing goes from one
	// instance to another.
	Notes string `yaml:"notes" json:"notes,omitempty"`
	// Goals gives commands a list of goals.
	Goals bool `yaml:"goals" json:"goals,omitempty"`
}
