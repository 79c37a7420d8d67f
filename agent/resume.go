package agent

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// ResumeState is the state that an attempt resumes from: where it was
// interrupted, or the point of another attempt where it branches off.
// ReadResumeState reads it from records.
type ResumeState struct {
	// Attempt has the conversation up to LastRecord, and the totals of all
	// records. The attempt first runs the remaining actions of the last reply.
	// If there are no entries, it starts from the beginning, and earlier
	// spending still counts.
	Attempt *trajectories.Attempt
	// LastRecord is the last record to keep. The attempt discards later records
	// of the journal.
	LastRecord int
	// Executions are the commands that led to the sandbox's state, in order.
	Executions []ExecutedCommand
	// Idle is the time since the start in which no session was running.
	Idle time.Duration
	// SandboxExit is why the sandbox exited during the next command of the last
	// reply. That command is not run again, and the model is told. Empty if no
	// command was interrupted that way.
	SandboxExit string
	// Submitted reports that the attempt ended with a submission. No action of
	// the last reply is left, and the attempt continues only with a new task.
	Submitted bool
	// EndedByFormatErrors reports that Config.MaxFormatErrors ended the attempt.
	// The model is told about the last one, and the count starts again.
	EndedByFormatErrors bool
	// Rebuild restores a fresh sandbox to its earlier state, after the start-up
	// command and the scrub. Its time does not count. nil leaves the sandbox as
	// it is. tree is nil if the repository is not used.
	Rebuild func(ctx context.Context, sandbox env.Environment, tree *worktree.Tree) error
}

// ExecutedCommand is a command that an earlier session ran.
type ExecutedCommand struct {
	Step int // number of the reply with the command, from 1
	trajectories.Execution
}

// ReadResumeState reads the records of a journal and discards those after the point
// from which the attempt is resumed (see trajectories.Attempt.ResumePoint).
func ReadResumeState(records iter.Seq2[trajectories.Record, error]) (*ResumeState, error) {
	a, err := trajectories.OmitResponses.Fold(records)
	if err != nil {
		return nil, fmt.Errorf("read resume state: %w", err)
	}
	s := &ResumeState{Attempt: a, LastRecord: a.ResumePoint(), SandboxExit: sandboxExitReason(a), Idle: a.Totals.IdleUntil(time.Now())}
	if out := a.Outcome; out != nil {
		s.Submitted = out.Class == trajectories.Submitted
		s.EndedByFormatErrors = out.ExitStatus == ErrRepeatedFormatError.Error()
	}
	a.Rewind(s.LastRecord)
	step := 0
	for _, e := range a.Entries {
		if e.Cause == trajectories.CauseReply {
			step++
		}
		for _, x := range e.Executions {
			s.Executions = append(s.Executions, ExecutedCommand{step, x})
		}
	}
	return s, nil
}

// sandboxExitReason returns why the sandbox of an attempt exited during its
// last command; empty if it did not.
func sandboxExitReason(t *trajectories.Attempt) string {
	out, reply := t.Outcome, t.LastReply()
	if out == nil || reply == nil || out.Class != trajectories.Environment || out.ExitStatus != string(env.ContainerDied) {
		return ""
	}
	executions := reply.Executions
	if n := len(executions); n == 0 || executions[n-1].ObservationEntry >= 0 || executions[n-1].ExitCode >= 0 {
		return "" // the last command ended
	}
	_, reason, found := strings.Cut(out.Error, out.ExitStatus+": ")
	if !found {
		reason = "the sandbox ended"
	}
	return reason
}

// Total returns what the attempt has spent so far, including its subagents.
func (s *ResumeState) Total() Spending { return s.Attempt.Totals.Spent() }

// ToolCalls returns the mini-tool calls of the commands that led to the sandbox's
// state, in the order in which they ended.
func (s *ResumeState) ToolCalls() (all []trajectories.ToolCall) {
	add := func(executions []trajectories.Execution) {
		for _, x := range executions {
			all = append(all, x.ToolCalls...)
		}
	}
	add(s.Attempt.SetupExecutions)
	for _, e := range s.Attempt.Entries {
		add(e.Executions)
	}
	return all
}

// UsedSubagents reports that some of the commands started subagents. A subagent's
// commands are in its own journal, so running Executions again does not restore the
// sandbox.
func (s *ResumeState) UsedSubagents() bool {
	return slices.ContainsFunc(s.ToolCalls(), func(c trajectories.ToolCall) bool { return len(c.Children()) > 0 })
}

// startState returns the state of the files at the start; nil if it is not recorded.
func (s *ResumeState) startState() *worktree.State {
	start := s.Attempt.StartState
	if start == nil {
		return nil
	}
	return &worktree.State{Base: start.Base, Tree: start.Tree, Patch: start.Patch, Ignored: start.Ignored, LeftOut: start.OtherFiles, Submodules: start.Submodules}
}

// AddTo adds the earlier sessions to the outcome of a session that failed before its
// agent started: it sets Start, Idle and Times, and adds the spending. A nil ResumeState
// changes nothing.
func (s *ResumeState) AddTo(out *trajectories.Outcome) {
	if s == nil {
		return
	}
	totals := &s.Attempt.Totals
	out.Start, out.Idle, out.Times = totals.Start, trajectories.Seconds(s.Idle), totals.Times
	total := s.Total()
	out.Steps, out.Usage, out.Cost = out.Steps+total.Steps, out.Usage.Add(total.Usage), out.Cost+total.Cost
	out.ChildSteps += totals.Children.Steps
}

// diffWarning is part of every warning about a diff.
const diffWarning = "working diff"

// noDiffWarning ends the warning about a missing repository.
const noDiffWarning = "patch is empty unless the agent writes one"

// persistentWarnings drops the warnings about the diff, which the resumed
// attempt takes again.
func persistentWarnings(warnings []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool {
		return strings.Contains(w, diffWarning) || strings.HasSuffix(w, noDiffWarning)
	})
}

// restore sets r to the state to resume from, or to that of a new attempt.
func (r *run) restore() {
	s := r.Resume
	if s == nil {
		r.attempt = &trajectories.Attempt{}
	} else {
		r.attempt = s.Attempt
	}
	r.attempt.Omit = trajectories.ForTraining &^ trajectories.OmitTokens // the next record keeps those of the last
	if s == nil {
		return
	}
	r.warnings = persistentWarnings(r.attempt.Totals.Warnings)
	r.toolAttempt.startedCalls = r.attempt.Totals.Children.Steps
	r.clock.previous = r.attempt.Totals.ActiveTime()
	if r.attempt.Limits != nil {
		r.limits = *r.attempt.Limits
	}
	if s.EndedByFormatErrors {
		r.formatErrorsSince = s.LastRecord
	}
	lastCompaction := 0
	if n := len(r.attempt.Compactions); n > 0 {
		lastCompaction = r.attempt.Compactions[n-1].Record
	}
	shown := len(r.attempt.Conversation().Messages()) - len(r.attempt.Entries) // at a later entry: the number of messages that compactions have removed
	replies := 0
	for i, e := range r.attempt.Entries {
		if e.Cause == trajectories.CauseReply {
			replies++
		}
		r.restoreCommandSummaries(r.attempt.Entries, i, replies)
		r.imageCount += len(e.Images)
		for _, img := range e.Images {
			r.imageBytes += len(img.Data)
		}
		r.patchReturned = r.patchReturned || e.Cause == trajectories.CauseMalformedPatch
		if e.Call != nil && e.Record > lastCompaction {
			r.updateCount(lastUsage(*e.Call), shown+i+1)
		}
	}
}

// isResumed reports whether there is a conversation to resume.
func (r *run) isResumed() bool { return r.Resume != nil && len(r.Resume.Attempt.Entries) > 0 }

// rebuild restores the files of the sandbox. If that fails, no diff is taken,
// because the files do not reflect the attempt.
func (r *run) rebuild(ctx context.Context) error {
	if !r.isResumed() || r.Resume.Rebuild == nil {
		return nil
	}
	start := time.Now()
	err := r.Resume.Rebuild(ctx, r.Environment, r.tree)
	r.attempt.Totals.Times.SandboxStart += trajectories.Seconds(time.Since(start))
	if err != nil {
		r.tree = nil
		return causeOrErr(ctx, err)
	}
	return nil
}

// resumeLastReply runs the remaining actions of the last reply. Parsing the
// reply again gives the same actions.
func (r *run) resumeLastReply(ctx context.Context) error {
	reply := r.attempt.LastReply()
	if reply == nil || r.attempt.IsAnswered() {
		return nil
	}
	results := r.attempt.Results()
	parsed := model.Reply{Message: reply.Message.Message}
	if reply.Call != nil {
		parsed.FinishReason = reply.Call.Finish
	}
	actions, err := r.accept(r.protocol.Parse(parsed, r.steps()), parsed.FinishReason)
	if err != nil {
		return err
	}
	actions = actions[min(results, len(actions)):]
	if r.Resume.SandboxExit != "" && len(actions) > 0 {
		f, err := r.sandboxExitFeedback(actions[0])
		if err != nil {
			return err
		}
		return r.skipActions(actions, f)
	}
	if r.Resume.Submitted {
		if len(actions) > 0 {
			r.submitAction = &actions[0]
		}
		return r.skipActions(actions, &Submitted{Source: trajectories.SourceWorktree})
	}
	return r.runActions(ctx, actions)
}

// sandboxExitFeedback tells the model that the sandbox exited during a command,
// which is not run again.
func (r *run) sandboxExitFeedback(a protocol.Action) (*Feedback, error) {
	text, err := r.renderResult(env.Result{ExitCode: -1}, fmt.Sprintf(
		"The sandbox ended while the command ran: %s. The files are as the commands before it left them, in a fresh sandbox. "+
			"The command was not run again.", r.Resume.SandboxExit))
	if err != nil {
		return nil, err
	}
	return newFeedback("ContainerDied", trajectories.CauseObservation, r.protocol.ResultMessage(a, text)), nil
}
