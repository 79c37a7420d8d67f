package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/report"
)

// subsetFlags name the rows that a command reads.
type subsetFlags struct {
	subsets []string
	split   string
}

func (o *subsetFlags) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.subsets, "subset", nil, "dataset: an alias, org/name of the hub, a path, or - for stdin; repeatable")
	f.StringVar(&o.split, "split", "", "split of the dataset, as test or dev (default: its usual one)")
}

// open finds every set that was named, fetching what is not in the cache.
func (o *subsetFlags) open(ctx context.Context, s Streams) ([]datasets.Source, error) {
	var sources []datasets.Source
	stdin := false
	for _, name := range o.subsets {
		if datasets.IsStdin(name) {
			if stdin {
				return nil, usagef("--subset %s: stdin can be read only once; name it once, and the other rows by their file", name)
			}
			stdin = true
		}
		source, err := openSubset(ctx, s, name, o.split)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// demoSubset is the name of the embedded dataset.
const demoSubset = "demo"

// openSubset turns what --subset was given into rows: the demo, a file or
// folder that is there, or a set on the hub.
func openSubset(ctx context.Context, s Streams, name, split string) (datasets.Source, error) {
	if name == demoSubset {
		return openDemo(split)
	}
	if _, err := os.Stat(name); err == nil || !errors.Is(err, os.ErrNotExist) || looksLikeFile(name) {
		return datasets.Local(name, split)
	}
	if meansFile(name) {
		if source, ok := sourceHere(ctx, name, split); ok {
			return source, nil // of the hub's, from the cache
		}
		_, err := datasets.Local(name, split)
		return datasets.Source{}, usagef("%w (a dataset on the hub is %.80s@main)", err, name)
	}
	ref, err := parseRef(name, split)
	if err != nil {
		if datasets.NearFile(name) != "" {
			return datasets.Local(name, split)
		}
		return datasets.Source{}, err
	}
	progress := newFetchLines(s)
	defer progress.end()
	h, err := openHub(hub.Config{Progress: progress.show})
	if err != nil {
		return datasets.Source{}, err
	}
	edition, err := h.Open(ctx, ref)
	if err != nil {
		return datasets.Source{}, err
	}
	return edition.Source(name), nil
}

func openDemo(split string) (datasets.Source, error) {
	if split != "" {
		return datasets.Source{}, usagef("%s has no split %.40q, and no others; leave --split away", demoSubset, split)
	}
	return datasets.Embedded(demoSubset, demo.Rows()), nil
}

// parseRef is hub.ParseRef for who may have meant any dataset that has a name.
func parseRef(name, split string) (hub.Ref, error) {
	ref, err := hub.ParseRef(name, split)
	e, ok := errors.AsType[*hub.Error](err)
	if !ok {
		return ref, err
	}
	if near := configs.Nearest(name, subsetNames()); near != "" {
		return ref, usagef("there is no dataset %.60q; did you mean %s?", name, near)
	}
	helpful := *e
	helpful.Hint = "a dataset is " + demoSubset + ", an alias (" + strings.Join(aliasNames(), ", ") + "), org/name on the hub, either of these with @revision, or a file"
	return ref, &helpful
}

// fileName matches what can only be meant as a file or folder.
var fileName = lazyregexp.New(`^-$|^[./~\\]|^[A-Za-z]:|\.(jsonl?|parquet)(\.gz)?$|\.gz$|[/\\]$`)

func looksLikeFile(name string) bool { return fileName.MatchString(name) }

// ending matches what ends like a file. The versions that names on the hub end
// with have a digit after the dot.
var ending = lazyregexp.New(`\.[A-Za-z]\w{1,9}$`)

// meansFile says that a name in a folder that is here is rather that of a
// mistyped file than of a dataset on the hub, whose organization the folder
// could be called after.
func meansFile(name string) bool {
	folder := filepath.Dir(name)
	if folder == "." || strings.Contains(name, "@") {
		return false
	}
	info, err := os.Stat(folder)
	return err == nil && info.IsDir() && (ending.MatchString(name) || datasets.NearFile(name) != "")
}

// openHub is the hub as the environment says: HF_ENDPOINT, HF_TOKEN and
// HF_HUB_OFFLINE mean what they mean to the hub's own tools.
func openHub(c hub.Config) (*hub.Hub, error) {
	dir, err := cacheDir()
	if err != nil {
		return nil, err
	}
	c.Endpoint, c.Token = os.Getenv("HF_ENDPOINT"), os.Getenv("HF_TOKEN")
	c.Offline = c.Offline || isOn(os.Getenv("HF_HUB_OFFLINE"))
	c.Dir = filepath.Join(dir, "datasets")
	return hub.New(c)
}

func isOn(value string) bool {
	on, err := strconv.ParseBool(value)
	return err == nil && on || strings.EqualFold(value, "yes") || strings.EqualFold(value, "on")
}

// cacheDir is where mini keeps what it can fetch again.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", usagef("no folder for the cache: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "mini"), nil
}

// fetchInterval bounds how often a download that goes on is told of.
const fetchInterval = 2 * time.Second

// fetchLines tells of downloads: on a terminal in one line that changes,
// elsewhere in a line now and then.
type fetchLines struct {
	w        io.Writer
	terminal bool

	mu   sync.Mutex
	last time.Time
	open bool // a line stands without its end
}

func newFetchLines(s Streams) *fetchLines {
	f := &fetchLines{w: s.Err, terminal: s.Terminal}
	if !s.Terminal {
		f.last = time.Now() // what is soon over needs no line that stays
	}
	return f
}

func (f *fetchLines) show(p hub.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	interval := fetchInterval
	if f.terminal {
		interval /= 10
	}
	passing := p.Stage == hub.Downloading || p.Stage == hub.Asking
	if !f.terminal && (p.Stage == hub.Asking || p.Stage == hub.Retrying && p.Wait < fetchInterval) {
		return // too short to be worth a line that stays
	}
	if passing && time.Since(f.last) < interval {
		return
	}
	f.last = time.Now()
	text := "mini: " + report.Printable(progressText(p))
	if f.terminal && passing {
		_, _ = fmt.Fprintf(f.w, "\r\x1b[K%s", text) // only for people
		f.open = true
		return
	}
	f.finish()
	_, _ = fmt.Fprintln(f.w, text) // only for people
}

func progressText(p hub.Progress) string {
	switch p.Stage {
	case hub.Waiting:
		return "another mini is fetching " + p.Repo + "; waiting for it"
	case hub.Retrying:
		return fmt.Sprintf("%s: %v; trying again in %s", p.Repo, p.Err, p.Wait.Round(100*time.Millisecond))
	case hub.Downloading:
		return fmt.Sprintf("fetching %s: %s of %s", p.Repo, report.Size(p.Bytes), report.Size(p.Total))
	}
	return "asking the hub for " + p.Repo
}

func (f *fetchLines) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finish()
}

func (f *fetchLines) finish() {
	if f.open {
		_, _ = fmt.Fprint(f.w, "\r\x1b[K") // only for people
		f.open = false
	}
}

// sourceHere is openSubset without a network: false where a dataset would have
// to be fetched. A key press waits for neither a hub nor a pipe.
func sourceHere(ctx context.Context, name, split string) (datasets.Source, bool) {
	if name == demoSubset {
		source, err := openDemo(split)
		return source, err == nil
	}
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() && !info.IsDir() {
			return datasets.Source{}, false
		}
		source, err := datasets.Local(name, split)
		return source, err == nil
	}
	ref, err := hub.ParseRef(name, split)
	if err != nil {
		return datasets.Source{}, false
	}
	h, err := openHub(hub.Config{Offline: true})
	if err != nil {
		return datasets.Source{}, false
	}
	edition, err := h.Open(ctx, ref)
	return edition.Source(name), err == nil
}

// editionText says in a line what was read.
func editionText(e datasets.Edition) string {
	text := e.Name
	if e.Revision != "" {
		text += " at " + short(e.Revision)
	}
	if e.Split != "" {
		text += ", split " + e.Split
	}
	return fmt.Sprintf("%s: %s, sha256 %s", text, report.Count(e.Rows, "row"), short(e.SHA256))
}

// short is the beginning of a hash, enough to tell it from others.
func short(hash string) string { return hash[:min(len(hash), 12)] }
