package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minibench/mini/runner/verdicts"
)

// verdictKeySize is the length of the key that seals verdicts, in bytes.
const verdictKeySize = 32

// verdictKeyPath is where the user's key is: outside of all runs, so that no
// folder of a stranger's can bring verdicts that count as the user's own.
func verdictKeyPath() string { return filepath.Join(stateDir(), "mini", "verdict.key") }

// readVerdictKey returns the user's key; nil where there is none yet.
func readVerdictKey() ([]byte, error) {
	path := verdictKeyPath()
	text, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read key of verdicts: %w", err)
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != verdictKeySize {
		return nil, fmt.Errorf("read key of verdicts: %s is damaged; remove it, and mini makes a new one", path)
	}
	return key, nil
}

// makeVerdictKey returns the user's key, and makes it where there is none.
func makeVerdictKey() (key []byte, err error) {
	if key, err = readVerdictKey(); key != nil || err != nil {
		return key, err
	}
	path := verdictKeyPath()
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("make key of verdicts: %w", err) }
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".verdict.key-") // of mode 0600
	if err != nil {
		return fail(err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has another name, or is of no use
	key = make([]byte, verdictKeySize)
	_, _ = rand.Read(key) // never fails
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fail(err)
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) { // another mini may be faster
		return fail(err)
	}
	return readVerdictKey()
}

// ownVerdict says whether the user made the record of a verdict. The key is read
// each time: an evaluation may have made it meanwhile.
func ownVerdict(record verdicts.Record) bool {
	key, err := readVerdictKey()
	return err == nil && record.IsSealed(key)
}
