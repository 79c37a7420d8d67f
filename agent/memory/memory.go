// Package memory keeps what a model wants to know later: notes, which survive
// sessions, and the goals of one.
package memory

// Config is the section memory of a configuration.
type Config struct {
	// Notes says whose notes they are: "off", "workspace" (every session in a
	// folder shares them) or "attempt".
	Notes string `yaml:"notes" json:"notes,omitempty"`
	// Goals gives commands a list of goals.
	Goals bool `yaml:"goals" json:"goals,omitempty"`
}
