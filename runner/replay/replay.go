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

// Config configures Run. Environment, Attempt and Command are required.
type Config struct {
	// Environment is a fresh sandbox with the attempt's configuration. The caller
	// closes it.
	Environment env.Environment
	Attempt     *trajectories.Attempt
	// Command returns the command for an action's script, with the attempt's
	// timeout and output limit.
	Command func(script string) env.Command
	// Tools answers the tool calls of commands; nil if the attempt had no tools.
	Tools *Tools
	// Scrub removes later commits from the repository before the first step.
	Scrub    bool
	Worktree worktree.Config
	// Repository answers for the repository in Environment; nil means git there.
	Repository agent.Repository
	// Ignore matches parts of outputs that may differ.
	Ignore IgnoreRules
	// StopAtFirstDivergence stops after the first command that diverges.
	StopAtFirstDivergence bool
	// OnCommand is called after each command; may be nil.
	OnCommand func(Command)
}

// Command is a recorded command and the result of rerunning it.
type Command struct {
	// Step is the number of the model call whose reply has the command, from 1; 0
	// for the start-up command.
	Step   int    `json:"step"`
	Record int    `json:"record"` // ID of its record in the journal
	Text   string `json:"command"`
	Finding
	RecordedDuration trajectories.Seconds `json:"recorded_seconds"`
	Duration         trajectories.Seconds `json:"seconds"`
}

// Matches of commands that are not compared.
const (
	// Skipped is a command that was interrupted when it was recorded. Run does not
	// rerun it, because its effects before the interruption are unknown.
	Skipped Match = "skipped"
	// Unrecorded is a command of another agent's file. If the file lacks the
	// result, Run reruns the command without a comparison. If it lacks the command
	// itself, Run cannot rerun it.
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

// Count returns the number of commands with the match m.
func (r Result) Count(m Match) int {
	n := 0
	for _, c := range r.Commands {
		if c.Match == m {
			n++
		}
	}
	return n
}

// Reproduced reports whether no command diverged or was missing, and the diff, if
// recorded, is equal. Outputs may differ.
func (r Result) Reproduced() bool {
	missing := slices.ContainsFunc(r.Commands, func(c Command) bool { return c.Match == Unrecorded && c.Text == "" })
	return !missing && r.FirstDiverged() == nil && (r.Diff.State == Reproduced || r.Diff.State == NotRecorded)
}

// Run prepares the sandbox, reruns the commands in order and takes the final diff.
// It reports different results in Findings. It returns an error if the sandbox
// cannot be prepared or was lost, or ctx ended; the Result then has the commands
// that were rerun before.
func Run(ctx context.Context, c Config) (Result, error) {
	if c.Repository == nil {
		c.Repository = agent.GitRepository{}
	}
	r := &replayRun{Config: c, Result: Result{Commands: []Command{}, Diff: Diff{State: NotTaken}}}
	err := r.run(ctx)
	return r.Result, err
}

// replayRun is the state of Run.
type replayRun struct {
	Config
	Result
	tree    *worktree.Tree // nil before the repository is opened
	stopped bool           // by StopAtFirstDivergence
	last    env.Result     // of the last command that was rerun
}

func (r *replayRun) run(ctx context.Context) error {
	commands := commandsOf(r.Attempt)
	if r.Tools != nil && r.Tools.Prepare != nil {
		if err := r.Tools.Prepare(ctx, r.Environment); err != nil {
			return orCause(ctx, err)
		}
	}
	// The start-up command precedes the scrub, as in an attempt.
	setup := 0
	for setup < len(commands) && commands[setup].step == 0 {
		setup++
	}
	if err := r.rerunAll(ctx, commands[:setup]); err != nil || r.stopped {
		return err
	}
	var err error
	if r.tree, err = r.openTree(ctx); err != nil {
		return err
	}
	if err := r.rerunAll(ctx, commands[setup:]); err != nil || r.stopped {
		return err
	}
	r.Diff, err = r.diff(ctx, r.tree)
	return err
}

// rerunAll reruns commands in order until one fails or StopAtFirstDivergence stops it.
func (r *replayRun) rerunAll(ctx context.Context, commands []recordedCommand) error {
	for _, cmd := range commands {
		result, err := r.rerun(ctx, cmd)
		if err != nil {
			return fmt.Errorf("step %d: %w", cmd.step, err)
		}
		r.Commands = append(r.Commands, result)
		if r.OnCommand != nil {
			r.OnCommand(result)
		}
		if r.stopped = r.StopAtFirstDivergence && result.Match == Diverged; r.stopped {
			return nil
		}
	}
	return nil
}

// TimeoutFactor multiplies the time limit of commands that did not time out when
// they were recorded, because this machine may be slower than the recording one.
const TimeoutFactor = 4

// rerun reruns one command and compares the results.
func (r *replayRun) rerun(ctx context.Context, cmd recordedCommand) (Command, error) {
	res := Command{Step: cmd.step, Record: cmd.execution.Record, Text: cmd.execution.Command, RecordedDuration: cmd.execution.Duration}
	if cmd.interrupted {
		res.Match, res.Difference = Skipped, "it was interrupted when it was recorded"
		return res, nil
	}
	if cmd.execution.Command == "" && r.Attempt.IsForeign() {
		res.Match, res.Difference = Unrecorded, "the file has its output but not the command"
		return res, nil
	}
	command := r.Command(cmd.execution.Command)
	if !cmd.execution.TimedOut {
		command.Timeout *= TimeoutFactor
	}
	command.Tools = r.Tools.For(&cmd.execution)
	got, err := r.Environment.Execute(ctx, command)
	if err != nil {
		return res, orCause(ctx, err)
	}
	r.last = got
	res.Duration = trajectories.Seconds(got.Duration)
	switch {
	case cmd.unrecorded:
		res.Match, res.Difference = Unrecorded, "the file does not contain its result"
	case r.Attempt.IsForeign():
		res.Finding = CompareImported(cmd.execution, got, r.Ignore)
	default:
		res.Finding = Compare(cmd.execution, got, r.Ignore)
	}
	res.Finding, err = res.CompareTree(ctx, r.tree, cmd.execution.Tree)
	return res, err
}

// orCause returns the cause of ctx if ctx has ended, otherwise err.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// openTree scrubs the repository if Config.Scrub is set, and opens the working tree.
// The state of the files at this time is the base of the final diff.
func (r *replayRun) openTree(ctx context.Context) (*worktree.Tree, error) {
	if r.Scrub {
		_, err := r.Repository.Scrub(ctx, r.Environment)
		if err != nil && !errors.Is(err, worktree.ErrNoRepository) && !errors.Is(err, worktree.ErrNotDisposable) {
			return nil, orCause(ctx, fmt.Errorf("scrub repository: %w", err))
		}
	}
	tree, err := r.Repository.Open(ctx, r.Environment, r.Worktree)
	if err != nil {
		return nil, orCause(ctx, err)
	}
	return tree, nil
}

// recordedCommand is a command of the attempt that Run reruns.
type recordedCommand struct {
	step        int
	execution   trajectories.Execution
	interrupted bool
	unrecorded  bool // the file has no result
}

// commandsOf returns the commands of an attempt in order.
func commandsOf(t *trajectories.Attempt) []recordedCommand {
	var commands []recordedCommand
	for _, execution := range t.SetupExecutions {
		commands = append(commands, recordedCommand{execution: execution})
	}
	step := 0
	for _, e := range t.Entries {
		if e.Cause == trajectories.CauseReply {
			step++
		}
		for _, execution := range e.Executions {
			commands = append(commands, recordedCommand{step: step, execution: execution})
		}
	}
	if command, ok := lastCommand(t); ok {
		commands = append(commands, recordedCommand{step: step, execution: trajectories.Execution{ObservationEntry: -1, Command: command}, unrecorded: true})
	}
	if n := len(commands); n > 0 && t.Import == nil && commands[n-1].execution.ObservationEntry < 0 && wasInterrupted(t.Outcome) {
		commands[n-1].interrupted = true
	}
	return commands
}

// lastCommand returns the command with which another agent submitted. It returns false
// if the file has the output of that command.
func lastCommand(t *trajectories.Attempt) (string, bool) {
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

// containsMarker reports whether a command contains one of agent.SubmitMarkers.
func containsMarker(command string) bool {
	return slices.ContainsFunc(agent.SubmitMarkers, func(m string) bool { return strings.Contains(command, m) })
}

// wasInterrupted reports whether something other than the agent ended the attempt,
// which usually interrupts a command.
func wasInterrupted(out *trajectories.Outcome) bool {
	switch {
	case out == nil:
		return false // a killed process has recorded only completed commands
	case out.Class == trajectories.Limit:
		return out.ExitStatus == "TimeExceeded"
	}
	return out.Class == trajectories.Interrupted || out.Class == trajectories.Environment
}
