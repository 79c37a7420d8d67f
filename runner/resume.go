package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/trajectories"
)

// attemptJournal is the journal of a running attempt.
type attemptJournal struct {
	*trajectories.Journal
	resumeState *agent.ResumeState // the state to resume from; nil in a new attempt
}

// resumeOrStart resumes the newest attempt of a task if it was interrupted and can
// be resumed; otherwise it starts a new attempt.
func (b *Batch) resumeOrStart(ctx context.Context, t task, store *resultStore) (int, trajectories.Outcome, error) {
	n := store.newestAttempt(t)
	if !b.ResumeAttempts || b.Redo || t.forceNew || n == 0 || !b.isResumable(t.ID, n) {
		return b.startAttempt(ctx, t, store.nextAttempt(t))
	}
	journal, err := b.reopen(t, n)
	if err != nil {
		b.Log.Emit(t.event(Event{Type: Warning, Attempt: n, Text: fmt.Sprintf("attempt %d cannot be resumed, starting a new one: %v", n, err)}))
		return b.startAttempt(ctx, t, store.nextAttempt(t))
	}
	store.discount(journal.resumeState)
	n, out, err := b.runAttempt(ctx, t, n, journal)
	if err != nil || out.ExitStatus != agent.ErrDiverged.Error() || ctx.Err() != nil {
		return n, out, err
	}
	b.Log.Emit(t.event(Event{Type: AttemptFinished, Attempt: n, Outcome: &out, WillRetry: true}))
	if err := store.record(t.ID, t.repetition, n, out); err != nil {
		return n, out, err
	}
	return b.startAttempt(ctx, t, store.nextAttempt(t))
}

// isResumable reports whether an attempt ended before its agent was done.
func (b *Batch) isResumable(id string, n int) bool {
	out, ended, err := lastOutcome(b.Folder.Journal(id, n))
	if err != nil || !ended {
		return err == nil && exists(b.Folder.Journal(id, n))
	}
	return isResumableOutcome(out.Class, out.ExitStatus)
}

// isResumableOutcome reports whether an attempt with this outcome can be resumed.
func isResumableOutcome(class trajectories.Class, status string) bool {
	switch class {
	case trajectories.Interrupted:
		return status != agent.ErrDiverged.Error()
	case trajectories.Provider: // the conversation may be the cause
		return status != string(model.BadRequest)
	case trajectories.Environment:
		return slices.Contains([]env.Status{env.ImageNotFound, env.PullFailed, env.DaemonUnavailable, env.StartFailed, env.HostDiskFull, env.ContainerDied}, env.Status(status))
	}
	return false
}

// Resumable returns the attempts that a batch with n repetitions would resume, if
// its configuration matches.
func (in Instance) Resumable(repetitions int) (all []Attempt) {
	for rep := 1; rep <= repetitions; rep++ {
		if r := in.result(rep); r != nil && r.Class.Counts() {
			continue
		}
		for _, a := range slices.Backward(in.Attempts) {
			if a.Repetition != rep {
				continue
			}
			if a.Result == nil || isResumableOutcome(a.Result.Class, a.Result.ExitStatus) {
				all = append(all, a)
			}
			break // only the newest of the repetition
		}
	}
	return all
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reopen opens the journal of an interrupted attempt to resume it. It fails if the
// configuration does not match.
func (b *Batch) reopen(t task, n int) (attemptJournal, error) {
	path := b.Folder.Journal(t.ID, n)
	restored, err := agent.ReadResumeState(trajectories.Read(path))
	if err != nil {
		return attemptJournal{}, err
	}
	if err := b.checkHeader(restored.Header, t, n); err != nil {
		return attemptJournal{}, err
	}
	j, err := b.Folder.continueJournal(path, trajectories.Resume{MiniVersion: b.Header.MiniVersion, Record: restored.LastRecord, Redact: b.Header.Redact})
	if err != nil {
		return attemptJournal{}, err
	}
	j.SetSyncPolicy(b.Sync)
	return attemptJournal{j, restored}, nil
}

// checkHeader returns an error if a resumed attempt would differ from a new one.
func (b *Batch) checkHeader(h trajectories.Header, t task, n int) error {
	switch {
	case h.InstanceID != t.ID || h.Attempt != n || repetitionOf(h) != t.repetition:
		return fmt.Errorf("its journal is that of attempt %d of %.80q", h.Attempt, h.InstanceID)
	case h.ModelName != b.ModelName:
		return fmt.Errorf("it was made with the model %.80q, and this is %.80q", h.ModelName, b.ModelName)
	case h.ModelClass != b.Header.ModelClass:
		return fmt.Errorf("it was made with a model of the class %.20q, and this is %.20q", h.ModelClass, b.Header.ModelClass)
	case h.EnvironmentClass != b.Header.EnvironmentClass:
		return fmt.Errorf("it was made in a sandbox of the class %.20q, and this is %.20q", h.EnvironmentClass, b.Header.EnvironmentClass)
	}
	if what := changedConfig(h.Config, b.Header.Config); what != "" {
		return errors.New("it was made with another " + what)
	}
	return nil
}

// rebuild returns a function that restores a sandbox by rerunning the attempt's
// commands in order and comparing their results. Tool calls of a command are
// answered from the journal.
//
// Differing outputs are counted in a warning. A command with another exit code, or
// that leaves other files, is a divergence, unless Force is set; so is one that
// kills the sandbox, since the attempt could never get past it.
func (b *Batch) rebuild(o *observer, journal attemptJournal, tools agent.ToolServer) func(context.Context, env.Environment, *worktree.Tree) error {
	return func(ctx context.Context, sandbox env.Environment, tree *worktree.Tree) error {
		restored := journal.resumeState
		compare, force := replay.Compare, b.Force || b.Branch != nil && b.Branch.Force
		var diffs outputDiffs
		var recorded *replay.Tools // prepared in the sandbox by the agent
		if tools != nil {
			children := replay.SubagentReplayer{
				Journals: trajectories.ChildJournals(b.Folder.Journal(o.task.ID, o.attempt)),
				Command:  b.Agent.Command, Local: tools.Capabilities().Local,
				Ignore: b.Ignore, Force: force,
			}
			recorded = &replay.Tools{Local: children.Local, Rerun: children.Rerun}
		}
		if restored.Foreign {
			compare = replay.CompareImported
		}
		for i, x := range restored.Executions {
			o.reportRebuild(i+1, len(restored.Executions), x.Command)
			if restored.Foreign && x.Command == "" {
				return &divergence{branch: b.Branch != nil, step: x.Step, command: "a command", difference: "the file has its output but not the command"}
			}
			c := b.Agent.Command(x.Command)
			if !x.TimedOut {
				c.Timeout *= replay.TimeoutFactor
			}
			c.Tools = recorded.For(&x.RecordedExecution)
			res, err := sandbox.Execute(ctx, c)
			if e, ok := errors.AsType[*env.Error](err); ok && e.Status == env.ContainerDied && ctx.Err() == nil {
				return &divergence{branch: b.Branch != nil, step: x.Step, command: b.Log.shorten(x.Command), difference: err.Error()}
			}
			if err != nil {
				return err
			}
			found, err := compare(x.Execution, res, b.Ignore).CompareTree(ctx, tree, x.Tree)
			if err != nil {
				return err
			}
			_, err = journal.Append(trajectories.TypeReplay, trajectories.Replay{
				Record: x.Record, Match: string(found.Match), Difference: found.Difference, Duration: trajectories.Seconds(res.Duration),
			})
			if err != nil {
				return err
			}
			diffs.add(b.Log, x, found)
			if found.Match == replay.Diverged {
				d := &divergence{branch: b.Branch != nil, step: x.Step, command: b.Log.shorten(x.Command), difference: found.Difference}
				if !force {
					return d
				}
				b.Log.Emit(o.task.event(Event{Type: Warning, Attempt: o.attempt, Text: d.Error() + "; continuing because of --force"}))
			}
		}
		if diffs.n > 0 {
			b.Log.Emit(o.task.event(Event{Type: Warning, Attempt: o.attempt, Text: diffs.String()}))
		}
		restored.Executions = nil // outputs are no longer needed
		return nil
	}
}

// outputDiffs counts outputs that differ from the recorded ones.
type outputDiffs struct {
	n     int
	first string
}

func (o *outputDiffs) add(log *Log, x agent.ExecutedCommand, f replay.Finding) {
	if f.Match != replay.OutputDiffers {
		return
	}
	if o.n++; o.n == 1 {
		o.first = fmt.Sprintf("in step %d, %s: %s", x.Step, log.shorten(x.Command), f.Difference)
	}
}

func (o *outputDiffs) String() string {
	if o.n == 1 {
		return "the output of a rerun command differs, " + o.first
	}
	return fmt.Sprintf("the outputs of %d rerun commands differ, the first %s", o.n, o.first)
}

// divergence is why an attempt cannot be resumed.
type divergence struct {
	branch              bool // the history is the parent's
	step                int
	command, difference string
}

func (d *divergence) Error() string {
	what := "resumed"
	if d.branch {
		what = "rebuilt"
	}
	return fmt.Sprintf("could not be %s: in step %d, %s: %s", what, d.step, d.command, d.difference)
}

// Unwrap makes it an interruption that cannot be resumed.
func (d *divergence) Unwrap() error { return agent.ErrDiverged }

// newestAttempt returns the last attempt of a task; 0 if there is none.
func (rs *resultStore) newestAttempt(t task) int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.instance(t.ID).newestAttempts[t.repetition]
}

// discount subtracts what a resumed attempt cost before: recording its outcome adds
// the total again.
func (rs *resultStore) discount(restored *agent.ResumeState) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.cost, rs.unpriced = rs.cost-restored.Total().Cost, rs.unpriced-restored.Total().Usage.Unpriced
}

// reportResume emits that an attempt is resumed.
func (b *Batch) reportResume(t task, n int, restored *agent.ResumeState) {
	b.Log.Emit(t.event(Event{
		Type: AttemptResumed, Attempt: n, Step: restored.Steps, Cost: float64(restored.Total().Cost),
		Total: len(restored.Executions), Elapsed: restored.Idle.Seconds(),
	}))
}
