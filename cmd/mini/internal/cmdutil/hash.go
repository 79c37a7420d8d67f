package cmdutil

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// FileSHA256 returns the SHA-256 of a file in hex.
func FileSHA256(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
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
