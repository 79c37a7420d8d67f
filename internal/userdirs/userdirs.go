// Package userdirs locates the user's folders for settings and state.
package userdirs

import (
	"os"
	"path/filepath"
)

// ConfigFile returns the path of the user's configuration file; "" if the
// system has no configuration folder.
func ConfigFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mini", "config.yaml")
}

// ConfigFileHint returns the name of the user's configuration file for
// messages.
func ConfigFileHint() string {
	if path := ConfigFile(); path != "" {
		return path
	}
	return "a file for -c"
}

// StateDir returns the folder for state, as in the XDG base directory
// specification, or the folder for temporary files if the user has no home.
func StateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return os.TempDir()
	}
	return filepath.Join(home, ".local", "state")
}
