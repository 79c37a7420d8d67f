package runner

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Tally is what an attempt has come to: how it ended, or by the records that are
// there.
type Tally struct {
	Steps      int // model calls
	Inherited  int // of them, those that another attempt made, which this one branches off from
	Usage      model.Usage
	Cost       model.Cost
	Start, End time.Time // of the first and the newest record
}

// Tally returns what the attempt has come to.
func (a Attempt) Tally() Tally {
	if r := a.Result; r != nil {
		return Tally{Steps: r.Steps, Usage: r.Usage, Cost: r.Spent(), Start: r.Start, End: r.End}
	}
	return a.SoFar
}

// tally adds up a journal without an outcome. What cannot be read ends it: the
// attempt may be writing right now.
func tally(journal string) Tally {
	var t Tally
	if info, err := os.Lstat(journal); err != nil || !info.Mode().IsRegular() {
		return t
	}
	var header trajectories.Header
	for rec, err := range trajectories.Read(journal) {
		if err != nil {
			return t
		}
		if rec.Type == trajectories.TypeHeader {
			header, _ = trajectories.HeaderOf(rec) // Read has looked at it
		}
		if t.Start.IsZero() {
			t.Start = rec.Time
		}
		t.End = rec.Time
		var call trajectories.Call
		step := trajectories.IsStep(rec)
		if (step || rec.Type == trajectories.TypeSummary || rec.Type == trajectories.TypeSpent) && json.Unmarshal(rec.Data, &call) == nil {
			if step {
				t.Steps++
			}
			if header.Inherited(rec.ID) { // and paid for there
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

// worker is the living process that the lock file names. The lock itself is
// not tried: for that moment a mini that starts would find the folder taken.
func worker(dir string) int {
	pid, err := strconv.Atoi(lockedBy(dir))
	if err != nil || pid <= 0 {
		return 0
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return 0
	}
	defer p.Release() //nolint:errcheck // nothing was taken
	if err := p.Signal(syscall.Signal(0)); err != nil && !os.IsPermission(err) {
		return 0
	}
	return pid
}

// maxLock bounds the lock file, which holds the number of a process, in bytes.
const maxLock = 32

// lockedBy is what the lock file says, "" where it is anything but a small
// file: the folder may come from a stranger, and a pipe would be waited for.
func lockedBy(dir string) string {
	path := filepath.Join(dir, lockFile)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxLock {
		return ""
	}
	f, err := os.Open(path) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxLock))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// Wall is how long minis have worked in the folder, all sessions added up. A
// session whose mini was killed lasted until the last sign of it.
func (r *Run) Wall(now time.Time) time.Duration {
	var sum time.Duration
	sessions := r.Manifest.Sessions
	for i, s := range sessions {
		var end time.Time
		switch {
		case s.Ended != nil:
			end = *s.Ended
		case i == len(sessions)-1 && r.Worker > 0:
			end = now
		case i == len(sessions)-1:
			end = r.lastSign(now)
		default:
			end = r.lastSign(sessions[i+1].Started)
		}
		sum += max(0, end.Sub(s.Started))
	}
	return sum
}

// lastSign is the newest time before another that an attempt tells of.
func (r *Run) lastSign(before time.Time) time.Time {
	var newest time.Time
	for _, in := range r.Instances {
		for _, a := range in.Attempts {
			t := a.Tally().End
			if t.After(newest) && t.Before(before) {
				newest = t
			}
		}
	}
	return newest
}
