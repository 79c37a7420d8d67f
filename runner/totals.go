package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Totals is the usage of an attempt. It comes from the outcome or, if there is none,
// from the records.
type Totals struct {
	Steps      int // model calls
	Inherited  int // those of Steps that were copied from the parent of a branch; not in Usage and Cost
	Usage      model.Usage
	Cost       model.Cost
	Start, End time.Time // times of the first and the last record
}

// Totals returns the usage of the attempt.
func (a Attempt) Totals() Totals {
	if r := a.Result; r != nil {
		return Totals{Steps: r.Steps, Usage: r.Usage, Cost: r.KnownCost(), Start: r.Start, End: r.End}
	}
	return a.Progress
}

// sumJournal adds up the usage in the records of a journal. It stops at the first
// unreadable record, because the attempt may still be writing.
func sumJournal(journal string) (t Totals) {
	if info, err := os.Lstat(journal); err != nil || !info.Mode().IsRegular() {
		return t
	}
	var header trajectories.Header
	isImported, replies := false, 0
	defer func() { t.Steps = max(t.Steps, replies) }() // an imported list of messages has replies without calls
	for rec, err := range trajectories.Read(journal) {
		if err != nil {
			return t
		}
		if rec.Type == trajectories.TypeHeader {
			header, _ = trajectories.DecodeHeader(rec) // already validated by Read
		}
		if t.Start.IsZero() {
			t.Start = rec.Time
		}
		t.End = rec.Time
		isImported = isImported || rec.Type == trajectories.TypeImport
		var m struct{ Cause trajectories.Cause }
		if isImported && rec.Type == trajectories.TypeMessage && json.Unmarshal(rec.Data, &m) == nil && m.Cause == trajectories.CauseReply {
			replies++
		}
		var call trajectories.Call
		step := trajectories.IsStep(rec)
		if (step || rec.Type == trajectories.TypeSummary || rec.Type == trajectories.TypeChildCall) && json.Unmarshal(rec.Data, &call) == nil {
			if step {
				t.Steps++
			}
			if header.IsInherited(rec.ID) { // paid for by the parent
				if step {
					t.Inherited++
				}
				continue
			}
			t.Usage = t.Usage.Add(call.Usage)
			t.Cost += call.Cost
		}
	}
	return t
}

// workerPID returns the PID in the lock file if that process is alive, otherwise 0.
// It does not acquire the lock, because a mini that starts meanwhile would find the
// folder locked.
func workerPID(dir string) int {
	pid, err := strconv.Atoi(lockHolder(dir))
	if err != nil || pid <= 0 {
		return 0
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return 0
	}
	defer p.Release() //nolint:errcheck // nothing to release
	if err := p.Signal(syscall.Signal(0)); err != nil && !os.IsPermission(err) {
		return 0
	}
	return pid
}

// maxLock is the maximum size of a lock file, in bytes.
const maxLock = 32

// lockHolder returns the PID in the lock file as text; "" if the file is missing or
// larger than maxLock.
func lockHolder(dir string) string {
	data, err := readRegularFile(filepath.Join(dir, lockFile), maxLock)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// WallTime returns the total duration of all sessions. It counts a killed session up
// to its last record, and a running one up to now.
func (r *Run) WallTime(now time.Time) time.Duration {
	var sum time.Duration
	sessions := r.Manifest.Sessions
	for i, s := range sessions {
		var end time.Time
		switch {
		case s.Ended != nil:
			end = *s.Ended
		case i == len(sessions)-1 && r.WorkerPID > 0:
			end = now
		case i == len(sessions)-1:
			end = r.lastActivity(now)
		default:
			end = r.lastActivity(sessions[i+1].Started)
		}
		sum += max(0, end.Sub(s.Started))
	}
	return sum
}

// lastActivity returns the latest end of an attempt before the given time. An
// attempt without an outcome ends at its last record.
func (r *Run) lastActivity(before time.Time) time.Time {
	var newest time.Time
	for _, in := range r.Instances {
		for _, a := range in.Attempts {
			t := a.Totals().End
			if t.After(newest) && t.Before(before) {
				newest = t
			}
		}
	}
	return newest
}
