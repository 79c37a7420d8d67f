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

// opened is the journal of an attempt that is being made.
type opened struct {
	*trajectories.Journal
	past *agent.Past // what it goes on from; nil in a new attempt
}

// goOn makes an attempt for a sample: inside its newest one, where that was
// stopped in the middle and can be gone on with; else a new one.
func (b *Batch) goOn(ctx context.Context, t task, book *book) (int, trajectories.Outcome, error) {
	n := book.newest(t)
	if !b.ResumeAttempts || b.Redo || t.anew || n == 0 || !b.stopped(t.ID, n) {
		return b.attempt(ctx, t, book.nextAttempt(t))
	}
	journal, err := b.reopen(t, n)
	if err != nil {
		b.Log.Emit(t.event(Event{Type: Warning, Attempt: n, Text: fmt.Sprintf("attempt %d cannot go on, and a new one is made: %v", n, err)}))
		return b.attempt(ctx, t, book.nextAttempt(t))
	}
	book.carry(journal.past)
	n, out, err := b.sit(ctx, t, n, journal)
	if err != nil || out.ExitStatus != agent.ErrDiverged.Error() || ctx.Err() != nil {
		return n, out, err
	}
	b.Log.Emit(t.event(Event{Type: AttemptFinished, Attempt: n, Outcome: &out, Again: true}))
	if err := book.enter(t.ID, t.sample, n, out); err != nil {
		return n, out, err
	}
	return b.attempt(ctx, t, book.nextAttempt(t))
}

// stopped says whether an attempt was, before its agent was done.
func (b *Batch) stopped(id string, n int) bool {
	out, ended, err := last(b.Folder.Journal(id, n))
	if err != nil || !ended {
		return err == nil && exists(b.Folder.Journal(id, n))
	}
	return goesOn(out.Class, out.ExitStatus)
}

// goesOn says of how an attempt ended whether it can be gone on with.
func goesOn(class trajectories.Class, status string) bool {
	switch class {
	case trajectories.Interrupted:
		return status != agent.ErrDiverged.Error()
	case trajectories.Provider: // what it refuses may be the conversation
		return status != string(model.BadRequest)
	case trajectories.Environment:
		return slices.Contains([]env.Status{env.ImageNotFound, env.PullFailed, env.DaemonUnavailable, env.StartFailed, env.HostDiskFull, env.ContainerDied}, env.Status(status))
	}
	return false
}

// Stopped are the attempts that a batch of so many samples would go on inside of,
// where ResumeAttempts is set and they were made as it makes them.
func (in Instance) Stopped(samples int) (all []Attempt) {
	for k := 1; k <= samples; k++ {
		if r := in.result(k); r != nil && r.Class.Counts() {
			continue
		}
		for _, a := range slices.Backward(in.Attempts) {
			if a.Sample != k {
				continue
			}
			if a.Result == nil || goesOn(a.Result.Class, a.Result.ExitStatus) {
				all = append(all, a)
			}
			break // the newest of the sample
		}
	}
	return all
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reopen opens the journal of a stopped attempt to go on, if what is to be run
// now is what it was made with. The error says why not.
func (b *Batch) reopen(t task, n int) (opened, error) {
	path := b.Folder.Journal(t.ID, n)
	past, err := agent.Recall(trajectories.Read(path))
	if err != nil {
		return opened{}, err
	}
	if err := b.suits(past.Header, t, n); err != nil {
		return opened{}, err
	}
	j, err := b.Folder.continueJournal(path, trajectories.Resume{MiniVersion: b.Header.MiniVersion, Record: past.Record, Redact: b.Header.Redact})
	if err != nil {
		return opened{}, err
	}
	j.Sync(b.Sync)
	return opened{j, past}, nil
}

// suits says what would be another attempt under the same name.
func (b *Batch) suits(h trajectories.Header, t task, n int) error {
	switch {
	case h.InstanceID != t.ID || h.Attempt != n || sampleOf(h) != t.sample:
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

// rebuild makes a sandbox what it was: every command of the past is run again, in
// its order, and held against what it did. What it asked for by mini-tool is
// answered from the record.
//
// An output that differs is listed. A command that ends otherwise, or leaves other
// files, is a divergence, unless Force is set. So is one that ends the sandbox: the
// attempt would never come further.
func (b *Batch) rebuild(o *observer, journal opened, tools agent.Toolbox) func(context.Context, env.Environment, *worktree.Tree) error {
	return func(ctx context.Context, box env.Environment, tree *worktree.Tree) error {
		past := journal.past
		compare, force := replay.Examine, b.Force || b.Branch != nil && b.Branch.Force
		var differ outputs
		var asked *replay.Tools // the agent has prepared the sandbox for them
		if tools != nil {
			children := replay.Children{
				Journals: trajectories.ChildJournals(b.Folder.Journal(o.task.ID, o.attempt)),
				Command:  b.Agent.Command, Local: tools.Abilities().Local,
				Ignore: b.Ignore, Force: force,
			}
			asked = &replay.Tools{Local: children.Local, Again: children.Again}
		}
		if past.Foreign {
			compare = replay.ExamineImported
		}
		for i, x := range past.Executions {
			o.rebuilding(i+1, len(past.Executions), x.Command)
			if past.Foreign && x.Command == "" {
				return &divergence{branch: b.Branch != nil, step: x.Step, command: "a command", difference: "the file has its output, and not the command"}
			}
			c := b.Agent.Command(x.Command)
			if !x.TimedOut {
				c.Timeout *= replay.Patience
			}
			c.Tools = asked.For(&x.Ran)
			res, err := box.Execute(ctx, c)
			if e, ok := errors.AsType[*env.Error](err); ok && e.Status == env.ContainerDied && ctx.Err() == nil {
				return &divergence{branch: b.Branch != nil, step: x.Step, command: b.Log.shorten(x.Command), difference: err.Error()}
			}
			if err != nil {
				return err
			}
			found, err := compare(x.Execution, res, b.Ignore).WithTree(ctx, tree, x.Tree)
			if err != nil {
				return err
			}
			_, err = journal.Append(trajectories.TypeReplay, trajectories.Replay{
				Record: x.Record, Match: string(found.Match), Difference: found.Difference, Duration: trajectories.Seconds(res.Duration),
			})
			if err != nil {
				return err
			}
			differ.add(b.Log, x, found)
			if found.Match == replay.Diverged {
				d := &divergence{branch: b.Branch != nil, step: x.Step, command: b.Log.shorten(x.Command), difference: found.Difference}
				if !force {
					return d
				}
				b.Log.Emit(o.task.event(Event{Type: Warning, Attempt: o.attempt, Text: d.Error() + "; it goes on all the same"}))
			}
		}
		if differ.n > 0 {
			b.Log.Emit(o.task.event(Event{Type: Warning, Attempt: o.attempt, Text: differ.String()}))
		}
		past.Executions = nil // their outputs are not needed any more
		return nil
	}
}

// outputs counts those that differ from the recorded ones, and keeps the first.
type outputs struct {
	n     int
	first string
}

func (o *outputs) add(log *Log, x agent.Executed, f replay.Finding) {
	if f.Match != replay.OutputDiffers {
		return
	}
	if o.n++; o.n == 1 {
		o.first = fmt.Sprintf("in step %d, %s: %s", x.Step, log.shorten(x.Command), f.Difference)
	}
}

func (o *outputs) String() string {
	if o.n == 1 {
		return "the output of a command that was run again differs, " + o.first
	}
	return fmt.Sprintf("the outputs of %d commands that were run again differ, the first %s", o.n, o.first)
}

// divergence is why an attempt cannot go on.
type divergence struct {
	branch              bool // the history is another attempt's
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

// Unwrap makes it an interruption, of an attempt that is over.
func (d *divergence) Unwrap() error { return agent.ErrDiverged }

// newest is the highest attempt for a sample; 0 where there is none.
func (b *book) newest(t task) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entry(t.ID).newest[t.sample]
}

// carry takes note of what an attempt that goes on has come to before: entering
// it counts all of that again, which this run has not spent, or has counted.
func (b *book) carry(past *agent.Past) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cost, b.unpriced = b.cost-past.Total().Cost, b.unpriced-past.Total().Usage.Unpriced
}

// resuming tells that an attempt goes on, and after which step.
func (b *Batch) resuming(t task, n int, past *agent.Past) {
	b.Log.Emit(t.event(Event{
		Type: AttemptResumed, Attempt: n, Step: past.Steps, Cost: float64(past.Total().Cost),
		Total: len(past.Executions), Elapsed: past.Idle.Seconds(),
	}))
}
