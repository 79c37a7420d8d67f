package cmdutil

import (
	"os"
)

// FileExists reports whether path exists.
func FileExists(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}
