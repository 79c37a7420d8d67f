// Package skills holds instructions for tasks of a kind, which a model is told of
// by name and reads when it needs them: a folder with a file SKILL.md each.
package skills

// Config is the section skills of a configuration.
type Config struct {
	// Use names the skills that the model is told of, "*" all there are; empty
	// means none.
	Use []string `yaml:"use" json:"use,omitempty"`
	// Paths are folders of skills beside those that ship with mini and those in the
	// user's own folder; of two with one name the first counts.
	Paths []string `yaml:"paths" json:"paths,omitempty"`
}
