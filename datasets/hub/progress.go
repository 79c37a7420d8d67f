package hub

import (
	"time"
)

// Stage is what a Hub is doing.
type Stage string

// The stages, in the order of a fetch.
const (
	Waiting     Stage = "waiting"     // another process fetches the same repository
	Asking      Stage = "asking"      // for the commit and the files of a revision
	Downloading Stage = "downloading" // File, Bytes and Total are set
	Retrying    Stage = "retrying"    // Err and Wait are set
)

// Progress is a moment of a fetch. Its text is fit for a terminal.
type Progress struct {
	Stage Stage
	Repo  string
	// File is the name in the repository of what is downloaded.
	File string
	// Bytes of Total are there, over all files of the edition.
	Bytes, Total int64
	// Err is why a request is made again after Wait.
	Err  error
	Wait time.Duration
}

// every is how often bytes are reported, at most.
const every = 100 * time.Millisecond

// meter counts the bytes of one fetch.
type meter struct {
	report      func(Progress)
	repo, file  string
	done, total int64 // done: of files before this one
	last        time.Time
}

// at tells that this many bytes of the current file are there.
func (m *meter) at(n int64, force bool) {
	now := time.Now()
	if !force && now.Sub(m.last) < every {
		return
	}
	m.last = now
	m.report(Progress{Stage: Downloading, Repo: m.repo, File: m.file, Bytes: m.done + n, Total: m.total})
}

// begin starts a file.
func (m *meter) begin(name string) { m.file = shown(name) }

// end finishes a file of this size.
func (m *meter) end(size int64) {
	m.at(size, true)
	m.done += size
}
