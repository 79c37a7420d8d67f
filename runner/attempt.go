package runner

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// startAttempt creates and runs attempt n of a task. It returns n and the outcome,
// which is also in the journal. It returns an error if the run's folder cannot be
// written.
func (b *Batch) startAttempt(ctx context.Context, t task, n int) (int, trajectories.Outcome, error) {
	header := b.Header
	header.InstanceID, header.Attempt, header.Repetition, header.ModelName = t.ID, n, t.repetition, b.ModelName
	if header.Image == "" && (header.EnvironmentClass == "docker" || header.EnvironmentClass == "kubernetes") {
		header.Image = t.ImageName()
	}
	path, err := b.Folder.newAttempt(t.ID, n)
	if err != nil {
		return n, trajectories.Outcome{}, err
	}
	journal, err := b.createJournal(path, header)
	if err != nil {
		return n, trajectories.Outcome{}, err
	}
	journal.SetSyncPolicy(b.Sync)
	return b.runAttempt(ctx, t, n, journal)
}

// createJournal creates the journal of a new attempt. The journal of a branch
// starts with the history of its parent.
func (b *Batch) createJournal(path string, header trajectories.Header) (attemptJournal, error) {
	if b.Branch != nil {
		if p, ok := b.Branch.Parents[header.InstanceID]; ok {
			return b.branchJournal(path, header, p)
		}
	}
	journal, err := b.Folder.newJournal(path, func(f *os.File) (*trajectories.Journal, error) {
		return trajectories.NewJournal(f, header)
	})
	return attemptJournal{Journal: journal}, err
}

// runAttempt runs a new or resumed attempt until it ends and closes its journal.
func (b *Batch) runAttempt(ctx context.Context, t task, n int, journal attemptJournal) (int, trajectories.Outcome, error) {
	b.Log.Emit(t.event(Event{Type: AttemptStarted, Attempt: n}))
	if journal.resumeState != nil {
		b.reportResume(t, n, journal.resumeState)
	}
	b.Log.Emit(t.event(Event{Type: PhaseChanged, Phase: PhaseStarting, Attempt: n}))
	bus, closeBus := (*events.Bus)(nil), func() {}
	if b.NewBus != nil {
		bus, closeBus = b.NewBus(t.Instance, n)
	}
	out, err := b.newAttemptRunner(t, n, journal, bus).Run(ctx)
	closeBus()
	if err != nil {
		b.Log.Emit(t.event(Event{Type: Warning, Attempt: n, Text: err.Error()}))
	}
	return n, out, journal.Close()
}

// newAttemptRunner returns the AttemptRunner of attempt n. bus may be nil.
func (b *Batch) newAttemptRunner(t task, n int, journal attemptJournal, bus *events.Bus) AttemptRunner {
	in := t.Instance
	o := &observer{log: b.Log, budget: b.tracker, breaker: &b.breaker, task: t, attempt: n}
	if restored := journal.resumeState; restored != nil {
		o.step, o.cost = restored.Steps, float64(restored.Total().Cost)
	}
	s := agent.Session{
		Events:     bus,
		StartEvent: events.RunStarted{Instance: in.ID, Model: b.ModelName, Environment: b.Header.EnvironmentClass},
		Recorder:   journal, Observer: o,
		ReserveCall: b.tracker.reserveCall, CheckBudget: b.tracker.checkCost,
		Resume: journal.resumeState, RecordTreeHashes: true,
		NewChild: func(p trajectories.Parent) (agent.ChildJournal, error) {
			header := b.Header
			header.InstanceID, header.Attempt, header.Repetition, header.ModelName, header.Parent = t.ID, n, t.repetition, b.ModelName, &p
			return subagents.JournalDir{
				Dir: filepath.Dir(b.Folder.Journal(in.ID, n)), ParentJournal: trajectories.ChildJournalName,
				Subdir: trajectories.ChildrenFolderName, Header: header, Sync: b.Sync,
			}.Create(header)
		},
	}
	if b.NewApprover != nil {
		s.Approver = b.NewApprover(in)
	}
	own := b.Agent
	if b.NewAgent != nil {
		own = b.NewAgent(in, t.repetition, n)
	}
	return AttemptRunner{
		Agent: own, Sandboxes: b.Sandboxes, Models: monitoredModels{b.Models, &b.breaker}, Instance: in, Session: s,
		Tools: func() (agent.ToolServer, error) {
			var tools agent.ToolServer
			var err error
			if b.NewTools != nil {
				tools, err = b.NewTools(in, filepath.Dir(b.Folder.Journal(in.ID, n)))
			}
			if err == nil && journal.resumeState != nil {
				journal.resumeState.Rebuild = b.rebuild(o, journal, tools)
			}
			return tools, err
		},
		OnReady: func(info env.Info, took time.Duration) {
			b.Folder.recordImage(info)
			b.Log.Emit(t.event(Event{Type: SandboxReady, Attempt: n, Elapsed: took.Seconds(), Warnings: info.Warnings}))
		},
		BeforeClose: func(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) error {
			o.PhaseStarted(PhaseClosing, "")
			b.keepSandbox(ctx, sandbox, t, n, out)
			return nil
		},
	}
}
