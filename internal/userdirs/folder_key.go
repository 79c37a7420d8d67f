package userdirs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// FolderKey returns the absolute path of a folder without symbolic links, and a hash of
// this path for use in file names.
func FolderKey(folder string) (path, key string, err error) {
	path, err = filepath.Abs(folder)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", "", fmt.Errorf("find folder %s: %w", folder, err)
	}
	sum := sha256.Sum256([]byte(path))
	return path, hex.EncodeToString(sum[:8]), nil
}
