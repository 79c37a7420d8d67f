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
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
)

// fetchInterval is the minimum time between two lines about a download.
const fetchInterval = 2 * time.Second

// FetchProgress prints the progress of downloads: one changing line on a terminal, else a line
// every fetchInterval.
type FetchProgress struct {
	w        io.Writer
	terminal bool

	mu        sync.Mutex
	lastShown time.Time
	lineOpen  bool // the current line has no newline yet
}

// NewFetchProgress returns a FetchProgress that prints to s.Err.
func NewFetchProgress(s cmdutil.Streams) *FetchProgress {
	f := &FetchProgress{w: s.Err, terminal: s.Terminal}
	if !s.Terminal {
		f.lastShown = time.Now() // print nothing for short downloads
	}
	return f
}

// Show prints the progress of a download, at most once per interval.
func (f *FetchProgress) Show(p hub.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	interval := fetchInterval
	if f.terminal {
		interval /= 10
	}
	passing := p.Stage == hub.Downloading || p.Stage == hub.Resolving
	if !f.terminal && (p.Stage == hub.Resolving || p.Stage == hub.Retrying && p.Wait < fetchInterval) {
		return // too short for a permanent line
	}
	if passing && time.Since(f.lastShown) < interval {
		return
	}
	f.lastShown = time.Now()
	text := "mini: " + text.Printable(progressText(p))
	if f.terminal && passing {
		_, _ = fmt.Fprintf(f.w, "\r\x1b[K%s", text)
		f.lineOpen = true
		return
	}
	f.clearLine()
	_, _ = fmt.Fprintln(f.w, text)
}

func progressText(p hub.Progress) string {
	switch p.Stage {
	case hub.Waiting:
		return "another mini is fetching " + p.Repo + "; waiting for it"
	case hub.Retrying:
		return fmt.Sprintf("%s: %v; trying again in %s", p.Repo, p.Err, p.Wait.Round(100*time.Millisecond))
	case hub.Downloading:
		return fmt.Sprintf("fetching %s: %s of %s", p.Repo, table.SizeText(p.Bytes), table.SizeText(p.Total))
	}
	return "asking the hub for " + p.Repo
}

// Close ends the line that is open.
func (f *FetchProgress) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clearLine()
}

func (f *FetchProgress) clearLine() {
	if f.lineOpen {
		_, _ = fmt.Fprint(f.w, "\r\x1b[K")
		f.lineOpen = false
	}
}

// Open opens a dataset and prints the progress if it must be downloaded.
func Open(ctx context.Context, s cmdutil.Streams, name, split string) (datasets.Source, error) {
	lines := NewFetchProgress(s)
	defer lines.Close()
	return datasetopen.Open(ctx, name, split, lines.Show)
}
