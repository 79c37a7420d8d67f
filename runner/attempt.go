package runner

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

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
	out := b.solve(ctx, t, n, journal)
	return n, out, journal.Close()
}

// solve is the trial of an attempt.
func (b *Batch) solve(ctx context.Context, t task, n int, journal opened) trajectories.Outcome {
	in := t.Instance
	o := &observer{log: b.Log, purse: b.purse, strikes: &b.strikes, task: t, attempt: n}
	if past := journal.past; past != nil {
		o.step, o.cost = past.Steps, float64(past.Total().Cost)
	}
	var bus *events.Bus
	if b.Events != nil {
		var done func()
		bus, done = b.Events(in, n)
		defer done()
	}
	s := agent.Session{
		Events:   bus,
		Opening:  events.RunStarted{Instance: in.ID, Model: b.ModelName, Environment: b.Header.EnvironmentClass},
		Recorder: journal, Observer: o,
		Allow: b.purse.take, Afford: b.purse.afford,
		Past: journal.past, States: true,
	}
	if b.Supervise != nil {
		s.Supervisor = b.Supervise(in)
	}
	trial := Trial{
		Agent: b.Agent, Sandboxes: b.Sandboxes, Models: countedModels{b.Models, &b.strikes}, Instance: in, Session: s,
		Tools: func() (agent.Toolbox, error) {
			var tools agent.Toolbox
			var err error
			if b.Tools != nil {
				tools, err = b.Tools(in, filepath.Dir(b.Folder.Journal(in.ID, n)))
			}
			if err == nil && journal.past != nil {
				journal.past.Rebuild = b.rebuild(o, journal, tools)
			}
			return tools, err
		},
		Ready: func(info env.Info, took time.Duration) {
			b.Folder.sawImage(info)
			b.Log.Emit(t.event(Event{Type: SandboxReady, Attempt: n, Elapsed: took.Seconds(), Warnings: info.Warnings}))
		},
		Done: func(ctx context.Context, box env.Environment, out trajectories.Outcome) error {
			o.Began(Closing, "")
			b.keep(ctx, box, t, n, out)
			return nil
		},
	}
	out, err := trial.Run(ctx)
	if err != nil {
		b.Log.Emit(t.event(Event{Type: Warning, Attempt: n, Text: err.Error()}))
	}
	return out
}
