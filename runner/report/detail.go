package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// Detail describes one instance of a run: its outcome and its last steps.
type Detail struct {
	Format string `json:"format"` // GlanceFormat
	Run    string `json:"run"`
	Row
	Warnings    []string  `json:"warnings,omitempty"`
	AttemptList []Attempt `json:"attempt_list"`
	// Shown is the attempt of LastSteps: the one that counts, otherwise the
	// newest.
	Shown     int        `json:"shown_attempt"`
	LastSteps []LastStep `json:"last_steps"`
	Files     []string   `json:"files"`
	// Verdicts holds the verdicts on the instance; AddVerdicts adds them.
	Verdicts   []VerdictDetail `json:"verdicts,omitempty"`
	Unreadable []string        `json:"unread,omitempty"`
}

// Attempt is one attempt at an instance. Class is empty if it has not ended.
type Attempt struct {
	Number     int                `json:"attempt"`
	Repetition int                `json:"sample,omitempty"` // 0 if there is only one
	Class      trajectories.Class `json:"class,omitempty"`
	Status     string             `json:"exit_status,omitempty"`
	Steps      int                `json:"steps"`
	Cost       model.Cost         `json:"cost"`
	// Unpriced counts the calls of unknown cost, which Cost does not include.
	Unpriced int64   `json:"unpriced_calls,omitempty"`
	Seconds  float64 `json:"seconds"`
	// Times is the time spent in each phase, as far as the journal has it.
	Times trajectories.Times `json:"times,omitzero"`
	Start time.Time          `json:"start"`
	Error string             `json:"error,omitempty"`
}

// LastStep is one of the last steps of an attempt. Long texts are shortened;
// the journal has the full text.
type LastStep struct {
	Step int `json:"step"`
	// Command is the executed command. If it is empty, Reply is the end of the
	// model's reply, or CallError is the error of the model call.
	Command string `json:"command,omitempty"`
	// Unfinished reports a command without a result: it is running, or mini or
	// the sandbox was killed.
	Unfinished bool    `json:"unfinished,omitempty"`
	ExitCode   int     `json:"returncode"`
	TimedOut   bool    `json:"timed_out,omitempty"`
	Seconds    float64 `json:"seconds"`
	Output     string  `json:"output_tail"`
	Exception  string  `json:"exception,omitempty"`
	Reply      string  `json:"reply_tail,omitempty"`
	CallError  string  `json:"call_error,omitempty"`
}

// Limits of a Detail.
const (
	lastSteps   = 3
	maxKept     = 4000 // bytes of a command, or of the end of an output or a reply
	maxJournals = 100  // listed attempts
	maxFlags    = 5    // shown flags of a verdict
)

// UnknownInstanceError reports an instance without an attempt in the run.
type UnknownInstanceError struct {
	ID, Run string
	Known   int // number of instances with an attempt
	// NotStarted is the number of instances without an attempt. The run does
	// not record their ids.
	NotStarted int
	Similar    []string
}

func (e *UnknownInstanceError) Error() string {
	text := fmt.Sprintf("%s has no instance %.80q", e.Run, e.ID)
	switch {
	case len(e.Similar) > 0:
		return text + "; did you mean " + strings.Join(e.Similar, " or ") + "?"
	case e.NotStarted > 0:
		return fmt.Sprintf("no attempt of %.80q in %s yet: %d of %d instances have not been started",
			e.ID, e.Run, e.NotStarted, e.Known+e.NotStarted)
	case e.Known == 0:
		return text + ": it has none yet"
	}
	return fmt.Sprintf("%s among its %d", text, e.Known)
}

// NewDetail describes one instance of a run. The error is an
// *UnknownInstanceError.
func NewDetail(run *runner.Run, id string, now time.Time) (Detail, error) {
	i := slices.IndexFunc(run.Instances, func(in runner.Instance) bool { return in.ID == id })
	if i < 0 {
		return Detail{}, &UnknownInstanceError{
			ID: id, Run: run.Dir, Known: len(run.Instances), NotStarted: notStarted(run), Similar: similarIDs(run, id),
		}
	}
	in := run.Instances[i]
	g := NewSummary(run, []string{id}, now)
	d := Detail{
		Format: SummaryFormat, Run: run.Dir, Row: g.Rows[0], Files: run.Files(in), Unreadable: run.ReadErrors,
		LastSteps: []LastStep{},
	}
	attempts := in.Attempts
	if n := len(attempts); n > 0 {
		d.Shown = attempts[n-1].Number
	}
	if in.Result != nil {
		d.Shown, d.Warnings = in.Result.Attempt, in.Result.Warnings
	}
	several := slices.ContainsFunc(attempts, func(a runner.Attempt) bool { return a.Repetition > 1 })
	for _, a := range attempts[max(0, len(attempts)-maxJournals):] {
		all := a.Totals()
		t := Attempt{
			Number: a.Number, Steps: all.Steps, Cost: all.Cost, Unpriced: all.Usage.Unpriced,
			Seconds: secondsOf(run, a, now), Start: all.Start,
		}
		if r := a.Result; r != nil {
			t.Class, t.Status, t.Times, t.Error = r.Class, r.ExitStatus, r.Times, r.Error
		}
		if several {
			t.Repetition = a.Repetition
		}
		d.AttemptList = append(d.AttemptList, t)
	}
	for _, a := range attempts {
		if a.Number != d.Shown {
			continue
		}
		var err error
		if d.LastSteps, err = readLastSteps(a.Journal); err != nil {
			d.Unreadable = append(d.Unreadable, err.Error())
		}
	}
	return d, nil
}

// readLastSteps returns the last steps of a journal, which may be truncated or
// still growing.
func readLastSteps(journal string) ([]LastStep, error) {
	steps := []LastStep{}
	n := 0
	for rec, err := range trajectories.Read(journal) {
		if err != nil {
			return steps, err
		}
		if rec.Type == trajectories.TypeCall {
			n++
			steps = append(steps, LastStep{Step: n})
			steps = steps[max(0, len(steps)-lastSteps):]
		}
		if len(steps) > 0 {
			steps[len(steps)-1].addRecord(rec)
		}
	}
	return steps, nil
}

// addRecord updates the step with a record. It ignores records that it cannot
// decode.
func (s *LastStep) addRecord(rec trajectories.Record) {
	switch rec.Type {
	case trajectories.TypeCall:
		var c trajectories.Call
		if json.Unmarshal(rec.Data, &c) == nil {
			s.CallError = truncate(c.Error, maxKept)
		}
	case trajectories.TypeMessage:
		var m trajectories.Message
		if json.Unmarshal(rec.Data, &m) == nil && m.Role == model.Assistant {
			s.Reply = tail(m.Content)
			if len(m.Actions) == 1 {
				s.Command, s.Unfinished = truncate(m.Actions[0], maxKept), true
			}
		}
	case trajectories.TypeExecution:
		var e trajectories.Execution
		if json.Unmarshal(rec.Data, &e) == nil {
			s.Command, s.Unfinished, s.Reply = truncate(e.Command, maxKept), false, ""
			s.ExitCode, s.TimedOut, s.Seconds = e.ExitCode, e.TimedOut, time.Duration(e.Duration).Seconds()
			s.Output, s.Exception = tail(string(e.Output)), truncate(e.Exception, maxKept)
		}
	}
}

// tail returns the end of s, from the start of a line if possible.
func tail(s string) string {
	if len(s) > maxKept {
		s = s[len(s)-maxKept:]
		if _, rest, ok := strings.Cut(s, "\n"); ok && rest != "" {
			s = rest
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxSimilar is the maximum number of suggested ids.
const maxSimilar = 3

// similarIDs returns known ids that the user may have meant. If some instances
// have not started, an id with another number probably belongs to one of them.
func similarIDs(run *runner.Run, id string) []string {
	var ids []string
	unstarted := notStarted(run) > 0
	for _, in := range run.Instances {
		if !unstarted || digits(in.ID) == digits(id) || strings.Contains(strings.ToLower(in.ID), strings.ToLower(id)) {
			ids = append(ids, in.ID)
		}
	}
	near := datasets.ClosestIDs(id, ids, maxSimilar)
	for i, id := range near {
		near[i] = text.Printable(truncate(id, 100))
	}
	return near
}

// digits returns the digits of an id.
func digits(id string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, id)
}
