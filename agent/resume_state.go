package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// ResumeState is the state that an attempt resumes from: where it was
// interrupted, or the point of another attempt where it branches off.
// ReadResumeState reads it from records.
type ResumeState struct {
	Header trajectories.Header
	// Entries are the conversation so far. The attempt first runs the remaining
	// actions of the last reply. If there are no entries, the attempt starts
	// from the beginning, and earlier spending still counts.
	Entries []trajectories.Entry
	// Compactions are the compactions in effect, which replace some of the
	// entries in prompts.
	Compactions []trajectories.RecordedCompaction
	// LastRecord is the last record to keep. The attempt discards later records
	// of the journal.
	LastRecord int
	// Executions are the commands that led to the sandbox's state, in order.
	Executions []ExecutedCommand
	// ToolCalls are the mini-tool calls of these commands, in the order in
	// which they ended.
	ToolCalls []trajectories.ToolCall
	// UsedSubagents reports that some of these commands started subagents. A
	// subagent's commands are in its own journal, so running Executions again
	// does not restore the sandbox.
	UsedSubagents bool
	// Imported reports that the records were imported from another agent.
	Imported bool
	// Steps, Usage and Cost count all calls, including discarded ones, because
	// they were made. Calls for summaries are no steps. Calls inherited from
	// the attempt that this one branches off from count as steps only.
	// ActiveTime is the time that counts against the time limit.
	Steps      int
	Usage      model.Usage
	Cost       model.Cost
	ActiveTime time.Duration
	// ChildSpending is what subagents spent. Steps, Usage and Cost do not include
	// it.
	ChildSpending Spending
	// Start is when the attempt started, Idle the time since then in which no
	// session was running.
	Start    time.Time
	Idle     time.Duration
	Times    trajectories.Times
	Warnings []string
	// Limits are the limits as last raised by the user; nil if never raised.
	Limits *Limits
	// StartState is the state of the files at the start; nil if it is not recorded.
	StartState *worktree.State
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

// AddTo adds the earlier sessions to the outcome of a session: it sets Start,
// Idle and Times, and adds the spending. A nil ResumeState changes nothing.
func (s *ResumeState) AddTo(out *trajectories.Outcome) {
	if s == nil {
		return
	}
	out.Start, out.Idle, out.Times = s.Start, trajectories.Seconds(s.Idle), s.Times
	total := s.Total()
	out.Steps, out.Usage, out.Cost = out.Steps+total.Steps, out.Usage.Add(total.Usage), out.Cost+total.Cost
	out.ChildSteps += s.ChildSpending.Steps
}

// Total returns what the attempt has spent so far, including its subagents.
func (s *ResumeState) Total() Spending {
	return Spending{s.Steps, s.Usage, s.Cost}.Add(s.ChildSpending)
}

// ExecutedCommand is a command that an earlier session ran.
type ExecutedCommand struct {
	Step int // number of the reply with the command, from 1
	trajectories.RecordedExecution
}

// ReadResumeState finds the newest point in the records of a journal from which
// the attempt can be resumed without running a command twice in one sandbox. It
// discards a call without a recorded reply, a command whose output was not sent
// to the model, and messages saying only that the attempt was over. The attempt
// runs the actions of the discarded commands and messages when it is resumed.
func ReadResumeState(records iter.Seq2[trajectories.Record, error]) (*ResumeState, error) {
	s := &ResumeState{LastRecord: 1} // the header
	t, err := trajectories.BuildTranscript(s.accumulate(records))
	if err != nil {
		return nil, fmt.Errorf("read resume state: %w", err)
	}
	s.Header, s.Imported = t.Header, t.IsForeign()
	s.SandboxExit = sandboxExitReason(t)
	s.Submitted = t.Outcome != nil && t.Outcome.Class == trajectories.Submitted
	s.EndedByFormatErrors = t.Outcome != nil && t.Outcome.ExitStatus == ErrRepeatedFormatError.Error()
	s.Entries = t.Entries[:resumableEntries(t.Entries)]
	if n := len(s.Entries); n > 0 {
		s.LastRecord = s.Entries[n-1].Record
	}
	for _, c := range t.Compactions {
		// A compaction before a call without a reply is discarded too.
		if len(s.Entries) == len(t.Entries) || c.Record < s.LastRecord {
			s.LastRecord, s.Compactions = max(s.LastRecord, c.Record), append(s.Compactions, c)
		}
	}
	for _, x := range t.SetupExecutions {
		s.addToolCalls(x)
	}
	step := 0
	for _, e := range s.Entries {
		if e.Cause == trajectories.CauseReply {
			step++
		}
		for _, x := range e.Executions {
			if x.Record < s.LastRecord {
				s.Executions = append(s.Executions, ExecutedCommand{step, x})
				s.addToolCalls(x)
			}
		}
	}
	return s, nil
}

// addToolCalls adds the tool calls of a command.
func (s *ResumeState) addToolCalls(x trajectories.RecordedExecution) {
	for _, c := range x.ToolCalls {
		s.ToolCalls = append(s.ToolCalls, c.ToolCall)
		s.UsedSubagents = s.UsedSubagents || len(c.Children()) > 0
	}
}

// resumableEntries returns how many entries to keep: all complete steps and, of
// an incomplete last step, the reply and the results up to the first missing
// one.
func resumableEntries(entries []trajectories.Entry) int {
	reply := lastReplyIndex(entries)
	if reply < 0 {
		if n := len(entries); n > 0 && entries[n-1].Role == model.User {
			return n
		}
		return 0 // the attempt sends the prompts again
	}
	answers := entries[reply+1:]
	results := countResults(answers)
	// A message that is not a result ends the step once every call has a
	// result. CauseNotRun messages say only that the attempt was over.
	if results < len(answers) && answers[results].Cause != trajectories.CauseNotRun && len(answers) >= wantedResults(entries[reply]) {
		return len(entries)
	}
	return reply + 1 + results
}

func lastReplyIndex(entries []trajectories.Entry) int {
	for i, e := range slices.Backward(entries) {
		if e.Cause == trajectories.CauseReply {
			return i
		}
	}
	return -1
}

// countResults returns the number of results before the first other message
// among the answers to a reply.
func countResults(answers []trajectories.Entry) int {
	n := slices.IndexFunc(answers, func(e trajectories.Entry) bool { return e.Cause != trajectories.CauseObservation })
	if n < 0 {
		return len(answers)
	}
	return n
}

// wantedResults returns how many results complete a reply.
func wantedResults(reply trajectories.Entry) int { return max(1, len(reply.ToolCalls)) }

// accumulate yields the records unchanged and adds up their totals.
func (s *ResumeState) accumulate(records iter.Seq2[trajectories.Record, error]) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		var period workPeriod
		for r, err := range records {
			if err == nil {
				err = s.addRecord(&period, r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		s.ActiveTime += period.duration() // of the newest period
		if !period.lastRecord.IsZero() {
			s.Idle += max(0, time.Since(period.lastRecord))
		}
	}
}

// workPeriod is a period in which the agent worked without a break.
type workPeriod struct {
	start, end time.Time // from the start of the first call or command to the end of the last
	lastRecord time.Time // time of the last record of any type
	waited     time.Duration
}

func (w *workPeriod) duration() time.Duration { return max(0, w.end.Sub(w.start)-w.waited) }

// extend adds work of the given duration that ended at until. waited is the
// part of the duration spent waiting for the provider.
func (w *workPeriod) extend(until time.Time, duration, waited trajectories.Seconds) {
	if w.start.IsZero() {
		w.start = until.Add(-max(0, time.Duration(duration)))
	}
	w.end, w.waited = until, w.waited+max(0, time.Duration(waited))
}

func (s *ResumeState) addRecord(period *workPeriod, r trajectories.Record) error {
	var d struct { // fields of several record types
		Usage    model.Usage          `json:"usage"`
		Cost     model.Cost           `json:"cost"`
		Duration trajectories.Seconds `json:"duration"`
		Waited   trajectories.Seconds `json:"waited"`
		Times    trajectories.Times   `json:"times"`
		Warnings []string             `json:"warnings"`
	}
	switch r.Type {
	case trajectories.TypeCall, trajectories.TypeSummary, trajectories.TypeChildCall, trajectories.TypeExecution, trajectories.TypeScrub, trajectories.TypeReplay,
		trajectories.TypePatchCheck, trajectories.TypeDiff, trajectories.TypeOutcome:
		if err := json.Unmarshal(r.Data, &d); err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
	}
	if !s.Header.IsInherited(r.ID) { // the time of inherited records belongs to the other attempt
		s.Times.Add(r.Type, d.Duration)
	}
	switch r.Type {
	case trajectories.TypeHeader:
		s.Start = r.Time
		var err error
		if s.Header, err = trajectories.DecodeHeader(r); err != nil {
			return err
		}
	case trajectories.TypeResume:
		s.ActiveTime += period.duration()
		s.Idle += max(0, r.Time.Sub(period.lastRecord))
		*period = workPeriod{}
	case trajectories.TypeReplay: // rebuilding a sandbox does not count
		period.start, period.end = r.Time, r.Time
	case trajectories.TypeStartState:
		var start trajectories.StartState
		if err := json.Unmarshal(r.Data, &start); err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
		s.StartState = &worktree.State{Base: start.Base, Tree: start.Tree, Patch: start.Patch, Ignored: start.Ignored, LeftOut: start.OtherFiles, Submodules: start.Submodules}
	case trajectories.TypeLimits:
		s.Limits = &Limits{}
		if err := json.Unmarshal(r.Data, s.Limits); err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
	case trajectories.TypeOutcome:
		s.Warnings = persistentWarnings(d.Warnings)
		if d.Times != (trajectories.Times{}) { // an outcome's times include the sandbox's start
			s.Times = d.Times
		}
	case trajectories.TypeDiff: // taken after the end of the attempt
	case trajectories.TypeCall, trajectories.TypeSummary:
		if r.Type == trajectories.TypeCall {
			s.Steps++
		}
		if !s.Header.IsInherited(r.ID) { // the other attempt paid for inherited calls
			s.Usage, s.Cost = s.Usage.Add(d.Usage), s.Cost+d.Cost
		}
		period.extend(r.Time, d.Duration, d.Waited)
	case trajectories.TypeChildCall:
		call := Spending{}
		if trajectories.IsStep(r) {
			call.Steps = 1
		}
		if !s.Header.IsInherited(r.ID) {
			call.Usage, call.Cost = d.Usage, d.Cost
		}
		s.ChildSpending = s.ChildSpending.Add(call)
		period.extend(r.Time, d.Duration, d.Waited)
	default:
		period.extend(r.Time, d.Duration, 0)
	}
	period.lastRecord = r.Time
	if s.Header.IsInherited(r.ID) { // recorded before this attempt started
		period.lastRecord = s.Start
		if r.ID == s.Header.Origin.Record {
			s.ActiveTime, *period = s.ActiveTime+period.duration(), workPeriod{lastRecord: s.Start}
		}
	}
	return nil
}

// diffWarning is part of every warning about a diff.
const diffWarning = "working diff"

// noDiffWarning ends the warning about a missing repository.
const noDiffWarning = "patch is empty unless the agent writes one"

// persistentWarnings drops the warnings about the diff, which the resumed
// attempt takes again.
func persistentWarnings(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool {
		return strings.Contains(w, diffWarning) || strings.HasSuffix(w, noDiffWarning)
	})
}

// restore sets r to the state to resume from.
func (r *run) restore() {
	s := r.Resume
	if s == nil {
		return
	}
	r.steps, r.usage, r.cost, r.warnings = s.Steps, s.Usage, s.Cost, slices.Clone(s.Warnings)
	r.toolAttempt.spent, r.toolAttempt.startedCalls = s.ChildSpending, s.ChildSpending.Steps
	r.clock.previous = s.ActiveTime
	if s.Limits != nil {
		r.limits = *s.Limits
	}
	compactions := s.Compactions
	for i, e := range s.Entries {
		compactions = r.restoreCompactions(compactions, e.Record)
		r.addToHistory(e.Record, e.Message)
		r.restoreCommandSummaries(s.Entries, i)
		r.imageCount += len(e.Images)
		for _, img := range e.Images {
			r.imageBytes += len(img.Data)
		}
		switch next := i + 1; {
		case e.Cause == trajectories.CauseMalformedPatch:
			r.patchReturned = true
		case e.Cause != trajectories.CauseReply:
		case next < len(s.Entries) && s.Entries[next].Cause == trajectories.CauseFormatError:
			r.formatErrors++
		case next < len(s.Entries):
			r.formatErrors = 0
		}
		if e.Call != nil {
			r.updateCount(lastUsage(*e.Call), len(r.history.Messages()))
		}
	}
	if s.EndedByFormatErrors {
		r.formatErrors = 0
	}
	r.restoreCompactions(compactions, math.MaxInt)
}

// restoreCompactions applies the compactions recorded before the given record,
// and returns the others.
func (r *run) restoreCompactions(compactions []trajectories.RecordedCompaction, before int) []trajectories.RecordedCompaction {
	for len(compactions) > 0 && compactions[0].Record < before {
		r.history.Compact(compactions[0].Record, compactions[0].Compaction)
		r.stillTooLong = compactions[0].TokensAfter > r.cfg.compactionTokens()
		r.counted, compactions = tokenCount{}, compactions[1:]
	}
	return compactions
}

// lastUsage returns the usage of the call's last request, the one that was
// answered; without recorded requests, that of the call.
func lastUsage(c trajectories.Call) model.Usage {
	n := len(c.Requests)
	switch {
	case n == 0:
		return c.Usage
	case c.Requests[n-1].Usage == nil:
		return model.Usage{}
	}
	return *c.Requests[n-1].Usage
}

// totalTimes returns a session's times plus those of earlier sessions.
func (s *ResumeState) totalTimes(session trajectories.Times) trajectories.Times {
	if s == nil {
		return session
	}
	return trajectories.Times{
		SandboxStart: session.SandboxStart + s.Times.SandboxStart, Scrub: session.Scrub + s.Times.Scrub, Model: session.Model + s.Times.Model,
		Commands: session.Commands + s.Times.Commands, Diff: session.Diff + s.Times.Diff,
	}
}
