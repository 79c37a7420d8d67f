package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Config configures Run. Environment, Transcript and Command are required.
type Config struct {
	// Environment is a fresh sandbox like the attempt's. The caller closes it.
	Environment env.Environment
	Transcript  *trajectories.Transcript
	// Command returns the command for an action's script, with the attempt's
	// timeout and output limit.
	Command func(script string) env.Command
	// Tools answers the tool calls of commands; nil if the attempt had no tools.
	Tools *Tools
	// Scrub repeats the removal of later commits before the first step.
	Scrub    bool
	Worktree worktree.Config
	// Ignore matches output that may differ.
	Ignore IgnoreRules
	// StopAtFirst stops after the first command that diverges.
	StopAtFirst bool
	// OnCommand is called after each command; may be nil.
	OnCommand func(Command)
}

// Command is a recorded command and the result of rerunning it.
type Command struct {
	// Step is the model call that asked for it, from 1; 0 is the start-up command.
	Step   int    `json:"step"`
	Record int    `json:"record"` // ID of its record in the journal
	Text   string `json:"command"`
	Finding
	RecordedDuration trajectories.Seconds `json:"recorded_seconds"`
	Duration         trajectories.Seconds `json:"seconds"`
}

// Matches of commands that are not compared.
const (
	// Skipped is a command that was interrupted when it was recorded. It is not
	// rerun, since it is unknown how far it got.
	Skipped Match = "skipped"
	// Unrecorded is a command of another agent whose file lacks its result, so that
	// it is only rerun, or lacks the command itself, so that it cannot be.
	Unrecorded Match = "not recorded"
)

// Result is the result of a replay.
type Result struct {
	Commands []Command `json:"commands"`
	Diff     Diff      `json:"diff"`
}

// FirstDiverged returns the first command that diverged, or nil.
func (r Result) FirstDiverged() *Command {
	for i, c := range r.Commands {
		if c.Match == Diverged {
			return &r.Commands[i]
		}
	}
	return nil
}

// Count returns the number of commands with a match.
func (r Result) Count(m Match) int {
	n := 0
	for _, c := range r.Commands {
		if c.Match == m {
			n++
		}
	}
	return n
}

// Reproduced reports whether all commands ran without diverging and the diff, if
// recorded, is equal. Outputs may differ.
func (r Result) Reproduced() bool {
	missing := slices.ContainsFunc(r.Commands, func(c Command) bool { return c.Match == Unrecorded && c.Text == "" })
	return !missing && r.FirstDiverged() == nil && (r.Diff.State == Reproduced || r.Diff.State == NotRecorded)
}

// Run prepares the sandbox, reruns the commands in order and takes the final diff.
// Different results are findings, not errors. An error means that the sandbox was
// lost or ctx ended; the Result is valid up to then.
func Run(ctx context.Context, c Config) (Result, error) {
	p := &pass{Config: c, Result: Result{Commands: []Command{}, Diff: Diff{State: NotTaken}}}
	err := p.run(ctx)
	return p.Result, err
}

// pass is the state of Run.
type pass struct {
	Config
	Result
	tree    *worktree.Tree // nil before the repository is opened
	stopped bool           // after the first command that diverged
	last    env.Result     // of the last command
}

func (p *pass) run(ctx context.Context) error {
	todo := commandsOf(p.Transcript)
	if p.Tools != nil && p.Tools.Prepare != nil {
		if err := p.Tools.Prepare(ctx, p.Environment); err != nil {
			return orCause(ctx, err)
		}
	}
	// As in an attempt, the start-up command comes before the scrub.
	setup := 0
	for setup < len(todo) && todo[setup].step == 0 {
		setup++
	}
	if err := p.rerunAll(ctx, todo[:setup]); err != nil || p.stopped {
		return err
	}
	var err error
	if p.tree, err = p.openTree(ctx); err != nil {
		return err
	}
	if err := p.rerunAll(ctx, todo[setup:]); err != nil || p.stopped {
		return err
	}
	p.Diff, err = p.diff(ctx, p.tree)
	return err
}

// rerunAll reruns commands in order.
func (p *pass) rerunAll(ctx context.Context, todo []recordedCommand) error {
	for _, r := range todo {
		done, err := p.rerun(ctx, r)
		if err != nil {
			return fmt.Errorf("step %d: %w", r.step, err)
		}
		p.Commands = append(p.Commands, done)
		if p.OnCommand != nil {
			p.OnCommand(done)
		}
		if p.stopped = p.StopAtFirst && done.Match == Diverged; p.stopped {
			return nil
		}
	}
	return nil
}

// TimeoutFactor multiplies the timeout of commands that did not time out when
// recorded, because the machine may be slower.
const TimeoutFactor = 4

// rerun reruns one command.
func (p *pass) rerun(ctx context.Context, r recordedCommand) (Command, error) {
	done := Command{Step: r.step, Record: r.ran.Record, Text: r.ran.Command, RecordedDuration: r.ran.Duration}
	if r.interrupted {
		done.Match, done.Difference = Skipped, "it was interrupted when it was recorded"
		return done, nil
	}
	if r.ran.Command == "" && p.Transcript.IsForeign() {
		done.Match, done.Difference = Unrecorded, "the file has its output but not the command"
		return done, nil
	}
	c := p.Command(r.ran.Command)
	if !r.ran.TimedOut {
		c.Timeout *= TimeoutFactor
	}
	c.Tools = p.Tools.For(&r.ran)
	got, err := p.Environment.Execute(ctx, c)
	if err != nil {
		return done, orCause(ctx, err)
	}
	p.last = got
	done.Duration = trajectories.Seconds(got.Duration)
	switch {
	case r.unrecorded:
		done.Match, done.Difference = Unrecorded, "the file does not contain its result"
	case p.Transcript.IsForeign():
		done.Finding = CompareImported(r.ran.Execution, got, p.Ignore)
	default:
		done.Finding = Compare(r.ran.Execution, got, p.Ignore)
	}
	done.Finding, err = done.CompareTree(ctx, p.tree, r.ran.Tree)
	return done, err
}

// orCause returns ctx's cause if ctx ended, or else err.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// openTree scrubs the repository if the attempt did, and records its state for the
// final diff.
func (p *pass) openTree(ctx context.Context) (*worktree.Tree, error) {
	if p.Scrub {
		_, err := worktree.Scrub(ctx, p.Environment)
		if err != nil && !errors.Is(err, worktree.ErrNoRepository) && !errors.Is(err, worktree.ErrNotDisposable) {
			return nil, orCause(ctx, fmt.Errorf("scrub repository: %w", err))
		}
	}
	tree, err := worktree.Open(ctx, p.Environment, p.Worktree)
	if err != nil {
		return nil, orCause(ctx, err)
	}
	return tree, nil
}

// recordedCommand is a command to be rerun.
type recordedCommand struct {
	step        int
	ran         trajectories.RecordedExecution
	interrupted bool
	unrecorded  bool // its result was not recorded
}

// commandsOf returns the commands of an attempt in order.
func commandsOf(t *trajectories.Transcript) []recordedCommand {
	var all []recordedCommand
	for _, ran := range t.SetupExecutions {
		all = append(all, recordedCommand{ran: ran})
	}
	step := 0
	for _, e := range t.Entries {
		if e.Cause == trajectories.CauseReply {
			step++
		}
		for _, ran := range e.Executions {
			all = append(all, recordedCommand{step: step, ran: ran})
		}
	}
	if command, ok := lastCommand(t); ok {
		all = append(all, recordedCommand{step: step, ran: trajectories.RecordedExecution{ObservationEntry: -1, Execution: trajectories.Execution{Command: command}}, unrecorded: true})
	}
	if n := len(all); n > 0 && t.Import == nil && all[n-1].ran.ObservationEntry < 0 && wasInterrupted(t.Outcome) {
		all[n-1].interrupted = true
	}
	return all
}

// lastCommand returns the command by which another agent submitted, if its file
// contains only the submission and not the output.
func lastCommand(t *trajectories.Transcript) (string, bool) {
	if !t.IsForeign() || t.Outcome == nil || t.Outcome.Class != trajectories.Submitted {
		return "", false
	}
	for _, e := range slices.Backward(t.Entries) {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		if n := len(e.Executions); n+1 == len(e.Actions) && containsMarker(e.Actions[n]) {
			return e.Actions[n], true
		}
		break
	}
	return "", false
}

// containsMarker reports whether a command contains a submission marker.
func containsMarker(command string) bool {
	return slices.ContainsFunc(agent.SubmitMarkers, func(m string) bool { return strings.Contains(command, m) })
}

// wasInterrupted reports whether an attempt was ended from outside, usually during a
// command.
func wasInterrupted(out *trajectories.Outcome) bool {
	switch {
	case out == nil:
		return false // only completed commands are recorded
	case out.Class == trajectories.Limit:
		return out.ExitStatus == "TimeExceeded"
	}
	return out.Class == trajectories.Interrupted || out.Class == trajectories.Environment
}
