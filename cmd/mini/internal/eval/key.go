package eval

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/internal/userfiles"
	"github.com/minibench/mini/runner/verdicts"
)

// verdictKeySize is the length of the key that signs verdicts, in bytes.
const verdictKeySize = 32

// verdictKeyPath returns the path of the user's key. The key is outside of all run
// folders, so that verdicts in a downloaded run do not count as the user's own.
func verdictKeyPath() string { return filepath.Join(userdirs.StateDir(), "mini", "verdict.key") }

// readVerdictKey returns the user's key, or nil if it does not exist.
func readVerdictKey() ([]byte, error) {
	path := verdictKeyPath()
	data, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read verdict key: %w", err)
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(data)))
	if err != nil || len(key) != verdictKeySize {
		return nil, fmt.Errorf("read verdict key: %s is damaged; remove it, and mini creates a new one", path)
	}
	return key, nil
}

// EnsureKey returns the user's key for signing verdicts. It creates the key if
// it does not exist.
func EnsureKey(ctx context.Context) ([]byte, error) {
	err := userfiles.Update(ctx, verdictKeyPath(), func(old []byte) ([]byte, error) {
		if len(old) > 0 {
			return old, nil
		}
		key := make([]byte, verdictKeySize)
		_, _ = rand.Read(key) // never fails
		return []byte(hex.EncodeToString(key) + "\n"), nil
	})
	if err != nil {
		return nil, fmt.Errorf("create verdict key: %w", err)
	}
	return readVerdictKey()
}

// IsSignedByUser reports whether a verdict record is signed with the user's key. It
// reads the key at each call, because an evaluation may create the key meanwhile.
func IsSignedByUser(record verdicts.Record) bool {
	key, err := readVerdictKey()
	return err == nil && record.IsSignedBy(key)
}
