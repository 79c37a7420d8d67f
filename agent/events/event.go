package events

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Kind is the type of an event, the "type" of its JSON line.
type Kind string

// The kinds, roughly in order of their first occurrence.
const (
	KindRunStarted    Kind = "run_started"
	KindScrubStarted  Kind = "scrub_started"
	KindScrubbed      Kind = "scrubbed"
	KindTurnStarted   Kind = "turn_started"
	KindTextDelta     Kind = "text_delta"
	KindReplied       Kind = "replied"
	KindDecided       Kind = "decided"
	KindActionStarted Kind = "action_started"
	KindOutputChunk   Kind = "output_chunk"
	KindActionEnded   Kind = "action_ended"
	KindFormatError   Kind = "format_error"
	KindUserMessage   Kind = "told"
	KindLimitReached  Kind = "limit_reached"
	KindToolCalled    Kind = "tool_called"
	KindChildProgress Kind = "child_worked"
	KindFilesChanged  Kind = "files_changed"
	KindCompacted     Kind = "compacted"
	KindRunEnded      Kind = "ended"
	KindDropped       Kind = "lost"
)

// Event is one of the structs of this package, by value. A published event is
// never changed, nor is what it points to. Its kind is empty if it has no line.
type Event interface{ Kind() Kind }

// Envelope is an event with its number, time and origin.
type Envelope struct {
	// Seq numbers the events that were published while the bus had subscribers,
	// from 1. A missing number belongs to a piece that was merged into the next
	// one, or to an event that the next Dropped counts.
	Seq  uint64
	Time time.Time
	// Instance and Attempt identify the session if events of several sessions
	// are mixed, as in the file of a batch. A Bus does not set them.
	Instance string
	Attempt  int
	Event    Event
}

// RunStarted is the first event of a session.
type RunStarted struct {
	Task string `json:"task"`
	// Instance is the id of the dataset row; empty for a single task.
	Instance string `json:"instance,omitempty"`
	Model    string `json:"model,omitempty"`
	// Environment is the environment class, Dir the working directory of
	// commands.
	Environment string `json:"environment,omitempty"`
	Dir         string `json:"dir,omitempty"`
	// Step is the number of steps in earlier sessions of the attempt; 0 for a
	// new attempt.
	Step int `json:"step,omitempty"`
}

// Phase is what an attempt is doing.
type Phase string

// The phases of an attempt.
const (
	PhaseScrubbing Phase = "scrubbing" // removing everything outside HEAD's history from the repository
	PhaseThinking  Phase = "thinking"  // waiting for the model's reply
	PhaseWaiting   Phase = "waiting"   // waiting for the provider: rate limit or outage
	PhaseRunning   Phase = "running"   // running a command
	PhaseClosing   Phase = "closing"   // checking the submission or taking the diff
)

// PhaseStarted is the start of a phase. It has a line at the start of a scrub, a
// step and a command.
type PhaseStarted struct {
	Phase Phase `json:"-"`
	// Step is the step that starts, from 1, or that of the command. It is 0 for
	// thinking that continues after a wait, or that is for a summary.
	Step int `json:"step"`
	// Command is the command that starts. It is empty if another agent works.
	Command string `json:"command,omitempty"`
	// ByUser marks a command of the user, not of the model.
	ByUser bool `json:"user,omitempty"`
}

// Recorded is a record of the attempt. Only some records have a line; see docs/events.md.
type Recorded struct {
	// Step is the number of model calls so far, Spent their usage and cost, with
	// summaries and subagents.
	Step  int
	Spent trajectories.Spending
	// Data is the data of the record, as trajectories.Decode returns it. An
	// Execution has no Output: Truncated and Head describe its chunks. The last of
	// too many format errors is a Message, although the model does not get it.
	Data any
	// Call is the model call of a reply; nil if it was not recorded.
	Call *trajectories.Call
}

// Content returns the data of a Recorded and any other event itself, for a switch on
// types.
func Content(e Event) any {
	if r, ok := e.(Recorded); ok {
		return r.Data
	}
	return e
}

// TextDelta is a piece of a streamed reply. Models that do not stream, and tool
// calls, have no TextDelta. Unless the call fails, the record of the whole reply
// follows.
type TextDelta struct {
	Step int    `json:"step"`
	Text string `json:"text"`
	// Thinking marks a piece of the model's reasoning.
	Thinking bool `json:"thinking,omitempty"`
	// Restart invalidates the earlier pieces of this step, because the model is
	// called again. Text may be empty then.
	Restart bool `json:"restart,omitempty"`
}

// OutputChunk is a piece of the running command's output. The chunks of a
// command together are the output that the sandbox keeps (see
// env.Command.OnOutput). The start is published as the command writes it; the
// end of a long output is published when the command ends.
type OutputChunk struct {
	Step int                `json:"step"`
	Data trajectories.Bytes `json:"data"`
}

// Values of LimitReached.Limit.
const (
	LimitSteps = "steps"
	LimitCost  = "cost"
	LimitTime  = "time"
)

// LimitReached says that the attempt has reached a limit. The attempt ends
// unless the user has raised the limit (Raised).
type LimitReached struct {
	Limit string `json:"which"`
	// Steps and Cost are the limits from now on; 0 means none.
	Steps  int        `json:"steps,omitempty"`
	Cost   model.Cost `json:"cost,omitempty"`
	Raised bool       `json:"raised,omitempty"`
}

// ChildProgress reports on a subagent of the running command: it started (Task
// is set), is about to run a command (Command) or has ended (ExitStatus, Steps
// and Cost).
type ChildProgress struct {
	Step int `json:"step"` // of the parent
	// Child is the subagent's number within the attempt. Depth is 1 for a
	// subagent of the attempt itself.
	Child      int        `json:"child"`
	Depth      int        `json:"depth"`
	Task       string     `json:"task,omitempty"`
	Command    string     `json:"command,omitempty"`
	ExitStatus string     `json:"exit_status,omitempty"`
	Steps      int        `json:"steps,omitempty"`
	Cost       model.Cost `json:"cost,omitempty"`
}

// Text returns the event as a line of text. It contains text of the model;
// sanitize it before printing it to a terminal.
func (e ChildProgress) Text() string {
	switch {
	case e.ExitStatus != "":
		return fmt.Sprintf("child %d ended: %s, steps: %d", e.Child, e.ExitStatus, e.Steps)
	case e.Command != "":
		return fmt.Sprintf("child %d $ %s", e.Child, e.Command)
	}
	return fmt.Sprintf("child %d begins: %s", e.Child, e.Task)
}

// FilesChanged says which files of the user's folder a step has changed. The names are
// untrusted. Only interactive sessions on this machine have it.
type FilesChanged struct {
	Step int `json:"step"`
	// Files are the first of the changed files; More is the number of others.
	Files []ChangedFile `json:"files"`
	More  int           `json:"more,omitempty"`
	// Patch shows the changes, truncated if long.
	Patch string `json:"patch,omitempty"`
}

// ChangedFile is a file of FilesChanged. Added and Removed are numbers of lines; -1 for a
// file that is not text.
type ChangedFile struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// maxNamed is the maximum number of files that FilesChanged.Text names.
const maxNamed = 5

// Text returns the event as a line of text, such as "calc.py +1 -1, new.py +9". It contains names
// of files; sanitize it before printing it to a terminal.
func (e FilesChanged) Text() string {
	var names []string
	for _, f := range e.Files[:min(len(e.Files), maxNamed)] {
		name := f.Name
		if f.Added < 0 {
			name += " (binary)"
		}
		if f.Added > 0 {
			name += fmt.Sprintf(" +%d", f.Added)
		}
		if f.Removed > 0 {
			name += fmt.Sprintf(" -%d", f.Removed)
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if more := e.More + len(e.Files) - len(names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// Dropped counts events that a slow subscriber missed. Its Seq is that of the
// newest missed event. It is never published: each subscriber's queue inserts
// its own.
type Dropped struct {
	Count int `json:"count"`
}

// Kind implements Event.
func (RunStarted) Kind() Kind { return KindRunStarted }

// Kind implements Event.
func (e PhaseStarted) Kind() Kind {
	switch {
	case e.Phase == PhaseScrubbing:
		return KindScrubStarted
	case e.Phase == PhaseThinking && e.Step > 0:
		return KindTurnStarted
	case e.Phase == PhaseRunning && e.Command != "":
		return KindActionStarted
	}
	return ""
}

// Kind implements Event.
func (e Recorded) Kind() Kind {
	kind, _ := e.line()
	return kind
}

// Kind implements Event.
func (TextDelta) Kind() Kind { return KindTextDelta }

// Kind implements Event.
func (OutputChunk) Kind() Kind { return KindOutputChunk }

// Kind implements Event.
func (LimitReached) Kind() Kind { return KindLimitReached }

// Kind implements Event.
func (ChildProgress) Kind() Kind { return KindChildProgress }

// Kind implements Event.
func (FilesChanged) Kind() Kind { return KindFilesChanged }

// Kind implements Event.
func (Dropped) Kind() Kind { return KindDropped }
