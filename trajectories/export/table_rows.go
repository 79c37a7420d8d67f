package export

import (
	"math"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// sums are the numbers of attempts that are added up for an instance.
type sums struct {
	steps, replies, patchBytes int64
	usage                      model.Usage
	cost                       model.Cost
	seconds                    float64
}

func (s *sums) add(o sums) {
	s.steps += o.steps
	s.replies += o.replies
	s.patchBytes += o.patchBytes
	s.usage = s.usage.Add(o.usage)
	s.cost += o.cost
	s.seconds += o.seconds
}

func sumColumns[T any](of func(T) sums) []tableColumn[T] {
	return []tableColumn[T]{
		{column{name: "steps", kind: intKind}, func(v T) any { return of(v).steps }},
		{column{name: "replies", kind: intKind}, func(v T) any { return of(v).replies }},
		{column{name: "input_tokens", kind: intKind}, func(v T) any { return of(v).usage.Prompt }},
		{column{name: "cached_tokens", kind: intKind}, func(v T) any { return of(v).usage.CacheRead }},
		{column{name: "output_tokens", kind: intKind}, func(v T) any { return of(v).usage.Completion }},
		{column{name: "cost", kind: floatKind}, func(v T) any { return costOrNull(of(v).cost, of(v).usage) }},
		{column{name: "unpriced_calls", kind: intKind}, func(v T) any { return of(v).usage.Unpriced }},
		{column{name: "seconds", kind: floatKind}, func(v T) any { return decimal(of(v).seconds) }},
		{column{name: "patch_bytes", kind: intKind}, func(v T) any { return of(v).patchBytes }},
	}
}

// costOrNull returns nil if the cost is not known.
func costOrNull(c model.Cost, u model.Usage) any {
	if known := c.IfKnown(u); known != nil && !math.IsInf(float64(*known), 0) && !math.IsNaN(float64(*known)) {
		return decimal(float64(*known))
	}
	return nil
}

// attemptRow is an attempt with its steps.
type attemptRow struct {
	*Item
	outcome trajectories.Outcome // Class is empty if the attempt has not ended
	sums
	steps []*stepRow
}

// newAttemptRow adds up the calls of an attempt that has not ended.
func newAttemptRow(item *Item) *attemptRow {
	a := &attemptRow{Item: item, steps: stepsOf(item)}
	a.replies = int64(len(a.steps))
	if item.Outcome == nil {
		for _, s := range a.steps {
			a.outcome.Steps++
			a.outcome.Usage, a.outcome.Cost = a.outcome.Usage.Add(s.usage), a.outcome.Cost+s.cost
		}
		for _, c := range item.FailedCalls {
			a.outcome.Usage, a.outcome.Cost = a.outcome.Usage.Add(c.Usage), a.outcome.Cost+c.Cost
		}
		if n := len(item.Entries); n > 0 {
			a.outcome.Start, a.outcome.End = item.Entries[0].Time, item.Entries[n-1].Time
		}
	} else {
		a.outcome = *item.Outcome
	}
	a.sums.steps, a.usage, a.cost = int64(a.outcome.Steps), a.outcome.Usage, a.outcome.Cost
	a.seconds, a.patchBytes = a.outcome.ActiveDuration().Seconds(), int64(len(a.outcome.Submission))
	return a
}

func attemptColumns() []tableColumn[*attemptRow] {
	columns := append([]tableColumn[*attemptRow]{
		{column{name: "run"}, func(a *attemptRow) any { return orNull(a.source.Run) }},
		{column{name: "instance_id"}, func(a *attemptRow) any { return a.InstanceID }},
		{column{name: "repo"}, func(a *attemptRow) any { return orNull(a.Repo) }},
		{column{name: "attempt", kind: intKind}, func(a *attemptRow) any { return int64(a.Attempt) }},
		{column{name: "repetition", kind: intKind}, func(a *attemptRow) any { return int64(a.Repetition) }},
		{column{name: "selected", kind: boolKind}, func(a *attemptRow) any { return a.Selected }},
		{column{name: "model"}, func(a *attemptRow) any { return orNull(a.Header.ModelName) }},
		{column{name: "class"}, func(a *attemptRow) any { return orNull(string(a.outcome.Class)) }},
		{column{name: "exit_status"}, func(a *attemptRow) any { return orNull(a.outcome.ExitStatus) }},
		{column{name: "error"}, func(a *attemptRow) any { return orNull(a.outcome.Error) }},
		{column{name: "verdict"}, func(a *attemptRow) any { return orNull(a.Verdict) }},
		{column{name: "reward", kind: floatKind}, func(a *attemptRow) any { return a.rewardOrNull() }},
		{column{name: "flags"}, func(a *attemptRow) any { return orNull(strings.Join(a.Flags, " ")) }},
		{column{name: "autosubmitted", kind: boolKind}, func(a *attemptRow) any { return a.autosubmitted() }},
	}, sumColumns(func(a *attemptRow) sums { return a.sums })...)
	for _, phase := range []struct {
		name string
		of   func(trajectories.Times) trajectories.Seconds
	}{
		{"sandbox_seconds", func(t trajectories.Times) trajectories.Seconds { return t.SandboxStart }},
		{"scrub_seconds", func(t trajectories.Times) trajectories.Seconds { return t.Scrub }},
		{"model_seconds", func(t trajectories.Times) trajectories.Seconds { return t.Model }},
		{"command_seconds", func(t trajectories.Times) trajectories.Seconds { return t.Commands }},
		{"diff_seconds", func(t trajectories.Times) trajectories.Seconds { return t.Diff }},
	} {
		columns = append(columns, tableColumn[*attemptRow]{column{name: phase.name, kind: floatKind}, func(a *attemptRow) any {
			if a.outcome.Times == (trajectories.Times{}) {
				return nil
			}
			return seconds(phase.of(a.outcome.Times))
		}})
	}
	return append(columns,
		tableColumn[*attemptRow]{column{name: "start", kind: timeKind}, func(a *attemptRow) any { return orNullTime(a.outcome.Start) }},
		tableColumn[*attemptRow]{column{name: "end", kind: timeKind}, func(a *attemptRow) any { return orNullTime(a.outcome.End) }},
		tableColumn[*attemptRow]{column{name: "journal_sha256"}, func(a *attemptRow) any { return a.SHA256 }},
	)
}

func seconds(s trajectories.Seconds) any { return decimal(time.Duration(s).Seconds()) }

// stepRow is a reply with the results of its commands.
type stepRow struct {
	*Item
	number   int64
	entry    *trajectories.Entry
	usage    model.Usage // zero if another attempt paid for the reply
	cost     model.Cost
	rejected bool // the reply or the patch was rejected
	executed []trajectories.Execution
}

// stepsOf returns the replies of an attempt.
func stepsOf(item *Item) []*stepRow {
	var steps []*stepRow
	for i := range item.Entries {
		e := &item.Entries[i]
		switch e.Cause {
		case trajectories.CauseReply:
			s := &stepRow{Item: item, number: int64(len(steps) + 1), entry: e}
			if e.Call != nil && !s.isInherited() {
				s.usage, s.cost = e.Call.Usage, e.Call.Cost
			}
			for _, x := range e.Executions {
				if !x.ByUser {
					s.executed = append(s.executed, x.Execution)
				}
			}
			steps = append(steps, s)
		case trajectories.CauseFormatError, trajectories.CauseRejection, trajectories.CauseMalformedPatch:
			if len(steps) > 0 {
				steps[len(steps)-1].rejected = true
			}
		}
	}
	return steps
}

func (s *stepRow) isInherited() bool { return s.Header.IsInherited(s.entry.Record) }

// start returns the time when the model was asked or, if it is unknown, when it replied.
func (s *stepRow) start() time.Time {
	if s.entry.Call != nil && !s.entry.Call.Start.IsZero() {
		return s.entry.Call.Start
	}
	return s.entry.Time
}

// exitCode returns the exit code of the first command that failed, or else 0; nil if it
// is unknown.
func (s *stepRow) exitCode() any {
	if len(s.executed) == 0 {
		return nil
	}
	for _, x := range s.executed {
		if x.ExitCodeUnknown {
			return nil
		}
		if x.ExitCode != 0 {
			return int64(x.ExitCode)
		}
	}
	return int64(0)
}

func (s *stepRow) failed() bool {
	for _, x := range s.executed {
		if x.ExitCode != 0 || x.TimedOut || x.Exception != "" {
			return true
		}
	}
	return s.rejected
}

// ofCall returns a column that is null if the call is not recorded, or was made for
// another attempt.
func ofCall(name string, kind kind, value func(*trajectories.Call) any) tableColumn[*stepRow] {
	return tableColumn[*stepRow]{column{name: name, kind: kind}, func(s *stepRow) any {
		if s.entry.Call == nil || s.isInherited() {
			return nil
		}
		return value(s.entry.Call)
	}}
}

// ofCommands returns a column that is null if no command was run.
func ofCommands(name string, kind kind, value func([]trajectories.Execution) any) tableColumn[*stepRow] {
	return tableColumn[*stepRow]{column{name: name, kind: kind}, func(s *stepRow) any {
		if len(s.executed) == 0 {
			return nil
		}
		return value(s.executed)
	}}
}

func stepColumns() []tableColumn[*stepRow] {
	return []tableColumn[*stepRow]{
		{column{name: "run"}, func(s *stepRow) any { return orNull(s.source.Run) }},
		{column{name: "instance_id"}, func(s *stepRow) any { return s.InstanceID }},
		{column{name: "attempt", kind: intKind}, func(s *stepRow) any { return int64(s.Attempt) }},
		{column{name: "repetition", kind: intKind}, func(s *stepRow) any { return int64(s.Repetition) }},
		{column{name: "step", kind: intKind}, func(s *stepRow) any { return s.number }},
		{column{name: "time", kind: timeKind}, func(s *stepRow) any { return orNullTime(s.start()) }},
		{column{name: "inherited", kind: boolKind}, func(s *stepRow) any { return s.isInherited() }},
		{column{name: "commands", kind: intKind}, func(s *stepRow) any { return int64(len(s.entry.Actions)) }},
		{column{name: "command"}, func(s *stepRow) any { return orNull(strings.Join(s.entry.Actions, "\n")) }},
		{column{name: "exit_code", kind: intKind}, (*stepRow).exitCode},
		ofCommands("timed_out", boolKind, func(all []trajectories.Execution) any {
			timedOut := false
			for _, x := range all {
				timedOut = timedOut || x.TimedOut
			}
			return timedOut
		}),
		{column{name: "failed", kind: boolKind}, func(s *stepRow) any { return s.failed() }},
		ofCall("model_seconds", floatKind, func(c *trajectories.Call) any { return seconds(c.Duration) }),
		ofCall("waited_seconds", floatKind, func(c *trajectories.Call) any { return seconds(c.Waited) }),
		ofCommands("command_seconds", floatKind, func(all []trajectories.Execution) any {
			var sum trajectories.Seconds
			for _, x := range all {
				sum += x.Duration
			}
			return seconds(sum)
		}),
		ofCommands("output_bytes", intKind, func(all []trajectories.Execution) any {
			var sum int64
			for _, x := range all {
				sum += x.Bytes
			}
			return sum
		}),
		ofCall("input_tokens", intKind, func(c *trajectories.Call) any { return c.Usage.Prompt }),
		ofCall("cached_tokens", intKind, func(c *trajectories.Call) any { return c.Usage.CacheRead }),
		ofCall("output_tokens", intKind, func(c *trajectories.Call) any { return c.Usage.Completion }),
		ofCall("cost", floatKind, func(c *trajectories.Call) any { return costOrNull(c.Cost, c.Usage) }),
	}
}
