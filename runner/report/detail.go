package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// Detail is one instance of a run: how it ended, and its last steps.
type Detail struct {
	Format string `json:"format"` // GlanceFormat
	Run    string `json:"run"`
	Row
	Warnings []string  `json:"warnings,omitempty"`
	Tries    []Attempt `json:"attempt_list"`
	// Shown is the attempt that LastSteps are of: the one that counts, else
	// the newest.
	Shown     int        `json:"shown_attempt"`
	LastSteps []LastStep `json:"last_steps"`
	Files     []string   `json:"files"`
	// Verdicts are those on what the instance has submitted; Judge adds them.
	Verdicts []Judgement `json:"verdicts,omitempty"`
	Unread   []string    `json:"unread,omitempty"`
}

// Attempt is one attempt at an instance; Class is empty where it has not ended.
type Attempt struct {
	Number int                `json:"attempt"`
	Sample int                `json:"sample,omitempty"` // where there are several
	Class  trajectories.Class `json:"class,omitempty"`
	Status string             `json:"exit_status,omitempty"`
	Steps  int                `json:"steps"`
	Cost   model.Cost         `json:"cost"`
	// Unpriced counts the calls whose cost is not known, and not in Cost.
	Unpriced int64   `json:"unpriced_calls,omitempty"`
	Seconds  float64 `json:"seconds"`
	// Times are where they went, as far as the journal says.
	Times trajectories.Times `json:"times,omitzero"`
	Start time.Time          `json:"start"`
	Error string             `json:"error,omitempty"`
}

// LastStep is one of the last steps of an attempt. Texts are bounded: the
// journal has them whole.
type LastStep struct {
	Step int `json:"step"`
	// Command is empty where the reply had none that was run; Reply is its
	// end then, or CallError says why there is no reply.
	Command string `json:"command,omitempty"`
	// Unfinished says that nothing came of the command: it runs, its mini was
	// killed, or its sandbox was lost.
	Unfinished bool    `json:"unfinished,omitempty"`
	ExitCode   int     `json:"returncode"`
	TimedOut   bool    `json:"timed_out,omitempty"`
	Seconds    float64 `json:"seconds"`
	Output     string  `json:"output_tail"`
	Exception  string  `json:"exception,omitempty"`
	Reply      string  `json:"reply_tail,omitempty"`
	CallError  string  `json:"call_error,omitempty"`
}

// Bounds of a LastStep.
const (
	lastSteps   = 3
	maxKept     = 4000 // bytes of a command, and of an output's or a reply's end
	maxJournals = 100  // attempts that are listed
	maxFlags    = 5    // that are shown of a verdict
)

// UnknownError says that a run has no attempt of an instance, and names those
// with a similar id.
type UnknownError struct {
	ID, Run string
	Known   int // instances with an attempt
	// NotStarted have none yet; which ones they are the run does not say.
	NotStarted int
	Near       []string
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%s has no instance %.80q", e.Run, e.ID)
	switch {
	case len(e.Near) > 0:
		return text + "; did you mean " + strings.Join(e.Near, " or ") + "?"
	case e.NotStarted > 0:
		return fmt.Sprintf("no attempt of %.80q in %s yet: %d of %d instances have not been started", e.ID, e.Run, e.NotStarted, e.Known+e.NotStarted)
	case e.Known == 0:
		return text + ": it has none yet"
	}
	return fmt.Sprintf("%s among its %d", text, e.Known)
}

// NewDetail looks at one instance of a run. The error is an *UnknownError, or
// about the journal.
func NewDetail(run *runner.Run, id string, now time.Time) (Detail, error) {
	i := slices.IndexFunc(run.Instances, func(in runner.Instance) bool { return in.ID == id })
	if i < 0 {
		return Detail{}, &UnknownError{ID: id, Run: run.Dir, Known: len(run.Instances), NotStarted: notStarted(run), Near: near(run, id)}
	}
	in := run.Instances[i]
	g := NewGlance(run, []string{id}, now)
	d := Detail{Format: GlanceFormat, Run: run.Dir, Row: g.Rows[0], Files: run.Files(in), Unread: run.Unread, LastSteps: []LastStep{}}
	attempts := in.Attempts
	if n := len(attempts); n > 0 {
		d.Shown = attempts[n-1].Number
	}
	if in.Result != nil {
		d.Shown, d.Warnings = in.Result.Attempt, in.Result.Warnings
	}
	several := slices.ContainsFunc(attempts, func(a runner.Attempt) bool { return a.Sample > 1 })
	for _, a := range attempts[max(0, len(attempts)-maxJournals):] {
		all := a.Tally()
		t := Attempt{
			Number: a.Number, Steps: all.Steps, Cost: all.Cost, Unpriced: all.Usage.Unpriced,
			Seconds: secondsOf(run, a, now), Start: all.Start,
		}
		if r := a.Result; r != nil {
			t.Class, t.Status, t.Times, t.Error = r.Class, r.ExitStatus, r.Times, r.Error
		}
		if several {
			t.Sample = a.Sample
		}
		d.Tries = append(d.Tries, t)
	}
	for _, a := range attempts {
		if a.Number != d.Shown {
			continue
		}
		var err error
		if d.LastSteps, err = readLast(a.Journal); err != nil {
			d.Unread = append(d.Unread, err.Error())
		}
	}
	return d, nil
}

// readLast keeps the last steps of a journal, also of one that is torn or
// still grows.
func readLast(journal string) ([]LastStep, error) {
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
			steps[len(steps)-1].take(rec)
		}
	}
	return steps, nil
}

// take adds what a record says of the step. One that cannot be read says
// nothing.
func (s *LastStep) take(rec trajectories.Record) {
	switch rec.Type {
	case trajectories.TypeCall:
		var c trajectories.Call
		if json.Unmarshal(rec.Data, &c) == nil {
			s.CallError = bounded(c.Error, maxKept)
		}
	case trajectories.TypeMessage:
		var m trajectories.Message
		if json.Unmarshal(rec.Data, &m) == nil && m.Role == model.Assistant {
			s.Reply = tail(m.Content)
			if len(m.Actions) == 1 {
				s.Command, s.Unfinished = bounded(m.Actions[0], maxKept), true
			}
		}
	case trajectories.TypeExecution:
		var e trajectories.Execution
		if json.Unmarshal(rec.Data, &e) == nil {
			s.Command, s.Unfinished, s.Reply = bounded(e.Command, maxKept), false, ""
			s.ExitCode, s.TimedOut, s.Seconds = e.ExitCode, e.TimedOut, time.Duration(e.Duration).Seconds()
			s.Output, s.Exception = tail(string(e.Output)), bounded(e.Exception, maxKept)
		}
	}
}

// tail is the end of s, from the beginning of a line where there is one.
func tail(s string) string {
	if len(s) > maxKept {
		s = s[len(s)-maxKept:]
		if _, rest, ok := strings.Cut(s, "\n"); ok && rest != "" {
			s = rest
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxNear is how many similar ids are named.
const maxNear = 3

// near are ids that may have been meant. While there are instances that were
// not started, one that differs in its number may well be among those.
func near(run *runner.Run, id string) []string {
	var ids []string
	unstarted := notStarted(run) > 0
	for _, in := range run.Instances {
		if !unstarted || digits(in.ID) == digits(id) || strings.Contains(strings.ToLower(in.ID), strings.ToLower(id)) {
			ids = append(ids, in.ID)
		}
	}
	near := datasets.Near(id, ids, maxNear)
	for i, id := range near {
		near[i] = Printable(bounded(id, 100))
	}
	return near
}

// digits are those of an id.
func digits(id string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, id)
}
