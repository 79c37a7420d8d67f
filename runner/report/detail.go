package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// Detail describes one instance of a run: its outcome, attempts, last steps and
// verdicts.
type Detail struct {
	Format string `json:"format"` // SummaryFormat
	Run    string `json:"run"`
	Row
	Labels      []string  `json:"labels,omitempty"` // set by the caller; see package labels
	Warnings    []string  `json:"warnings,omitempty"`
	AttemptList []Attempt `json:"attempt_list"`
	// ShownAttempt is the number of the attempt that LastSteps describes: the attempt
	// that counts or, if there is none, the newest.
	ShownAttempt int        `json:"shown_attempt"`
	LastSteps    []LastStep `json:"last_steps"`
	Files        []string   `json:"files"`
	// Verdicts is filled by AddVerdicts.
	Verdicts   []VerdictDetail `json:"verdicts,omitempty"`
	Unreadable []string        `json:"unread,omitempty"`

	patchBytes map[int]int // size of the patch of each repetition that has ended
}

// Attempt is one attempt at an instance. Class is empty if the attempt has not
// ended.
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
	// Times is the time spent in each phase; zero if the journal lacks it.
	Times trajectories.Times `json:"times,omitzero"`
	Start time.Time          `json:"start"`
	Error string             `json:"error,omitempty"`
	// NetworkProof is env.Info.NetworkProof of the attempt's sandbox.
	NetworkProof string `json:"network_proof,omitempty"`
}

// LastStep is one of the last steps of an attempt. Long texts are shortened;
// the journal has the full text.
type LastStep struct {
	Step int `json:"step"`
	// Command is the executed command. If it is empty, either Reply is the end
	// of the model's reply or CallError is the error of the model call.
	Command string `json:"command,omitempty"`
	// Unfinished reports that Command has no result: it is running, or mini or
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
	maxLastSteps      = 3
	maxStepText       = 4000 // bytes of a command, an output or a reply
	maxListedAttempts = 100  // attempts in AttemptList
	maxFlags          = 5    // shown flags of a verdict
)

// UnknownInstanceError reports that a run has no attempt at an instance.
type UnknownInstanceError struct {
	ID, Run string
	Known   int // number of instances with an attempt
	// NotStarted is the number of selected instances without an attempt. The run
	// does not record their ids.
	NotStarted int
	Similar    []string // known ids that the user may have meant
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

// FindInstance returns the instance of a run with an id. The error is an
// *UnknownInstanceError if the run has no attempt at it.
func FindInstance(run *runs.Run, id string) (runs.Instance, error) {
	in, ok := run.Find(id)
	if !ok {
		return runs.Instance{}, &UnknownInstanceError{
			ID: id, Run: run.Dir, Known: len(run.Instances), NotStarted: notStarted(run), Similar: similarIDs(run, id),
		}
	}
	return in, nil
}

// NewDetail describes one instance of a run. id may be a part of the instance's id that no
// other instance has. The error is that of FindInstance.
func NewDetail(run *runs.Run, id string, now time.Time) (Detail, error) {
	var ids []string
	for _, in := range run.Instances {
		ids = append(ids, in.ID)
	}
	if found, ok := datasets.MatchID(ids, id); ok {
		id = found
	}
	in, err := FindInstance(run, id)
	if err != nil {
		return Detail{}, err
	}
	summary := NewSummary(run, []string{in.ID}, now)
	d := Detail{
		Format: SummaryFormat, Run: run.Dir, Row: summary.Rows[0], Files: run.Files(in), Unreadable: run.ReadErrors,
		LastSteps: []LastStep{}, patchBytes: map[int]int{},
	}
	for _, r := range in.Repetitions {
		d.patchBytes[r.Repetition] = r.PatchBytes
	}
	attempts := in.Attempts
	if n := len(attempts); n > 0 {
		d.ShownAttempt = attempts[n-1].Number
	}
	if in.Result != nil {
		d.ShownAttempt, d.Warnings = in.Result.Attempt, in.Result.Warnings
	}
	hasRepetitions := slices.ContainsFunc(attempts, func(a runs.Attempt) bool { return a.Repetition > 1 })
	for _, a := range attempts[max(0, len(attempts)-maxListedAttempts):] {
		totals := a.Totals()
		attempt := Attempt{
			Number: a.Number, Steps: totals.Steps, Cost: totals.Cost, Unpriced: totals.Usage.Unpriced,
			Seconds: secondsOf(run, a, now), Start: totals.Start,
		}
		if r := a.Result; r != nil {
			attempt.Class, attempt.Status, attempt.Times, attempt.Error = r.Class, r.ExitStatus, r.Times, r.Error
			attempt.NetworkProof = r.NetworkProof
		}
		if hasRepetitions {
			attempt.Repetition = a.Repetition
		}
		d.AttemptList = append(d.AttemptList, attempt)
	}
	if a := in.Attempt(d.ShownAttempt); a != nil {
		if d.LastSteps, err = readLastSteps(a.Journal); err != nil {
			d.Unreadable = append(d.Unreadable, err.Error())
		}
	}
	return d, nil
}

// readLastSteps returns the last steps of a journal. An attempt may still be
// writing the journal, or may have been killed.
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
			steps = steps[max(0, len(steps)-maxLastSteps):]
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
	if c, ok := trajectories.DecodeAs[trajectories.Call](rec); ok {
		s.CallError = truncate(c.Error, maxStepText)
	}
	if m, ok := trajectories.DecodeAs[trajectories.Message](rec); ok && m.Role == model.Assistant {
		s.Reply = tail(m.Content)
		if len(m.Actions) == 1 {
			s.Command, s.Unfinished = truncate(m.Actions[0], maxStepText), true
		}
	}
	if e, ok := trajectories.DecodeAs[trajectories.Execution](rec); ok {
		s.Command, s.Unfinished, s.Reply = truncate(e.Command, maxStepText), false, ""
		s.ExitCode, s.TimedOut, s.Seconds = e.ExitCode, e.TimedOut, time.Duration(e.Duration).Seconds()
		s.Output, s.Exception = tail(string(e.Output)), truncate(e.Exception, maxStepText)
	}
}

// tail returns the last maxStepText bytes of s, with invalid UTF-8 replaced. The
// result starts with a whole line if possible.
func tail(s string) string {
	if len(s) > maxStepText {
		s = s[len(s)-maxStepText:]
		if _, rest, ok := strings.Cut(s, "\n"); ok && rest != "" {
			s = rest
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxSimilar is the maximum length of UnknownInstanceError.Similar.
const maxSimilar = 3

// similarIDs returns known ids that the user may have meant. If some instances
// have not started, it suggests only ids with the same digits and ids that contain
// id, because id probably belongs to an instance that has not started.
func similarIDs(run *runs.Run, id string) []string {
	var ids []string
	unstarted := notStarted(run) > 0
	for _, in := range run.Instances {
		if !unstarted || digits(in.ID) == digits(id) || strings.Contains(strings.ToLower(in.ID), strings.ToLower(id)) {
			ids = append(ids, in.ID)
		}
	}
	closest := datasets.ClosestIDs(id, ids, maxSimilar)
	for i, id := range closest {
		closest[i] = text.Printable(truncate(id, 100))
	}
	return closest
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
