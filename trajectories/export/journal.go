package export

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/trajectories"
)

// maxJournal bounds the journal of one attempt, in bytes, since ReadJournal holds the
// records in memory.
const maxJournal = 1 << 30

// ReadJournal reads the journal at path. It returns the attempt and the SHA-256 of the
// file in hex, without what omit names. The attempt has its children if omit is 0.
func ReadJournal(path string, omit trajectories.Omit) (*trajectories.Attempt, string, error) {
	f, err := rootdir.OpenRegular(path, syscall.O_NOFOLLOW)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // read only
	if info, err := f.Stat(); err != nil || info.Size() > maxJournal {
		return nil, "", errors.Join(err, fmt.Errorf("%s has more than %d MB", path, maxJournal>>20))
	}
	hash := sha256.New()
	reader := io.TeeReader(io.LimitReader(f, maxJournal), hash)
	t, err := omit.Fold(trajectories.CheckOrder(trajectories.Scan(path, reader)))
	if err == nil && t.Header.Format == "" {
		err = errors.New("file is empty")
	}
	if err != nil && strings.HasPrefix(err.Error(), path) { // the error has the path and the line
		return nil, "", err
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	if _, err := io.Copy(io.Discard, reader); err != nil { // hash an incomplete last line too
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	if omit == 0 {
		if t.Children, err = readChildren(path); err != nil {
			return nil, "", err
		}
	}
	return t, hex.EncodeToString(hash.Sum(nil)), nil
}

// readChildren reads the journals of the children of an attempt.
func readChildren(journal string) ([]*trajectories.Attempt, error) {
	paths := trajectories.ChildJournals(journal)
	var children []*trajectories.Attempt
	for _, n := range slices.Sorted(maps.Keys(paths)) {
		t, _, err := ReadJournal(paths[n], 0)
		if err != nil {
			return nil, err
		}
		children = append(children, t)
	}
	return children, nil
}

// Steps returns the number of replies in the conversation, including those with a format
// error. It does not count failed calls, abandoned calls and calls of subagents, which
// rows do not contain.
func (item *Item) Steps() int { return item.Replies() }

// autosubmitted returns Outcome.Autosubmitted, or false without an outcome.
func (item *Item) autosubmitted() bool { return item.Outcome != nil && item.Outcome.Autosubmitted }

// ProviderTokens returns the sum of the provider's token counts for the last prompt and
// reply; 0 if unknown.
func ProviderTokens(t *trajectories.Attempt) int64 {
	for i := len(t.Entries) - 1; i >= 0; i-- {
		if c := t.Entries[i].Call; c != nil {
			return c.Usage.Prompt + c.Usage.Completion
		}
	}
	return 0
}
