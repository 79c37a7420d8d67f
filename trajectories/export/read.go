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

// maxJournal bounds what is held in memory of one attempt, in bytes.
const maxJournal = 1 << 30

// ReadJournal is what a journal says of its attempt, and the sha256 of its
// bytes in hex. Unless all is asked for, what no conversation needs is left out:
// executions, the diff.
func ReadJournal(path string, all bool) (*trajectories.Transcript, string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, "", err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, "", fmt.Errorf("%s is not a plain file", path)
	case info.Size() > maxJournal:
		return nil, "", fmt.Errorf("%s has more than %d MB", path, maxJournal>>20)
	}
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // read only
	hash := sha256.New()
	from := io.TeeReader(io.LimitReader(f, maxJournal), hash)
	records := trajectories.Ordered(trajectories.Scan(path, from))
	if !all {
		records = spokenOnly(records)
	}
	t, err := trajectories.Gather(records)
	if !all {
		forgetResponses(t)
	}
	if err == nil && t.Header.Format == "" {
		err = errors.New("there is nothing in it")
	}
	if err != nil && strings.HasPrefix(err.Error(), path) { // with the line
		return nil, "", err
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	if _, err := io.Copy(io.Discard, from); err != nil { // what stands after a torn line
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	if all {
		if t.Children, err = readChildren(path); err != nil {
			return nil, "", err
		}
	}
	return t, hex.EncodeToString(hash.Sum(nil)), nil
}

// readChildren reads what the children of an attempt did.
func readChildren(journal string) ([]*trajectories.Transcript, error) {
	paths := trajectories.ChildJournals(journal)
	var list []*trajectories.Transcript
	for _, n := range slices.Sorted(maps.Keys(paths)) {
		t, _, err := ReadJournal(paths[n], true)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// spokenOnly leaves out the records that no conversation needs.
func spokenOnly(records iter.Seq2[trajectories.Record, error]) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range records {
			if (err != nil || spoken(r.Type)) && !yield(r, err) {
				return
			}
		}
	}
}

// forgetResponses drops what providers said word by word, which is the bulk of an
// attempt.
func forgetResponses(t *trajectories.Transcript) {
	for _, e := range t.Entries {
		if e.Call != nil {
			e.Call.Raw = nil
		}
	}
	for i := range t.Failed {
		t.Failed[i].Raw = nil
	}
}

// spoken are the types of records that a conversation is made of.
func spoken(t trajectories.Type) bool {
	switch t {
	case trajectories.TypeHeader, trajectories.TypeImport, trajectories.TypeResume, trajectories.TypeMessage,
		trajectories.TypeContext, trajectories.TypeCompaction, trajectories.TypeSummary, trajectories.TypeCall, trajectories.TypeOutcome:
		return true
	}
	return false
}

// Steps are the replies of the model in the conversation of an attempt, those
// with a format error too. Calls without a reply, calls that were left behind when
// the attempt was resumed, and those of children are in no row.
func (it *Item) Steps() int {
	n := 0
	for _, e := range it.Entries {
		if e.Cause == trajectories.CauseReply {
			n++
		}
	}
	return n
}

// autosubmitted says whether the submission is the working diff, as mini took it
// at a limit.
func (it *Item) autosubmitted() bool { return it.Outcome != nil && it.Outcome.Autosubmitted }

// Counted is how long the conversation of an attempt is, as the provider counted
// its last prompt and reply; 0 where none did.
func Counted(t *trajectories.Transcript) int64 {
	for i := len(t.Entries) - 1; i >= 0; i-- {
		if c := t.Entries[i].Call; c != nil {
			return c.Usage.Prompt + c.Usage.Completion
		}
	}
	return 0
}
