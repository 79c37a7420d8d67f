package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// closeTimeout bounds the end of a sandbox, on its own clock.
const closeTimeout = time.Minute

// attempt runs the agent once on an instance. How it ended is in the journal
// and the outcome; the error says that the run's folder cannot be written.
func (b *Batch) attempt(ctx context.Context, t task, n int) (int, trajectories.Outcome, error) {
	header := b.Header
	header.InstanceID, header.Attempt, header.Sample, header.ModelName = t.ID, n, t.sample, b.ModelName
	if header.EnvironmentClass == "docker" && header.Image == "" {
		header.Image = t.ImageName()
	}
	path, err := b.Folder.newAttempt(t.ID, n)
	if err != nil {
		return n, trajectories.Outcome{}, err
	}
	journal, err := b.begin(path, header)
	if err != nil {
		return n, trajectories.Outcome{}, err
	}
	journal.Sync(b.Sync)
	return b.sit(ctx, t, n, journal)
}

// begin makes the journal of a new attempt, or of one that branches off.
func (b *Batch) begin(path string, header trajectories.Header) (opened, error) {
	if b.Branch != nil {
		if p, ok := b.Branch.Parents[header.InstanceID]; ok {
			return b.fork(path, header, p)
		}
	}
	journal, err := b.Folder.newJournal(path, func(f *os.File) (*trajectories.Journal, error) {
		return trajectories.CreateIn(f, header)
	})
	return opened{Journal: journal}, err
}

// sit works on an attempt until it ends, or ends again.
func (b *Batch) sit(ctx context.Context, t task, n int, journal opened) (int, trajectories.Outcome, error) {
	b.Log.Emit(t.event(Event{Type: AttemptStarted, Attempt: n}))
	if journal.past != nil {
		b.resuming(t, n, journal.past)
	}
	b.Log.Emit(t.event(Event{Type: Doing, Phase: Starting, Attempt: n}))
	out := b.guarded(ctx, t, n, journal)
	return n, out, journal.Close()
}

// guarded keeps a panic, which is a mistake in mini, to the attempt it is in.
func (b *Batch) guarded(ctx context.Context, t task, n int, journal opened) (out trajectories.Outcome) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			out = ended(journal, start, &agent.Defect{Text: fmt.Sprint(p), Stack: string(debug.Stack())})
		}
	}()
	return b.solve(ctx, t, n, journal)
}

// solve gets a model and a sandbox and lets the agent at it.
func (b *Batch) solve(ctx context.Context, t task, n int, journal opened) (out trajectories.Outcome) {
	in, start := t.Instance, time.Now()
	m, err := b.Models.For(in)
	if err != nil {
		return ended(journal, start, err)
	}
	tools, err := b.tools(in, n)
	if err != nil {
		return ended(journal, start, err)
	}
	summary, err := b.summary(in)
	if err != nil {
		return ended(journal, start, err)
	}
	box, err := b.Sandboxes.Start(ctx, in)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return ended(journal, start, err)
	}
	started := time.Since(start)
	w := &witness{journal: journal.Journal, log: b.Log, purse: b.purse, strikes: &b.strikes, task: t, attempt: n}
	if journal.past != nil {
		w.resumed(journal.past)
		journal.past.Rebuild = b.rebuild(w, journal.past, tools)
	}
	// Deferred: a panic is kept to the attempt, and must not leave its sandbox.
	defer func() {
		w.doing(Closing, "")
		b.keep(ctx, box, t, n, out)
		if err := closeBox(ctx, box); err != nil {
			b.Log.Emit(t.event(Event{Type: Warning, Attempt: n, Text: err.Error()}))
		}
	}()
	info := box.Info()
	b.Folder.sawImage(info)
	b.Log.Emit(t.event(Event{Type: SandboxReady, Attempt: n, Elapsed: started.Seconds(), Warnings: info.Warnings}))
	var supervisor agent.Supervisor
	if b.Supervise != nil {
		supervisor = b.Supervise(in)
	}
	bus, done := b.events(in, n)
	defer done()
	return b.Agent.Run(ctx, agent.Session{
		Events:      bus,
		Opening:     events.RunStarted{Instance: in.ID, Model: b.ModelName, Environment: b.Header.EnvironmentClass},
		Model:       watchedModel{m, w},
		Environment: watchedBox{box, w},
		Recorder:    w,
		Started:     started,
		Summary:     summary,
		Allow:       b.purse.take,
		Afford:      b.purse.afford,
		Supervisor:  supervisor,
		Tools:       tools,
		Task:        agent.Task{Text: in.ProblemStatement, Instance: in.Fields()},
		Past:        journal.past,
		States:      true,
	})
}

// summary is who makes the summaries of an attempt; nil leaves it to its model.
func (b *Batch) summary(in datasets.Instance) (model.Model, error) {
	s, ok := b.Models.(Summaries)
	if !ok {
		return nil, nil //nolint:nilnil // nobody is one of the answers
	}
	return s.Summary(in)
}

// tools are what the commands of an attempt can ask for.
func (b *Batch) tools(in datasets.Instance, n int) (agent.Toolbox, error) {
	if b.Tools == nil {
		return nil, nil //nolint:nilnil // nothing is one of the things to have
	}
	return b.Tools(in, filepath.Dir(b.Folder.journal(in.ID, n)))
}

// events is the bus of an attempt; nil where nobody listens.
func (b *Batch) events(in datasets.Instance, n int) (bus *events.Bus, done func()) {
	if b.Events == nil {
		return nil, func() {}
	}
	return b.Events(in, n)
}

func closeBox(ctx context.Context, box env.Environment) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := box.Close(ctx); err != nil {
		return fmt.Errorf("close sandbox: %w", err)
	}
	return nil
}

// ended is the outcome of an attempt that never came to its agent.
func ended(journal opened, start time.Time, err error) trajectories.Outcome {
	out := agent.Failed(start, err)
	journal.past.Carry(&out)
	if _, recErr := journal.Append(trajectories.TypeOutcome, out); recErr != nil {
		out = agent.Failed(start, errors.Join(err, recErr))
		journal.past.Carry(&out)
	}
	return out
}
