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

func (s *sums) cells() []cell {
	return []cell{
		intCell("steps", s.steps),
		intCell("replies", s.replies),
		intCell("input_tokens", s.usage.Prompt),
		intCell("cached_tokens", s.usage.CacheRead),
		intCell("output_tokens", s.usage.Completion),
		floatCell("cost", costOrNull(s.cost, s.usage)),
		intCell("unpriced_calls", s.usage.Unpriced),
		floatCell("seconds", decimal(s.seconds)),
		intCell("patch_bytes", s.patchBytes),
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

func (a *attemptRow) row() []cell {
	reward := floatCell("reward", nil)
	if a.Reward != nil {
		reward.value = *a.Reward
	}
	row := append([]cell{
		knownText("run", a.source.Run),
		textCell("instance_id", a.InstanceID),
		knownText("repo", a.Repo),
		intCell("attempt", int64(a.Number)),
		intCell("repetition", int64(a.Repetition)),
		boolCell("selected", a.Selected),
		knownText("model", a.Header.ModelName),
		knownText("class", string(a.outcome.Class)),
		knownText("exit_status", a.outcome.ExitStatus),
		knownText("error", a.outcome.Error),
		knownText("verdict", a.Verdict),
		reward,
		knownText("flags", strings.Join(a.Flags, " ")),
		boolCell("autosubmitted", a.autosubmitted()),
	}, a.cells()...)
	t := a.outcome.Times
	for _, phase := range []struct {
		name string
		took trajectories.Seconds
	}{
		{"sandbox_seconds", t.SandboxStart},
		{"scrub_seconds", t.Scrub},
		{"model_seconds", t.Model},
		{"command_seconds", t.Commands},
		{"diff_seconds", t.Diff},
	} {
		c := floatCell(phase.name, nil)
		if t != (trajectories.Times{}) {
			c.value = seconds(phase.took)
		}
		row = append(row, c)
	}
	return append(row, timeCell("start", a.outcome.Start), timeCell("end", a.outcome.End), textCell("journal_sha256", a.SHA256))
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
					s.executed = append(s.executed, x)
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
		if x.HasFailed() {
			return true
		}
	}
	return s.rejected
}

// row returns the row of the step. What is about the call is null if the call is not
// recorded, or was made for another attempt; what is about commands, if none was run.
func (s *stepRow) row() []cell {
	call := s.entry.Call
	ofCall := call != nil && !s.isInherited()
	if !ofCall {
		call = &trajectories.Call{}
	}
	var commands trajectories.Execution // sums
	for _, x := range s.executed {
		commands.TimedOut = commands.TimedOut || x.TimedOut
		commands.Duration += x.Duration
		commands.Bytes += x.Bytes
	}
	ifKnown := func(known bool, c cell) cell {
		if !known {
			c.value = nil
		}
		return c
	}
	ofCommands := len(s.executed) > 0
	return []cell{
		knownText("run", s.source.Run),
		textCell("instance_id", s.InstanceID),
		intCell("attempt", int64(s.Number)),
		intCell("repetition", int64(s.Repetition)),
		intCell("step", s.number),
		timeCell("time", s.start()),
		boolCell("inherited", s.isInherited()),
		intCell("commands", int64(len(s.entry.Actions))),
		knownText("command", strings.Join(s.entry.Actions, "\n")),
		intCell("exit_code", s.exitCode()),
		ifKnown(ofCommands, boolCell("timed_out", commands.TimedOut)),
		boolCell("failed", s.failed()),
		ifKnown(ofCall, floatCell("model_seconds", seconds(call.Duration))),
		ifKnown(ofCall, floatCell("waited_seconds", seconds(call.Waited))),
		ifKnown(ofCommands, floatCell("command_seconds", seconds(commands.Duration))),
		ifKnown(ofCommands, intCell("output_bytes", commands.Bytes)),
		ifKnown(ofCall, intCell("input_tokens", call.Usage.Prompt)),
		ifKnown(ofCall, intCell("cached_tokens", call.Usage.CacheRead)),
		ifKnown(ofCall, intCell("output_tokens", call.Usage.Completion)),
		ifKnown(ofCall, floatCell("cost", costOrNull(call.Cost, call.Usage))),
	}
}
