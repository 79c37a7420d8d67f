package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// newJournal creates the journal of attempt n of a task. The journal of a branch starts with the
// history of its parent.
func (b *Batch) newJournal(t *task, n int) (journal attemptJournal, err error) {
	header := b.header(t, n)
	header.Session = NewSession()
	if header.Image == "" && (header.EnvironmentClass == "docker" || header.EnvironmentClass == "kubernetes") {
		header.Image = t.ImageName()
	}
	create := func(f *os.File) (*trajectories.Journal, error) { return trajectories.NewJournal(f, header) }
	isBranch := false
	if b.Branch != nil {
		var parent BranchParent
		if parent, isBranch = b.Branch.Parents[t.ID]; isBranch {
			header.Origin = &parent.Origin
			create = func(f *os.File) (*trajectories.Journal, error) {
				return trajectories.NewFork(f, header, parent.Records)
			}
		}
	}
	path := b.Folder.Journal(t.ID, n)
	if journal.Journal, err = b.Folder.newJournal(path, create); err != nil {
		return attemptJournal{}, err
	}
	if isBranch {
		if journal.resumeState, err = agent.ReadResumeState(trajectories.Read(path)); err != nil {
			return attemptJournal{}, errors.Join(err, journal.Close())
		}
	}
	journal.session = header.Session
	journal.SetSyncPolicy(b.Sync)
	return journal, nil
}

// header returns the header of attempt n of a task, without the image.
func (b *Batch) header(t *task, n int) trajectories.Header {
	header := b.Header
	header.InstanceID, header.Attempt, header.Repetition, header.ModelName = t.ID, n, t.repetition, b.ModelName
	return header
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
		Conversation: model.Conversation{Attempt: n, Session: journal.session}, Agent: own, Sandboxes: b.Sandboxes, Models: b.Models, Instance: in, Session: s,
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

// Keeper is a sandbox that can outlive its attempt.
type Keeper interface {
	// Keep preserves the sandbox and returns instructions to access it. The
	// caller must still call Close.
	Keep(ctx context.Context, attempt int) (instructions string, err error)
}

// keepSandbox keeps a sandbox if Batch.KeepSandbox asks for it. It reports a failure
// as a warning, because the attempt already has its result.
func (b *Batch) keepSandbox(ctx context.Context, sandbox env.Environment, t *task, n int, out trajectories.Outcome) {
	if b.KeepSandbox == nil || !b.KeepSandbox(out) {
		return
	}
	e := t.event(Event{Type: SandboxKept, Attempt: n})
	k, ok := sandbox.(Keeper)
	if !ok {
		e.Type, e.Text = Warning, "this kind of sandbox cannot be kept"
		b.Log.Emit(e)
		return
	}
	instructions, err := k.Keep(context.WithoutCancel(ctx), n)
	if e.Text = instructions; err != nil {
		e.Type, e.Text = Warning, "keep sandbox: "+err.Error()
	} else {
		b.keptCount.Add(1)
	}
	b.Log.Emit(e)
}

// closeTimeout limits the time for closing a sandbox, including BeforeClose.
const closeTimeout = time.Minute

// Agent works on one attempt. *agent.Agent implements it.
type Agent interface {
	// Run works on the task of s until something ends the attempt. It records the
	// outcome as the last record and returns it. It does not close the sandbox.
	Run(ctx context.Context, s agent.Session) trajectories.Outcome
}

// AttemptRunner runs one attempt at an instance: it starts the sandbox, runs the
// agent and closes the sandbox. Batches and interactive sessions use it.
type AttemptRunner struct {
	Agent     Agent
	Sandboxes Sandboxes
	Models    Models
	Instance  datasets.Instance
	// Conversation is the name of the attempt for gateways. Run sets its instance and, if there is none, its session.
	Conversation model.Conversation
	// Session configures the agent. Run adds the model, sandbox, tools and task.
	Session agent.Session
	// Tools returns the agent's tools; may be nil.
	Tools func() (agent.ToolServer, error)
	// OnReady is called when the sandbox has started, before the agent starts; may
	// be nil.
	OnReady func(info env.Info, took time.Duration)
	// BeforeClose is called before the sandbox is closed; may be nil.
	BeforeClose func(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) error
}

// Run starts a sandbox, runs the agent in it and closes the sandbox. It records the
// outcome in the journal and returns it. The error reports a failure of BeforeClose
// or of closing the sandbox. Run recovers a panic, so that other attempts continue.
func (r AttemptRunner) Run(ctx context.Context) (out trajectories.Outcome, err error) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			out = r.recordFailure(start, &agent.PanicError{Text: fmt.Sprint(p), Stack: string(debug.Stack())})
		}
	}()
	r.Conversation.Instance, r.Conversation.Session = r.Instance.ID, cmp.Or(r.Conversation.Session, NewSession())
	ctx = model.WithConversation(ctx, r.Conversation)
	s := r.Session
	s.Task = agent.Task{Text: r.Instance.ProblemStatement, Instance: r.Instance.Fields()}
	if err := r.prepareSession(&s); err != nil {
		return r.recordFailure(start, err), nil
	}
	sandbox, err := r.Sandboxes.Start(ctx, r.Instance)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return r.recordFailure(start, err), nil
	}
	// Deferred to close the sandbox even after a panic.
	defer func() { err = errors.Join(err, r.close(ctx, sandbox, out)) }()
	s.Environment, s.StartupTime = sandbox, time.Since(start)
	if r.OnReady != nil {
		r.OnReady(sandbox.Info(), s.StartupTime)
	}
	return r.Agent.Run(ctx, s), nil
}

// NewSession returns a value for trajectories.Header.Session.
func NewSession() string { return strings.ToLower(rand.Text()[:16]) }

// prepareSession sets the models and tools of the session.
func (r AttemptRunner) prepareSession(s *agent.Session) (err error) {
	if s.Model, err = r.Models.For(r.Instance); err != nil {
		return err
	}
	if r.Tools != nil {
		if s.Tools, err = r.Tools(); err != nil {
			return err
		}
	}
	if m, ok := r.Models.(SummaryModels); ok {
		s.SummaryModel, err = m.SummaryModel(r.Instance)
	}
	return err
}

func (r AttemptRunner) close(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if r.BeforeClose != nil {
		err = r.BeforeClose(ctx, sandbox, out)
	}
	if closeErr := sandbox.Close(ctx); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close sandbox: %w", closeErr))
	}
	return err
}

// recordFailure records and returns the outcome of an attempt that failed outside
// the agent: before the agent started, or with a panic.
func (r AttemptRunner) recordFailure(start time.Time, err error) trajectories.Outcome {
	out := agent.OutcomeOf(start, err)
	r.Session.Resume.AddTo(&out)
	if _, recErr := r.Session.Recorder.Append(trajectories.TypeOutcome, out); recErr != nil {
		out = agent.OutcomeOf(start, errors.Join(err, recErr))
		r.Session.Resume.AddTo(&out)
	}
	return out
}
