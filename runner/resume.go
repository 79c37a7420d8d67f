package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// attemptJournal is the journal of a running attempt.
type attemptJournal struct {
	*trajectories.Journal
	resumeState *agent.ResumeState // the state to continue from; nil in a new attempt without a parent
	resumed     bool               // the attempt itself continues
	session     string             // of the header; "" in journals of older versions
}

// openJournal opens the journal of the newest attempt of a task if that can be resumed.
// Otherwise, or with fresh, it creates the journal of a new attempt. It returns the number
// of the attempt.
func (b *Batch) openJournal(t *task, fresh bool) (n int, journal attemptJournal, err error) {
	b.store.mu.Lock()
	n = b.store.instance(t.ID).newestAttempts[t.repetition] // 0 if there is none
	b.store.mu.Unlock()
	if b.ResumeAttempts && !b.Redo && !fresh && n > 0 && b.isResumable(t.ID, n) {
		if journal, err = b.reopen(t, n); err == nil {
			b.store.subtractCost(journal.resumeState)
			return n, journal, nil
		}
		b.Log.Emit(t.event(Event{Type: Warning, Attempt: n, Text: fmt.Sprintf("attempt %d cannot be resumed, starting a new one: %v", n, err)}))
	}
	n = b.store.nextAttempt(t)
	journal, err = b.newJournal(t, n)
	return n, journal, err
}

// isResumable reports whether an attempt can be resumed: it was interrupted, failed
// temporarily, or has no outcome because its process was killed.
func (b *Batch) isResumable(id string, n int) bool {
	_, out, ended, err := runs.ReadEnds(b.Folder.Journal(id, n))
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
	case trajectories.Provider: // a bad request may be due to the recorded conversation
		return status != string(model.BadRequest)
	case trajectories.Environment:
		return slices.Contains([]env.Status{env.ImageNotFound, env.PullFailed, env.DaemonUnavailable, env.StartFailed, env.HostDiskFull, env.ContainerDied, env.SandboxDisrupted}, env.Status(status))
	}
	return false
}

// ResumableAttempts returns the attempts of an instance that a batch with this number
// of repetitions would resume if its configuration matches.
func ResumableAttempts(in runs.Instance, repetitions int) (all []runs.Attempt) {
	for rep := 1; rep <= repetitions; rep++ {
		if r := in.Repetition(rep); r != nil && r.Class.IsResult() {
			continue
		}
		for _, a := range slices.Backward(in.Attempts) {
			if a.Repetition != rep {
				continue
			}
			if a.Result == nil || isResumableOutcome(a.Result.Class, a.Result.ExitStatus) {
				all = append(all, a)
			}
			break // only the newest attempt of a repetition is resumed
		}
	}
	return all
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reopen opens the journal of an attempt to resume it. It fails if the attempt was
// made with another configuration.
func (b *Batch) reopen(t *task, n int) (attemptJournal, error) {
	path := b.Folder.Journal(t.ID, n)
	restored, err := agent.ReadResumeState(trajectories.Read(path))
	if err != nil {
		return attemptJournal{}, err
	}
	if err := b.checkHeader(restored.Attempt.Header, t, n); err != nil {
		return attemptJournal{}, err
	}
	j, err := b.Folder.continueJournal(path, trajectories.Resume{MiniVersion: b.Header.MiniVersion, Record: restored.LastRecord, Redact: b.Header.Redact})
	if err != nil {
		return attemptJournal{}, err
	}
	j.SetSyncPolicy(b.Sync)
	return attemptJournal{j, restored, true, restored.Attempt.Header.Session}, nil
}

// checkHeader returns an error if the header of a resumed attempt does not match the
// configuration of the batch.
func (b *Batch) checkHeader(h trajectories.Header, t *task, n int) error {
	switch {
	case h.InstanceID != t.ID || h.Attempt != n || runs.RepetitionOf(h) != t.repetition:
		return fmt.Errorf("its journal is that of attempt %d of %.80q", h.Attempt, h.InstanceID)
	case h.ModelName != b.ModelName:
		return fmt.Errorf("it was made with the model %.80q, and this is %.80q", h.ModelName, b.ModelName)
	case h.ModelClass != b.Header.ModelClass:
		return fmt.Errorf("it was made with a model of the class %.20q, and this is %.20q", h.ModelClass, b.Header.ModelClass)
	case h.EnvironmentClass != b.Header.EnvironmentClass:
		return fmt.Errorf("it was made in a sandbox of the class %.20q, and this is %.20q", h.EnvironmentClass, b.Header.EnvironmentClass)
	}
	if difference := changedConfig(h.Config, b.Header.Config); difference != "" {
		return errors.New("it was made with another " + difference)
	}
	return nil
}

// rebuild returns a function that restores a sandbox by rerunning the attempt's
// commands in order and comparing their results. It answers the tool calls of a
// command from the journal.
//
// The function counts differing outputs in a warning. It returns a *divergence if a
// command exits with another code or leaves other files, unless Batch.Force or
// Branch.Force is set. A command that kills the sandbox, or that is missing in an
// imported file, is always a divergence, because the attempt cannot continue after
// it.
func (b *Batch) rebuild(o *observer, journal attemptJournal, tools agent.ToolServer) func(context.Context, env.Environment, *worktree.Tree) error {
	return func(ctx context.Context, sandbox env.Environment, tree *worktree.Tree) error {
		restored := journal.resumeState
		own, ok := b.Agent.(*agent.Agent)
		if !ok {
			return errors.New("the commands of this agent cannot be run again")
		}
		compare, force := replay.Compare, b.Force || b.Branch != nil && b.Branch.Force
		var recorded *replay.Tools // without Prepare, because the agent prepares the sandbox
		if tools != nil {
			subagents := replay.SubagentReplayer{
				Journals: trajectories.ChildJournals(b.Folder.Journal(o.task.ID, o.attempt)),
				Command:  own.Command, Local: tools.Capabilities().InSandbox,
				Ignore: b.Ignore, Force: force,
			}
			recorded = &replay.Tools{Local: subagents.Local, Rerun: subagents.Rerun}
		}
		if restored.Attempt.IsForeign() {
			compare = replay.CompareImported
		}
		outputs, firstOutput := 0, "" // that differ, and what differs in the first
		for i, cmd := range restored.Executions {
			diverge := func(difference string) *divergence {
				return &divergence{branch: b.Branch != nil, step: cmd.Step, command: cmp.Or(b.Log.shorten(cmd.Command), "a command"), difference: difference}
			}
			o.reportRebuild(i+1, len(restored.Executions), cmd.Command)
			if restored.Attempt.IsForeign() && cmd.Command == "" {
				return diverge("the file has its output but not the command")
			}
			c := own.Command(cmd.Command)
			if !cmd.TimedOut {
				c.Timeout *= replay.TimeoutFactor
			}
			c.Tools = recorded.For(&cmd.Execution)
			res, err := sandbox.Execute(ctx, c)
			if e, ok := errors.AsType[*env.Error](err); ok && e.Status == env.ContainerDied && ctx.Err() == nil {
				return diverge(err.Error())
			}
			if err != nil {
				return err
			}
			finding, err := compare(cmd.Execution, res, b.Ignore).CompareTree(ctx, tree, cmd.Tree)
			if err != nil {
				return err
			}
			_, err = journal.Append(trajectories.TypeReplay, trajectories.Replay{
				Record: cmd.Record, Match: string(finding.Match), Difference: finding.Difference, Duration: trajectories.Seconds(res.Duration),
			})
			if err != nil {
				return err
			}
			switch diverged := diverge(finding.Difference); {
			case finding.Match == replay.OutputDiffers:
				if outputs++; outputs == 1 {
					firstOutput = fmt.Sprintf("in step %d, %s: %s", cmd.Step, diverged.command, finding.Difference)
				}
			case finding.Match == replay.Diverged && !force:
				return diverged
			case finding.Match == replay.Diverged:
				b.Log.Emit(o.task.event(Event{Type: Warning, Attempt: o.attempt, Text: diverged.Error() + "; continuing because of --force"}))
			}
		}
		if outputs > 0 {
			text := "the output of a rerun command differs, " + firstOutput
			if outputs > 1 {
				text = fmt.Sprintf("the outputs of %d rerun commands differ, the first %s", outputs, firstOutput)
			}
			b.Log.Emit(o.task.event(Event{Type: Warning, Attempt: o.attempt, Text: text}))
		}
		restored.Executions = nil // outputs are no longer needed
		return nil
	}
}

// divergence reports that the result of a rerun command differs from the journal, so
// that the attempt cannot be resumed.
type divergence struct {
	branch              bool // the batch has a Branch
	step                int
	command, difference string
}

func (d *divergence) Error() string {
	action := "resumed"
	if d.branch {
		action = "rebuilt"
	}
	return fmt.Sprintf("could not be %s: in step %d, %s: %s", action, d.step, d.command, d.difference)
}

// Unwrap returns agent.ErrDiverged: the attempt is interrupted and cannot be resumed.
func (d *divergence) Unwrap() error { return agent.ErrDiverged }

// subtractCost subtracts the earlier cost of a resumed attempt, because record adds the
// attempt's total cost.
func (rs *resultStore) subtractCost(restored *agent.ResumeState) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.cost, rs.unpriced = rs.cost-restored.Total().Cost, rs.unpriced-restored.Total().Usage.Unpriced
}

// Branch makes the attempts of a batch continue other attempts after a given step.
// The new journal starts with a copy of the records up to the end of that step
// (the history). The commands of the history are rerun in the new sandbox.
type Branch struct {
	// Parents are the attempts to continue, by instance.
	Parents map[string]BranchParent
	// Force continues even if a rerun command diverges from the history.
	Force bool
}

// BranchParent is an attempt to continue after the record Origin.Record.
type BranchParent struct {
	Origin  trajectories.Origin
	Records iter.Seq2[trajectories.Record, error] // of the whole attempt, not only of the history
}

// NewParent returns a BranchParent whose history ends after step origin.Step,
// and sets its Origin.Record. It fails if the journal lacks the output of a
// command of that step, because a history must not end within a step. It also
// fails if the attempt has no such step, submitted its work in that step, or
// used subagents up to that step.
func NewParent(origin trajectories.Origin, records iter.Seq2[trajectories.Record, error]) (BranchParent, error) {
	p := BranchParent{Origin: origin, Records: records}
	t, err := trajectories.Fold(records)
	if err != nil {
		return p, err
	}
	p.Origin.Record, err = lastRecordOf(t, origin.Step)
	if err != nil {
		return p, err
	}
	restored, err := agent.ReadResumeState(func(yield func(trajectories.Record, error) bool) { // of the history
		for r, err := range records {
			if r.ID > p.Origin.Record || !yield(r, err) {
				return
			}
		}
	})
	if err == nil && restored.LastRecord < p.Origin.Record {
		err = errUnfinished(origin.Step)
	}
	if err == nil && restored.UsedSubagents() {
		err = errDelegated
	}
	return p, err
}

// errDelegated rejects a parent that used subagents: its records refer to subagent
// journals by number, and a branch does not copy those journals.
var errDelegated = errors.New("its commands started subagents (mini-tool delegate), whose journals a branch does not include")

// lastRecordOf returns the ID of the last record of a step. It returns an error
// if no history can end there.
func lastRecordOf(t *trajectories.Attempt, step int) (int, error) {
	steps, last, answered := 0, 0, false
	for _, e := range t.Entries {
		reply := e.Cause == trajectories.CauseReply
		if reply {
			steps++
		}
		if steps == step {
			last, answered = e.Record, !reply
		}
	}
	switch {
	case step < 1 || steps < step:
		return 0, fmt.Errorf("no step %d: the attempt has %d", step, steps)
	case steps == step && t.Outcome != nil && t.Outcome.Class == trajectories.Submitted:
		return 0, fmt.Errorf("step %d submitted the work; branch from an earlier step", step)
	case !answered:
		return 0, errUnfinished(step)
	}
	return last, nil
}

func errUnfinished(step int) error {
	return fmt.Errorf("step %d is incomplete; branch from an earlier step", step)
}
