package web

import (
	"bytes"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// attemptCache keeps the attempts that were opened last, because a page of an attempt is followed
// by requests for its other steps.
type attemptCache struct {
	mu   sync.Mutex
	open []*attempt // most recently used first
	// redact removes secrets from texts; nil leaves them.
	redact func([]byte) []byte
}

// attempt is the content of a journal.
type attempt struct {
	*timeline.Timeline
	path    string
	size    int64
	modTime time.Time
	repeats map[*timeline.Item]string // see findRepeats
	// Tokens says how prompts continue the tokens before; nil if no reply has token ids.
	Tokens *report.TokenAttempt
	// Damage is why the rest of the journal could not be read; nil if all was read.
	Damage error
}

// Limits of the cache: the number of attempts, and the size of their journals together. An attempt
// that is larger alone is kept until the next one is opened.
const (
	maxOpen      = 8
	maxOpenBytes = 128 << 20
)

// get returns an attempt of a run folder. It reads the journal again if that has grown.
func (c *attemptCache) get(dir, journal string) (*attempt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	f, err := root.Open(journal)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if a := c.take(journal, info); a != nil {
		c.keep(a)
		return a, nil
	}
	a := &attempt{path: journal, size: info.Size(), modTime: info.ModTime()}
	tokens := trajectories.Attempt{Omit: trajectories.ForTotals &^ trajectories.OmitTokens &^ trajectories.OmitMessages}
	a.Timeline, a.Damage = timeline.Build(addTokens(&tokens, ahead(trajectories.Scan(journal, f))))
	a.Tokens = tokensOf(&tokens)
	if a.Damage != nil && a.IsEmpty() {
		return nil, a.Damage
	}
	if c.redact != nil {
		a.redact(c.redact)
	}
	a.repeats = findRepeats(a.Timeline)
	c.keep(a)
	return a, nil
}

// ahead yields the records of a journal while the next ones are parsed on another processor.
func ahead(records iter.Seq2[trajectories.Record, error]) iter.Seq2[trajectories.Record, error] {
	type parsed struct {
		record trajectories.Record
		err    error
	}
	return func(yield func(trajectories.Record, error) bool) {
		buffer, stop := make(chan parsed, 256), make(chan struct{})
		defer close(stop)
		go func() {
			defer close(buffer)
			for r, err := range records {
				select {
				case buffer <- parsed{r, err}:
				case <-stop:
					return
				}
			}
		}()
		for p := range buffer {
			if !yield(p.record, p.err) {
				return
			}
		}
	}
}

// addTokens yields records, and adds them to a if the configuration asks for token ids.
func addTokens(a *trajectories.Attempt, records iter.Seq2[trajectories.Record, error]) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		isAsked := false
		for r, err := range records {
			isAsked = isAsked || r.Type == trajectories.TypeHeader && bytes.Contains(r.Data, []byte(`"tokens":true`))
			if err == nil && isAsked {
				_ = a.Add(r) // the timeline reports the error
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// tokensOf describes the tokens of an attempt; nil if it has none.
func tokensOf(a *trajectories.Attempt) *report.TokenAttempt {
	var t report.TokenAttempt
	if t.Add(a); t.Replies == 0 {
		return nil
	}
	return &t
}

// redact removes secrets before a page shortens a text, because a part of a secret is not
// recognized.
func (a *attempt) redact(redact func([]byte) []byte) {
	for _, step := range a.AllSteps() {
		for item := range step.AllItems() {
			item.Text, item.Label = string(redact([]byte(item.Text))), string(redact([]byte(item.Label)))
		}
	}
}

// take removes an attempt from the cache and returns it, or nil if the file has changed.
func (c *attemptCache) take(journal string, info os.FileInfo) *attempt {
	for i, a := range c.open {
		if a.path == journal {
			c.open = append(c.open[:i:i], c.open[i+1:]...)
			if a.size == info.Size() && a.modTime.Equal(info.ModTime()) {
				return a
			}
			return nil
		}
	}
	return nil
}

// keep adds an attempt and removes those that were used longest ago.
func (c *attemptCache) keep(a *attempt) {
	c.open = append([]*attempt{a}, c.open...)
	total := int64(0)
	for i, o := range c.open {
		total += o.size
		if i > 0 && (i >= maxOpen || total > maxOpenBytes) {
			c.open = c.open[:i:i]
			return
		}
	}
}
