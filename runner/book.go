package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// book is what is known of every instance in a run's folder: which attempts
// there are, and how the selected one ended. results.json and preds.json are
// its pages.
type book struct {
	folder    *Folder
	modelName string

	mu      sync.Mutex
	entries map[string]*entry
	cost    model.Cost // of the attempts entered since opening
	usage   model.Usage
	written time.Time
}

// entry is one instance.
type entry struct {
	last     int // the highest attempt
	selected int // the attempt whose outcome counts; 0 before there is one
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
	return b, b.flush()
}

// recall takes one attempt from its journal.
func (b *book) recall(id string, n int) error {
	out, ok, err := trajectories.Last(b.folder.journal(id, n))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read attempt %d of %s: %w", n, id, err)
	}
	e := b.entry(id)
	e.last = max(e.last, n)
	if !ok {
		return nil
	}
	selected := e.selected
	e.take(n, out)
	if e.selected == selected {
		return nil
	}
	e.model = modelOf(b.folder.journal(id, n))
	if _, err := os.Stat(b.folder.traj(id)); errors.Is(err, os.ErrNotExist) {
		return b.writeTraj(id, n) // killed between the two files
	}
	return nil
}

// modelOf is the model that an attempt was made with, by its journal's header.
func modelOf(journal string) string {
	for rec, err := range trajectories.Read(journal) {
		var h trajectories.Header
		if err != nil || rec.Type != trajectories.TypeHeader || json.Unmarshal(rec.Data, &h) != nil {
			return ""
		}
		return h.ModelName
	}
	return ""
}

func (b *book) entry(id string) *entry {
	e := b.entries[id]
	if e == nil {
		e = &entry{}
		b.entries[id] = e
	}
	return e
}

// take selects an attempt: the newest that counts, and while none does the
// newest.
func (e *entry) take(n int, out trajectories.Outcome) {
	if e.selected == 0 || out.Class.Counts() || !e.outcome.Class.Counts() {
		e.selected, e.outcome = n, out
	}
	e.last = max(e.last, n)
}

// nextAttempt reserves the number of an instance's next attempt.
func (b *book) nextAttempt(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(id)
	e.last++
	return e.last
}

// counts says whether an instance has a result.
func (b *book) counts(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	return e != nil && e.selected > 0 && e.outcome.Class.Counts()
}

// enter takes in how an attempt ended and writes what is derived from it.
func (b *book) enter(id string, n int, out trajectories.Outcome) error {
	b.mu.Lock()
	e := b.entry(id)
	e.take(n, out)
	selected := e.selected == n
	if selected {
		e.model = b.modelName
	}
	b.cost, b.usage = b.cost+out.Cost, b.usage.Add(out.Usage)
	due := time.Since(b.written) >= flushInterval
	b.mu.Unlock()

	if selected {
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
	if err := trajectories.Derive(b.folder.journal(id, n), b.folder.traj(id)); err != nil {
		return fmt.Errorf("write trajectory: %w", err)
	}
	return nil
}

// summary counts the instances that were asked for.
func (b *book) summary(instances []datasets.Instance) Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Summary{Instances: len(instances), Classes: map[trajectories.Class]int{}, Cost: b.cost.Known(b.usage), Unpriced: b.usage.Unpriced}
	for _, in := range instances {
		if e := b.entries[in.ID]; e != nil && e.selected > 0 {
			s.Classes[e.outcome.Class]++
		} else {
			s.Unstarted++
		}
	}
	return s
}

func sortInts(n []int) { slices.Sort(n) }
