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

// newJournal creates the journal of attempt n of a task.
func (b *Batch) newJournal(t *task, n int) (attemptJournal, error) {
	header := b.header(t, n)
	if header.Image == "" && (header.EnvironmentClass == "docker" || header.EnvironmentClass == "kubernetes") {
		header.Image = t.ImageName()
	}
	path, err := b.Folder.newAttempt(t.ID, n)
	if err != nil {
		return attemptJournal{}, err
	}
	journal, err := b.createJournal(path, header)
	if err == nil {
		journal.SetSyncPolicy(b.Sync)
	}
	return journal, err
}

// header returns the header of attempt n of a task, without the image.
func (b *Batch) header(t *task, n int) trajectories.Header {
	header := b.Header
	header.InstanceID, header.Attempt, header.Repetition, header.ModelName = t.ID, n, t.repetition, b.ModelName
	return header
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

// newAttemptRunner returns the AttemptRunner of attempt n. bus may be nil.
func (b *Batch) newAttemptRunner(t *task, n int, journal attemptJournal, bus *events.Bus) AttemptRunner {
	in := t.Instance
	o := &observer{log: b.Log, budget: b.tracker, breaker: &b.breaker, task: t, attempt: n}
	if restored := journal.resumeState; restored != nil {
		o.step, o.cost = restored.Attempt.Totals.Own.Steps, float64(restored.Total().Cost)
	}
	s := agent.Session{
		Events:     bus,
		StartEvent: events.RunStarted{Instance: in.ID, Model: b.ModelName, Environment: b.Header.EnvironmentClass},
		Recorder:   journal, Observer: o, OnEnd: b.breaker.onAttemptEnd,
		ReserveCall: b.tracker.reserveCall, CheckBudget: b.tracker.checkCost,
		Resume: journal.resumeState, RecordTreeHashes: true,
		NewChild: func(p trajectories.Parent) (agent.ChildJournal, error) {
			header := b.header(t, n)
			header.Parent = &p
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
		Agent: own, Sandboxes: b.Sandboxes, Models: b.Models, Instance: in, Session: s,
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
			o.Observe(events.PhaseStarted{Phase: PhaseClosing})
			b.keepSandbox(ctx, sandbox, t, n, out)
			return nil
		},
	}
}
