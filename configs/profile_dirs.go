package configs

import (
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/userdirs"
)

// ProfileDirs returns the folders of the user's profiles.
func ProfileDirs() []string {
	path := userdirs.ConfigFile()
	if path == "" {
		return nil
	}
	return []string{filepath.Join(filepath.Dir(path), "profiles")}
}

// WithProfile returns the configuration of a subagent: that of its parent with a
// profile on top.
func WithProfile(cfg *Resolved, profile string) (*Resolved, error) {
	l, err := ReadProfile(profile, ProfileDirs()...)
	if err != nil {
		if text, ok := strings.CutPrefix(err.Error(), "--profile "); ok {
			err = cfg.KeyErrors(KeyError{Key: "agents.profiles", Text: text})
		}
		return nil, err
	}
	return cfg.With(l)
}
