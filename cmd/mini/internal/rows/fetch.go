package rows

import (
	"context"
	"fmt"
	"io"
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
// prints a line at most every fetchInterval. Waiting and long retries have lines of their own.
type FetchProgress struct {
	w         io.Writer
	terminal  bool
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

// Show prints the progress of a download.
func (f *FetchProgress) Show(p hub.Progress) {
	line := "mini: " + text.Printable(progressText(p))
	sinceShown := time.Since(f.lastShown)
	switch {
	case p.Stage == hub.Waiting, p.Stage == hub.Retrying && p.Wait >= fetchInterval,
		p.Stage == hub.Downloading && !f.terminal && sinceShown >= fetchInterval:
		f.Close()
		_, _ = fmt.Fprintln(f.w, line)
	case f.terminal && sinceShown >= fetchInterval/10:
		_, _ = fmt.Fprintf(f.w, "\r\x1b[K%s", line)
		f.lineOpen = true
	default:
		return
	}
	f.lastShown = time.Now()
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
