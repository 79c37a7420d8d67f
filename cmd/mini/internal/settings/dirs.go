package settings

import (
	"os"
)

// ConfigDirs returns the folders where -c searches for a file after the current one:
// $MSWEA_CONFIG_DIR, if it is set.
func ConfigDirs() []string {
	if dir := os.Getenv("MSWEA_CONFIG_DIR"); dir != "" {
		return []string{dir}
	}
	return nil
}
