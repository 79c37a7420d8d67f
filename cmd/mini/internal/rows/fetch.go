package rows

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/hub"
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// fetchInterval is the minimum time between a permanent line and the next one that reports how far
// a download is.
const fetchInterval = 2 * time.Second

// FetchProgress prints the progress of downloads. On a terminal it updates one line; elsewhere it
// prints a line at most every fetchInterval. Waiting and retries have lines of their own.
type FetchProgress struct {
	w        io.Writer
	terminal bool

	mu        sync.Mutex
	lastShown time.Time
	lineOpen  bool // the terminal shows a line that will be updated or erased
}

// NewFetchProgress returns a FetchProgress that prints to s.Err.
func NewFetchProgress(s cmdutil.Streams) *FetchProgress {
	f := &FetchProgress{w: s.Err, terminal: s.Interactive}
	if !s.Interactive {
		f.lastShown = time.Now() // print nothing for short downloads
	}
	return f
}

// Show prints the progress of a download. It limits the rate for the stages Downloading and
// Resolving, and prints every other stage. Without a terminal, it omits Resolving and short retries.
func (f *FetchProgress) Show(p hub.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	interval := fetchInterval
	if f.terminal {
		interval /= 10
	}
	frequent := p.Stage == hub.Downloading || p.Stage == hub.Resolving
	if !f.terminal && (p.Stage == hub.Resolving || p.Stage == hub.Retrying && p.Wait < fetchInterval) {
		return // not worth a permanent line
	}
	if frequent && time.Since(f.lastShown) < interval {
		return
	}
	f.lastShown = time.Now()
	text := "mini: " + text.Printable(progressText(p))
	if f.terminal && frequent {
		_, _ = fmt.Fprintf(f.w, "\r\x1b[K%s", text)
		f.lineOpen = true
		return
	}
	f.clearLine()
	_, _ = fmt.Fprintln(f.w, text)
}

// progressText describes the stage of a download.
func progressText(p hub.Progress) string {
	switch p.Stage {
	case hub.Waiting:
		return "another mini is fetching " + p.Repo + "; waiting for it"
	case hub.Retrying:
		return fmt.Sprintf("%s: %v; trying again in %s", p.Repo, p.Err, p.Wait.Round(100*time.Millisecond))
	case hub.Downloading:
		return fmt.Sprintf("fetching %s: %s of %s", p.Repo, unit.Size(p.Bytes), unit.Size(p.Total))
	}
	return "asking the hub for " + p.Repo
}

// Close erases the line that is being updated.
func (f *FetchProgress) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clearLine()
}

// clearLine erases the line that is being updated. The caller must hold f.mu.
func (f *FetchProgress) clearLine() {
	if f.lineOpen {
		_, _ = fmt.Fprint(f.w, "\r\x1b[K")
		f.lineOpen = false
	}
}

// Open opens a dataset and prints the progress if it must be downloaded.
func Open(ctx context.Context, s cmdutil.Streams, name, split string) (datasets.Source, error) {
	progress := NewFetchProgress(s)
	defer progress.Close()
	return datasetopen.Open(ctx, name, split, progress.Show)
}
