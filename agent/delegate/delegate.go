// Package delegate lets a command hand a part of its task to a child: an agent
// with a conversation of its own, in the same sandbox.
package delegate

// Config is the section agents of a configuration.
type Config struct {
	// Enabled gives commands delegate, chain and board.
	Enabled bool `yaml:"enabled" json:"enabled,omitempty"`
	// Depth is how far children may have children: 1 is not at all. Max is how many
	// an attempt may have, all together.
	Depth int `yaml:"depth" json:"depth,omitempty"`
	Max   int `yaml:"max" json:"max,omitempty"`
	// StepLimit and CostLimit bound each child; what it takes is also the parent's.
	StepLimit int     `yaml:"step_limit" json:"step_limit,omitempty"`
	CostLimit float64 `yaml:"cost_limit" json:"cost_limit,omitempty"`
	// Profiles are those that a child may be given beside the parent's own
	// configuration; see mini --profile.
	Profiles []string `yaml:"profiles" json:"profiles,omitempty"`
}
