package export

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// maxJournal bounds the journal of one attempt, in bytes, since ReadJournal holds the
// records in memory.
const maxJournal = 1 << 30

// ReadJournal reads the journal at path. It returns the transcript and the SHA-256 of the
// file in hex. Unless allRecords is set, it omits what training data does not need:
// executions, the diff, provider responses, children and so on.
func ReadJournal(path string, allRecords bool) (*trajectories.Transcript, string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, "", err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, "", fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxJournal:
		return nil, "", fmt.Errorf("%s has more than %d MB", path, maxJournal>>20)
	}
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // read only
	hash := sha256.New()
	reader := io.TeeReader(io.LimitReader(f, maxJournal), hash)
	records := trajectories.CheckOrder(trajectories.Scan(path, reader))
	if !allRecords {
		records = conversationRecords(records)
	}
	t, err := trajectories.BuildTranscript(records)
	if !allRecords {
		dropResponses(t)
	}
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
	if allRecords {
		if t.Children, err = readChildren(path); err != nil {
			return nil, "", err
		}
	}
	return t, hex.EncodeToString(hash.Sum(nil)), nil
}

// readChildren reads the journals of the children of an attempt.
func readChildren(journal string) ([]*trajectories.Transcript, error) {
	paths := trajectories.ChildJournals(journal)
	var children []*trajectories.Transcript
	for _, n := range slices.Sorted(maps.Keys(paths)) {
		t, _, err := ReadJournal(paths[n], true)
		if err != nil {
			return nil, err
		}
		children = append(children, t)
	}
	return children, nil
}

// conversationRecords yields only the records whose type isConversation accepts.
func conversationRecords(records iter.Seq2[trajectories.Record, error]) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range records {
			if (err != nil || isConversation(r.Type)) && !yield(r, err) {
				return
			}
		}
	}
}

// dropResponses removes the provider responses, which are most of the data of an attempt,
// except those to summaries.
func dropResponses(t *trajectories.Transcript) {
	for _, e := range t.Entries {
		if e.Call != nil {
			e.Call.Raw = nil
		}
	}
	for i := range t.FailedCalls {
		t.FailedCalls[i].Raw = nil
	}
}

// isConversation reports whether training data needs records of a type: those of the
// conversation and its calls, the header, the import and the outcome.
func isConversation(t trajectories.Type) bool {
	switch t {
	case trajectories.TypeHeader, trajectories.TypeImport, trajectories.TypeResume, trajectories.TypeMessage,
		trajectories.TypeContext, trajectories.TypeCompaction, trajectories.TypeSummary, trajectories.TypeCall, trajectories.TypeOutcome:
		return true
	}
	return false
}

// Steps returns the number of replies in the conversation, including those with a format
// error. It does not count failed calls, abandoned calls and calls of subagents, which
// rows do not contain.
func (item *Item) Steps() int {
	n := 0
	for _, e := range item.Entries {
		if e.Cause == trajectories.CauseReply {
			n++
		}
	}
	return n
}

// autosubmitted returns Outcome.Autosubmitted, or false without an outcome.
func (item *Item) autosubmitted() bool { return item.Outcome != nil && item.Outcome.Autosubmitted }

// ProviderTokens returns the sum of the provider's token counts for the last prompt and
// reply; 0 if unknown.
func ProviderTokens(t *trajectories.Transcript) int64 {
	for i := len(t.Entries) - 1; i >= 0; i-- {
		if c := t.Entries[i].Call; c != nil {
			return c.Usage.Prompt + c.Usage.Completion
		}
	}
	return 0
}
