package hub

import (
	"time"
)

// Stage is a stage of a fetch.
type Stage string

// The stages of a fetch, in order; Retrying can follow any failed request.
const (
	Resolving   Stage = "asking"      // for the commit and its files
	Waiting     Stage = "waiting"     // for another process that downloads the same file
	Downloading Stage = "downloading" // Bytes and Total are set
	Retrying    Stage = "retrying"    // Err and Wait are set
)

// Progress is the progress of a fetch. Its texts are safe for a terminal.
type Progress struct {
	Stage Stage
	Repo  string
	// Total is the size of the snapshot's files; Bytes is how many of these bytes are in
	// the cache, those downloaded earlier included.
	Bytes, Total int64
	// Err is the error after which a request is retried after Wait.
	Err  error
	Wait time.Duration
}

// progressInterval is the shortest time between a report and one that is not forced.
const progressInterval = 100 * time.Millisecond

// progressMeter counts the bytes of one fetch.
type progressMeter struct {
	notify      func(Progress)
	repo        string
	done, total int64 // done: bytes of the files before the current one
	current     int64 // bytes of the current file
	last        time.Time
}

// Write counts bytes of the current file.
func (m *progressMeter) Write(p []byte) (int, error) {
	m.current += int64(len(p))
	m.report(m.current, false)
	return len(p), nil
}

// report reports that n bytes of the current file are in the cache. Without force, it skips a
// report that follows another within progressInterval.
func (m *progressMeter) report(n int64, force bool) {
	now := time.Now()
	if m.total == 0 || !force && now.Sub(m.last) < progressInterval {
		return // also for the card, before the total is known
	}
	m.last = now
	m.notify(Progress{Stage: Downloading, Repo: m.repo, Bytes: m.done + n, Total: m.total})
}
