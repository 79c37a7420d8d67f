package runner

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// book is what is known of every instance in a run's folder: which attempts
// there are, and how the selected ones ended. results.json and preds.json are
// its pages.
type book struct {
	folder    *Folder
	modelName string

	mu       sync.Mutex
	entries  map[string]*entry
	cost     model.Cost // of the attempts entered since opening
	unpriced int64      // calls among them whose cost nobody knows
	written  time.Time
	unread   []error // what of the folder is no attempt's
}

// entry is one instance.
type entry struct {
	last    int         // the highest attempt
	newest  map[int]int // for each sample, ended or not
	samples map[int]*sample
}

// sample is one of the attempts that were asked for at an instance, whatever
// tries it took. The first stands for the instance wherever there is room for
// one: it was drawn before anybody knew a verdict.
type sample struct {
	selected int // the attempt whose outcome counts
	model    string
	outcome  trajectories.Outcome
}

// flushInterval bounds how often the derived files are written while a run
// goes on: each time all of them, so not after every instance.
const flushInterval = time.Second

// openBook reads how the attempts in the folder ended. A journal without an
// outcome belongs to a mini that was killed; its attempt is kept and does not
// count.
func (f *Folder) openBook(modelName string) (*book, error) {
	b := &book{folder: f, modelName: modelName, entries: map[string]*entry{}}
	ids, err := f.ids()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		numbers, err := f.attempts(id)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			if err := b.recall(id, n); err != nil {
				return nil, err
			}
		}
	}
	b.renew()
	return b, b.flush()
}

// recall takes one attempt from its journal. One without a header is nobody's
// try: its mini was killed as it made it.
func (b *book) recall(id string, n int) error {
	out, ok, err := last(b.folder.Journal(id, n))
	if err != nil {
		return fmt.Errorf("read %s: %w", attemptName(id, n), err)
	}
	e := b.entry(id)
	e.last = max(e.last, n)
	h := headerOf(b.folder.Journal(id, n))
	if h.Format == "" {
		if ok {
			b.unread = append(b.unread, fmt.Errorf("%s counts for nothing: its journal has no header", attemptName(id, n)))
		}
		return nil
	}
	k := sampleOf(h)
	e.newest[k] = n
	if ok && e.take(k, n, out) {
		e.samples[k].model = h.ModelName
	}
	return nil
}

// renew derives the trajectories again that are missing, or older than what they
// are derived from: the mini was killed between the two files.
func (b *book) renew() {
	for id, e := range b.entries {
		s := e.samples[1]
		if s == nil {
			continue
		}
		journal, err := os.Lstat(b.folder.Journal(id, s.selected))
		if err != nil {
			continue
		}
		traj, err := os.Lstat(b.folder.traj(id))
		if err == nil && !traj.ModTime().Before(journal.ModTime()) {
			continue
		}
		if err := b.writeTraj(id, s.selected); err != nil {
			b.unread = append(b.unread, fmt.Errorf("%s: %w", attemptName(id, s.selected), err))
		}
	}
}

// headerOf is what a journal says of its attempt; empty where it cannot be read.
func headerOf(journal string) trajectories.Header {
	h, err := trajectories.ReadHeader(journal)
	if err != nil {
		return trajectories.Header{}
	}
	return h
}

// sampleOf is which sample a journal is a try of. Those from before there were
// samples are of the first.
func sampleOf(h trajectories.Header) int { return min(max(1, h.Sample), MaxSamples) }

func (b *book) entry(id string) *entry {
	e := b.entries[id]
	if e == nil {
		e = &entry{newest: map[int]int{}, samples: map[int]*sample{}}
		b.entries[id] = e
	}
	return e
}

// take selects an attempt for its sample: the newest that counts, and while none
// does the newest. It says whether this one is it now.
func (e *entry) take(k, n int, out trajectories.Outcome) bool {
	e.last = max(e.last, n)
	s := e.samples[k]
	if s != nil && !out.Class.Counts() && s.outcome.Class.Counts() {
		return false
	}
	e.samples[k] = &sample{selected: n, outcome: out}
	return true
}

// nextAttempt reserves the number of the next attempt, for a sample.
func (b *book) nextAttempt(t task) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(t.ID)
	e.last++
	e.newest[t.sample] = e.last
	return e.last
}

// nextSample reserves the number of an attempt that is a sample of its own, and
// is called after it as long as no other sample is.
func (b *book) nextSample(id string) (n, k int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(id)
	e.last++
	k = e.last
	for taken := range e.newest {
		k = max(k, taken+1)
	}
	return e.last, k
}

// counts says whether a sample of an instance has a result.
func (b *book) counts(id string, k int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	return e != nil && e.samples[k] != nil && e.samples[k].outcome.Class.Counts()
}

// enter takes in how an attempt ended and writes what is derived from it.
func (b *book) enter(id string, k, n int, out trajectories.Outcome) error {
	b.mu.Lock()
	e := b.entry(id)
	selected := e.take(k, n, out)
	if selected {
		e.samples[k].model = b.modelName
	}
	b.cost, b.unpriced = b.cost+out.Cost, b.unpriced+out.Usage.Unpriced
	due := time.Since(b.written) >= flushInterval
	b.mu.Unlock()

	if selected && k == 1 {
		if err := b.writeTraj(id, n); err != nil {
			return err
		}
	}
	if due {
		return b.flush()
	}
	return nil
}

func (b *book) writeTraj(id string, n int) error {
	err := b.folder.root.Replace(b.folder.traj(id), func(w io.Writer) error {
		return trajectories.DeriveTo(w, b.folder.Journal(id, n))
	})
	if err != nil {
		return fmt.Errorf("write trajectory: %w", err)
	}
	return nil
}

// summary counts what was asked for.
func (b *book) summary(instances []datasets.Instance, samples int) Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Summary{
		Instances: len(instances), Classes: map[trajectories.Class]int{},
		Cost: b.cost.Known(model.Usage{Unpriced: b.unpriced}), Unpriced: b.unpriced,
	}
	if samples > 1 {
		s.Samples = samples
	}
	for _, in := range instances {
		for k := 1; k <= samples; k++ {
			if e := b.entries[in.ID]; e != nil && e.samples[k] != nil {
				s.Classes[e.samples[k].outcome.Class]++
			} else {
				s.Unstarted++
			}
		}
	}
	return s
}
