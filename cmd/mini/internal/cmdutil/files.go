package cmdutil

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"

	"github.com/minibench/mini/internal/rootdir"
)

// FileExists reports whether path exists.
func FileExists(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

// SetMemory makes the garbage collector run at percent, and more often near a limit in bytes, for commands
// that allocate much memory. It does nothing if the user has set GOGC or GOMEMLIMIT.
func SetMemory(percent int, limit int64) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// FileSHA256 returns the SHA-256 of a file in hex.
func FileSHA256(path string) (string, error) {
	f, err := rootdir.OpenRegular(path, 0)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
