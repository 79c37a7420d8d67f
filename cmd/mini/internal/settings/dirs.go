package settings

import (
	"os"
)

// ConfigDirs returns the folders where -c searches for a file.
func ConfigDirs() []string {
	if dir := os.Getenv("MSWEA_CONFIG_DIR"); dir != "" {
		return []string{dir}
	}
	return nil
}
