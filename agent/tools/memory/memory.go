// Package memory implements the memory tools of a model: notes, which can
// outlive a session, goals of one attempt, and recall, which shows earlier
// steps.
//
// A Store keeps notes in one file on the host, outside of any repository, so
// that patches never contain them. The file belongs to a workspace or to one
// attempt. Any number of processes may write it concurrently. A file that
// cannot be parsed is never overwritten. The content is untrusted: it is
// bounded when read and sanitized when shown.
//
//	store := memory.NewStore(filepath.Join(dir, "notes.json"))
//	added, err := store.Add(ctx, "build", "make helper comes first")
//	registry, err := tools.New(tools.Config{Tools: append(memory.NoteTools(store), memory.NewGoals(), memory.RecallTool{})})
//
// Goals have no file: the record of each call contains the change, and a
// resumed attempt restores them from its records. The recall tool reads the
// attempt's steps.
package memory

// The values of Config.Notes.
const (
	NotesOff       = "off"
	NotesWorkspace = "workspace"
	NotesAttempt   = "attempt"
)

// Config is the memory section of a configuration.
type Config struct {
	// Notes is the scope of notes: "off", "workspace" (all sessions in a
	// directory share them) or "attempt". If there is no directory of the user,
	// as in batches and containers, "workspace" means "attempt", so that
	// instances share no notes.
	Notes string `yaml:"notes" json:"notes,omitempty" check:"oneof=|off|workspace|attempt"`
	// Goals enables the tool goal.
	Goals bool `yaml:"goals" json:"goals,omitempty"`
}
