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

// Config is what Run needs. Environment, Transcript and Command are required.
type Config struct {
	// Environment is a fresh sandbox, as the attempt had one. Closing it is the
	// caller's.
	Environment env.Environment
	Transcript  *trajectories.Transcript
	// Command is how the attempt had the text of an action run: within which
	// time, and keeping how much of its output.
	Command func(script string) env.Command
	// Tools say how commands ask for tools; nil where the attempt had none.
	Tools *Tools
	// Scrub says that the repository was made honest before the attempt.
	Scrub    bool
	Worktree worktree.Config
	// Ignore is noise of the user's own.
	Ignore Ignore
	// StopAtFirst leaves the rest away after the first command that diverges.
	StopAtFirst bool
	// Watch is told of each command when it is done; nil tells nobody.
	Watch func(Command)
}

// Command is a recorded command, and what came of it.
type Command struct {
	// Step is the model call that asked for it, from 1; 0 is the start-up command.
	Step   int    `json:"step"`
	Record int    `json:"record"` // of its execution in the journal
	Text   string `json:"command"`
	Finding
	Recorded trajectories.Seconds `json:"recorded_seconds"`
	Took     trajectories.Seconds `json:"seconds"`
}

// What is not compared.
const (
	// Skipped is the match of a command that was cut short when it was recorded:
	// how far it had come is not known, and it is not run.
	Skipped Match = "skipped"
	// Unrecorded is that of a command of another agent whose file does not say what
	// it did: it is run. Or of one that is not in the file itself, of which only the
	// output is: nothing can be run.
	Unrecorded Match = "not recorded"
)

// Result is what a replay came to.
type Result struct {
	Commands []Command `json:"commands"`
	Diff     Diff      `json:"diff"`
}

// First is the first command that diverged; nil where none did.
func (r Result) First() *Command {
	for i, c := range r.Commands {
		if c.Match == Diverged {
			return &r.Commands[i]
		}
	}
	return nil
}

// Count is how many commands matched so.
func (r Result) Count(m Match) int {
	n := 0
	for _, c := range r.Commands {
		if c.Match == m {
			n++
		}
	}
	return n
}

// Reproduced says that what matters happened again: no command diverged or could
// not be run, and the diff, where one is recorded, is the same. Outputs may differ.
func (r Result) Reproduced() bool {
	lost := slices.ContainsFunc(r.Commands, func(c Command) bool { return c.Match == Unrecorded && c.Text == "" })
	return !lost && r.First() == nil && (r.Diff.State == Reproduced || r.Diff.State == NotRecorded)
}

// Run makes the sandbox what the attempt's was, runs its commands in their order,
// and takes the diff at the end. Commands that do something else than they did
// are findings; an error says that the sandbox was lost or ctx ended, and comes
// with what was found until then.
func Run(ctx context.Context, c Config) (Result, error) {
	p := &pass{Config: c, Result: Result{Commands: []Command{}, Diff: Diff{State: NotTaken}}}
	err := p.run(ctx)
	return p.Result, err
}

// pass is one on its way.
type pass struct {
	Config
	Result
	tree    *worktree.Tree // nil before the repository is open
	stopped bool           // at the first command that diverged
	last    env.Result     // of the newest command
}

func (p *pass) run(ctx context.Context) error {
	todo := commandsOf(p.Transcript)
	if p.Tools != nil && p.Tools.Prepare != nil {
		if err := p.Tools.Prepare(ctx, p.Environment); err != nil {
			return orCause(ctx, err)
		}
	}
	// The start-up command comes before the scrub, as in an attempt.
	setup := 0
	for setup < len(todo) && todo[setup].step == 0 {
		setup++
	}
	if err := p.all(ctx, todo[:setup]); err != nil || p.stopped {
		return err
	}
	var err error
	if p.tree, err = p.open(ctx); err != nil {
		return err
	}
	if err := p.all(ctx, todo[setup:]); err != nil || p.stopped {
		return err
	}
	p.Diff, err = p.diff(ctx, p.tree)
	return err
}

// all runs commands one after the other.
func (p *pass) all(ctx context.Context, todo []recordedCommand) error {
	for _, r := range todo {
		done, err := p.again(ctx, r)
		if err != nil {
			return fmt.Errorf("step %d: %w", r.step, err)
		}
		p.Commands = append(p.Commands, done)
		if p.Watch != nil {
			p.Watch(done)
		}
		if p.stopped = p.StopAtFirst && done.Match == Diverged; p.stopped {
			return nil
		}
	}
	return nil
}

// Patience is how many times as long as its limit a command may take that came to
// its end when it was recorded: a machine that is busy is no difference.
const Patience = 4

// again runs one command.
func (p *pass) again(ctx context.Context, r recordedCommand) (Command, error) {
	done := Command{Step: r.step, Record: r.ran.Record, Text: r.ran.Command, Recorded: r.ran.Duration}
	if r.cutShort {
		done.Match, done.Difference = Skipped, "it was cut short when it was recorded"
		return done, nil
	}
	if r.ran.Command == "" && p.Transcript.Foreign() {
		done.Match, done.Difference = Unrecorded, "the file has its output, and not the command"
		return done, nil
	}
	c := p.Command(r.ran.Command)
	if !r.ran.TimedOut {
		c.Timeout *= Patience
	}
	c.Tools = p.Tools.For(&r.ran)
	now, err := p.Environment.Execute(ctx, c)
	if err != nil {
		return done, orCause(ctx, err)
	}
	p.last = now
	done.Took = trajectories.Seconds(now.Duration)
	switch {
	case r.unrecorded:
		done.Match, done.Difference = Unrecorded, "the file does not say what it did"
	case p.Transcript.Foreign():
		done.Finding = ExamineImported(r.ran.Execution, now, p.Ignore)
	default:
		done.Finding = Examine(r.ran.Execution, now, p.Ignore)
	}
	done.Finding, err = done.WithTree(ctx, p.tree, r.ran.Tree)
	return done, err
}

// orCause is why ctx ended, if it did; else err.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// open makes the repository honest, where it was, and remembers what diffs are
// against.
func (p *pass) open(ctx context.Context) (*worktree.Tree, error) {
	if p.Scrub {
		_, err := worktree.Scrub(ctx, p.Environment)
		if err != nil && !errors.Is(err, worktree.ErrNoRepository) && !errors.Is(err, worktree.ErrNotDisposable) {
			return nil, orCause(ctx, fmt.Errorf("make the repository honest: %w", err))
		}
	}
	tree, err := worktree.Open(ctx, p.Environment, p.Worktree)
	if err != nil {
		return nil, orCause(ctx, err)
	}
	return tree, nil
}

// recordedCommand is one to be run again.
type recordedCommand struct {
	step       int
	ran        trajectories.Ran
	cutShort   bool
	unrecorded bool // that it was run is known, and not what it did
}

// commandsOf are those of an attempt, in their order.
func commandsOf(t *trajectories.Transcript) []recordedCommand {
	var all []recordedCommand
	for _, ran := range t.Setup {
		all = append(all, recordedCommand{ran: ran})
	}
	step := 0
	for _, e := range t.Entries {
		if e.Cause == trajectories.CauseReply {
			step++
		}
		for _, ran := range e.Ran {
			all = append(all, recordedCommand{step: step, ran: ran})
		}
	}
	if command, ok := lastCommand(t); ok {
		all = append(all, recordedCommand{step: step, ran: trajectories.Ran{Told: -1, Execution: trajectories.Execution{Command: command}}, unrecorded: true})
	}
	if n := len(all); n > 0 && t.Import == nil && all[n-1].ran.Told < 0 && wasStopped(t.Outcome) {
		all[n-1].cutShort = true
	}
	return all
}

// lastCommand is the one with which another agent handed in its work, where its
// file does not have what it printed, beyond the submission.
func lastCommand(t *trajectories.Transcript) (string, bool) {
	if !t.Foreign() || t.Outcome == nil || t.Outcome.Class != trajectories.Submitted {
		return "", false
	}
	for _, e := range slices.Backward(t.Entries) {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		if n := len(e.Ran); n+1 == len(e.Actions) && marked(e.Actions[n]) {
			return e.Actions[n], true
		}
		break
	}
	return "", false
}

// marked says that a command names a marker of those that hand in the work.
func marked(command string) bool {
	return slices.ContainsFunc(agent.Markers, func(m string) bool { return strings.Contains(command, m) })
}

// wasStopped says that an attempt was ended by somebody else than its agent, as a
// rule in mid-command.
func wasStopped(out *trajectories.Outcome) bool {
	switch {
	case out == nil:
		return false // what is on record was over
	case out.Class == trajectories.Limit:
		return out.ExitStatus == "TimeExceeded"
	}
	return out.Class == trajectories.Interrupted || out.Class == trajectories.Environment
}
