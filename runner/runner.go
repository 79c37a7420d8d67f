// Package runner works a batch: it takes instances from a queue, gives each a
// sandbox and a model, lets the agent work, and keeps what comes of it in the
// folder of the run. It knows sandboxes and models by interfaces only.
//
// The journals of the attempts are the truth; every other file is derived from
// them and can be made again. Starting again on the same folder goes on where
// the last run stopped, by the class of each outcome.
//
//	folder, err := runner.Open(dir)
//	defer folder.Close()
//	b := runner.Batch{Folder: folder, Agent: a, Sandboxes: s, Models: m, Workers: 8, MaxTries: 3, Log: runner.NewLog(folder, nil)}
//	summary, err := b.Run(ctx, instances)
package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/trajectories"
)

// Sandboxes makes a fresh sandbox for an instance.
type Sandboxes interface {
	Start(ctx context.Context, in datasets.Instance) (env.Environment, error)
}

// Expecting is implemented by Sandboxes that can make ready what will be asked
// for. Expect is told of it in order, and what it starts ends with ctx, or at
// the latest when stop returns.
type Expecting interface {
	Expect(ctx context.Context, todo []datasets.Instance) (stop func())
}

// Models gives the model that works on an instance; each call begins anew.
type Models interface {
	For(in datasets.Instance) (model.Model, error)
}

// Summaries are Models that have another one to make summaries of what became too
// long; nil leaves it to the attempt's own.
type Summaries interface {
	Summary(in datasets.Instance) (model.Model, error)
}

// Batch is what a run needs. All fields are required but Samples, Budget, Redo,
// ResumeAttempts, Force, Ignore, Sync, Keep, Submitted, Control and MaxProviderFailures.
type Batch struct {
	Folder    *Folder
	Agent     *agent.Agent
	Sandboxes Sandboxes
	Models    Models
	// Header is the part of the journals' first record that does not depend
	// on the attempt.
	Header trajectories.Header
	// ModelName stands in preds.json.
	ModelName string
	Workers   int
	// Samples is how many results each instance is to have, 0 for one. They are
	// made alike and stand side by side; the first stands for the instance.
	Samples int
	// MaxTries bounds how often this run tries a sample of an instance whose
	// sandbox or provider fails; at least 1.
	MaxTries int
	// Budget bounds what the run may spend. When it is spent, attempts end before
	// their next call, as interrupted: with a larger one they are made again.
	Budget Budget
	// MaxProviderFailures stops the run when so many instances in a row fail at
	// the model's provider, without an answer to anybody in between. What is
	// left stays pending. 0 never stops it.
	MaxProviderFailures int
	// Branch has attempts begin with the history of others; nil has none do so.
	Branch *Branch
	// Redo runs instances again that have a result. What they had is kept.
	Redo bool
	// ResumeAttempts goes on inside the newest attempt of an instance, where that
	// was stopped in the middle, rather than make another one.
	ResumeAttempts bool
	// Force goes on, with ResumeAttempts, also where a command that is run again
	// ends otherwise than recorded, or leaves other files.
	Force bool
	// Ignore is what may differ in the outputs of commands that are run again.
	Ignore replay.Ignore
	// Sync says when journals are brought to the disk.
	Sync trajectories.Sync
	// Keep picks the attempts whose sandboxes stay when they are done (see
	// Keeper); nil keeps none.
	Keep func(trajectories.Outcome) bool
	// Submitted is told of each sample that has a result, those from before first:
	// what it submitted, as preds.json has it. It is called by the workers, several
	// at once, and must be quick. nil tells nobody.
	Submitted func(in datasets.Instance, sample int, p trajectories.Prediction)
	// Tools makes what the commands of an attempt can ask for by mini-tool; dir is
	// the folder of its journal. nil, and a nil Toolbox, give them nothing.
	Tools func(in datasets.Instance, dir string) (agent.Toolbox, error)
	// Supervise makes what decides on each command of an attempt at an instance;
	// nil lets all of them run.
	Supervise func(in datasets.Instance) agent.Supervisor
	// Events is asked for the bus on which an attempt publishes what it does;
	// done is called when that is over. nil has nobody listen.
	Events func(in datasets.Instance, attempt int) (bus *events.Bus, done func())
	// Control takes orders while the run goes on; nil takes none.
	Control *Control
	// Log is told what happens.
	Log *Log

	kept    atomic.Int32
	queue   *queue
	purse   *purse
	strikes strikes
}

// Summary is how a run ended.
type Summary struct {
	Instances int                        `json:"instances"`                // that were asked for
	Samples   int                        `json:"samples,omitempty"`        // of each, where more than one; what follows counts these
	Skipped   int                        `json:"skipped"`                  // had a result before
	Classes   map[trajectories.Class]int `json:"classes"`                  // of all that were asked for
	Unstarted int                        `json:"unstarted"`                // never came to an attempt
	Kept      int                        `json:"kept,omitempty"`           // sandboxes that stay
	Cost      *model.Cost                `json:"cost"`                     // of this run's attempts; null where nobody knows any of it
	Unpriced  int64                      `json:"unpriced_calls,omitempty"` // whose cost is not known
	Exhausted bool                       `json:"budget_exhausted,omitempty"`
	Halt      *Halt                      `json:"halt,omitempty"`    // why it was stopped before its end
	Drained   bool                       `json:"drained,omitempty"` // somebody had it end before all was begun
	Elapsed   time.Duration              `json:"-"`
}

// Spent is the cost, as far as it is known.
func (s Summary) Spent() model.Cost {
	if s.Cost == nil {
		return 0
	}
	return *s.Cost
}

// Asked is how many results were asked for.
func (s Summary) Asked() int { return s.Instances * max(1, s.Samples) }

// Complete says whether every instance has its results.
func (s Summary) Complete() bool {
	return s.Classes[trajectories.Submitted]+s.Classes[trajectories.Limit] == s.Asked()
}

// tryPause is waited before an instance is tried again, times the tries so far.
const tryPause = time.Second

// Run works through the instances. Cancelling ctx with cause
// agent.ErrInterrupted stops it in good order: nothing more is started, and
// what runs ends with its diff kept. The error is about the run's folder; how
// instances ended is in the summary.
func (b *Batch) Run(ctx context.Context, instances []datasets.Instance) (Summary, error) {
	start := time.Now()
	book, err := b.Folder.openBook(b.ModelName)
	if err != nil {
		return Summary{}, err
	}
	b.purse = b.newPurse(book)
	all := b.tasks(instances)
	todo := b.pending(book, all)
	b.queue = newQueue(b.Log, b.purse.spent, all, todo)
	b.Log.Emit(Event{Type: RunStarted, Total: len(all), Skipped: len(all) - len(todo), Workers: b.Workers, Sample: b.several()})

	for _, err := range book.unread {
		b.Log.Emit(Event{Type: Warning, Text: err.Error()})
	}
	for _, j := range b.queue.jobs {
		if !b.Redo {
			b.tell(book, j)
		}
	}
	// What cannot be written stops the run: working on would lose results.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b.strikes.begin(b.MaxProviderFailures, stop)
	if s, ok := b.Sandboxes.(Expecting); ok {
		defer s.Expect(ctx, instancesOf(todo))()
	}
	b.Control.serves(b.queue)
	defer b.Control.serves(nil)
	defer context.AfterFunc(ctx, b.queue.wake)()
	workers := new(errgroup.Group)
	for range min(b.Workers, len(all)) {
		workers.Go(func() error {
			err := b.takeTurns(ctx, book)
			if err != nil {
				stop(agent.ErrInterrupted)
			}
			return err
		})
	}
	err = workers.Wait()
	drained := b.queue.close()
	err = errors.Join(err, book.flush())
	s := book.summary(instances, max(1, b.Samples))
	s.Skipped = len(all) - len(todo)
	s.Kept = int(b.kept.Load())
	s.Halt = b.strikes.halted()
	s.Elapsed = time.Since(start)
	s.Exhausted = b.purse.spent()
	s.Drained = drained && !s.Complete()
	b.Log.Emit(Event{Type: RunFinished, Summary: &s})
	return s, errors.Join(err, b.Folder.eventsErr())
}

// takeTurns works on one task after the other, until there is none to be begun.
func (b *Batch) takeTurns(ctx context.Context, book *book) error {
	for {
		j, mine := b.queue.next(ctx)
		if j == nil {
			return nil
		}
		err := b.work(mine, j, book)
		b.queue.giveBack(j)
		if err != nil {
			return err
		}
	}
}

// work tries one sample until it has a result, its failure is not of the kind
// that passes, the tries are used up, or somebody wants it back in the queue.
func (b *Batch) work(ctx context.Context, j *job, book *book) error {
	defer b.Log.Emit(j.event(Event{Type: Doing, Phase: Left}))
	t := j.task
	for {
		j.tries++
		n, out, err := b.goOn(ctx, t, book)
		if err != nil {
			return fmt.Errorf("instance %s: %w", t.ID, err)
		}
		t.anew = false // it was
		again := out.Class.Retried() && !permanent(out) && !b.strikes.inVain(out) && j.tries < b.MaxTries && ctx.Err() == nil
		again = b.queue.finished(j, n, out, again)
		if err := book.enter(t.ID, t.sample, n, out); err != nil {
			return fmt.Errorf("instance %s: %w", t.ID, err)
		}
		if !again {
			b.strikes.ended(out)
			b.tell(book, j)
			return nil
		}
		wait := time.Duration(j.tries) * tryPause
		b.Log.Emit(t.event(Event{Type: Doing, Phase: Waiting, Attempt: n, Elapsed: wait.Seconds()}))
		if !pause(ctx, wait) || !b.queue.goesOn(j) {
			return nil
		}
	}
}

// tell says what a sample has submitted, if it has and nobody was told.
func (b *Batch) tell(book *book, j *job) {
	if b.Submitted == nil {
		return
	}
	book.mu.Lock()
	p, ok := book.prediction(j.ID, j.sample)
	if ok {
		n := book.entries[j.ID].samples[j.sample].selected
		ok, j.told = n != j.told, n
	}
	book.mu.Unlock()
	if ok {
		b.Submitted(j.Instance, j.sample, p)
	}
}

// permanent says that trying again would meet the same failure.
func permanent(out trajectories.Outcome) bool {
	switch out.ExitStatus {
	case string(env.ImageNotFound), string(model.AuthenticationError), string(model.BadRequest), string(model.ScriptExhausted):
		return true
	}
	return false
}

// pause waits, and says whether the wait came to its end.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
