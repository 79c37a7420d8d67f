package events

import (
	"encoding/json"
	"fmt"
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
	KindCompacted     Kind = "compacted"
	KindRunEnded      Kind = "ended"
	KindDropped       Kind = "lost"
)

// Event is one of the structs of this package, by value. A published event is
// never changed, nor is what it points to.
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

// ScrubStarted says that history after HEAD is about to be removed from the
// repository, which may take seconds.
type ScrubStarted struct{}

// Scrubbed is the result of the scrub, as in the journal.
type Scrubbed struct {
	OK             bool                 `json:"ok"`
	Prepared       bool                 `json:"prepared,omitempty"` // scrubbed earlier, in the image
	ObjectsRemoved int                  `json:"objects_removed,omitempty"`
	RefsRemoved    int                  `json:"refs_removed,omitempty"`
	Duration       trajectories.Seconds `json:"duration"`
}

// TurnStarted says that the model is about to be called. Steps count from 1.
type TurnStarted struct {
	Step int `json:"step"`
}

// TextDelta is a piece of a streamed reply. Models that do not stream, and tool
// calls, have no TextDelta. Unless the call fails, a Replied with the whole
// reply follows.
type TextDelta struct {
	Step int    `json:"step"`
	Text string `json:"text"`
	// Thinking marks a piece of the model's reasoning.
	Thinking bool `json:"thinking,omitempty"`
	// Restart invalidates the earlier pieces of this step, because the model is
	// called again. Text may be empty then.
	Restart bool `json:"restart,omitempty"`
}

// Replied is a complete reply of the model.
type Replied struct {
	Step      int    `json:"step"`
	Text      string `json:"text"`
	Reasoning string `json:"reasoning,omitempty"`
	// Model is the name of the model as the provider reports it.
	Model string      `json:"model,omitempty"`
	Usage model.Usage `json:"usage"`
	Cost  model.Cost  `json:"cost"`
	// TotalUsage and TotalCost are the attempt's so far, including this call.
	// Duration is the time that the requests of this call took.
	TotalUsage model.Usage          `json:"total_usage"`
	TotalCost  model.Cost           `json:"total_cost"`
	Duration   trajectories.Seconds `json:"duration,omitempty"`
	Commands   []string             `json:"commands,omitempty"` // of the reply
}

// Decided is the approver's decision on a command.
type Decided struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	// Action is "allow" or "deny". By and Rule are those of
	// trajectories.Decision.
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// ActionStarted says that a command starts.
type ActionStarted struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	// ByUser marks a command of the user, not of the model.
	ByUser bool `json:"user,omitempty"`
}

// OutputChunk is a piece of the running command's output. The chunks of a
// command together are the output that the sandbox keeps (see
// env.Command.OnOutput). The start is published as the command writes it; the
// end of a long output is published when the command ends.
type OutputChunk struct {
	Step int                `json:"step"`
	Data trajectories.Bytes `json:"data"`
}

// ActionEnded is the result of a command.
type ActionEnded struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	ByUser  bool   `json:"user,omitempty"`
	// ExitCode is 128+Signal after a signal, and -1 if the command timed out or
	// did not run.
	ExitCode int                  `json:"exit_code"`
	Signal   int                  `json:"signal,omitempty"`
	TimedOut bool                 `json:"timed_out,omitempty"`
	Duration trajectories.Seconds `json:"duration"`
	// Bytes is the length of the whole output. If Truncated, the chunks contain
	// its first Head bytes and then its end.
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated,omitempty"`
	Head      int   `json:"head,omitempty"`
	// Exception says why the command failed, beyond its exit code.
	Exception string `json:"exception,omitempty"`
}

// FormatError says that a reply was invalid. Text is the message to the model,
// or the problem alone if the attempt ends.
type FormatError struct {
	Step int    `json:"step"`
	Text string `json:"text"`
}

// UserMessage is a message of the user to the model. Cause is the one in the
// journal.
type UserMessage struct {
	Step  int                `json:"step"`
	Cause trajectories.Cause `json:"cause"`
	Text  string             `json:"text"`
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

// ToolCalled is a mini-tool call of the running command and its result.
type ToolCalled struct {
	Step     int                  `json:"step"`
	Name     string               `json:"name"`
	Args     []string             `json:"args,omitempty"`
	ExitCode int                  `json:"exit_code"`
	Duration trajectories.Seconds `json:"duration"`
	// Details is data of the tool that the model does not see, as JSON.
	Details json.RawMessage `json:"details,omitempty"`
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

// Compacted says that a compaction replaced some messages in the next prompts.
// Token counts are estimates.
type Compacted struct {
	Step int `json:"step"`
	// Policy is "elide" or "summarize".
	Policy         string `json:"policy"`
	MessagesBefore int    `json:"messages_before"`
	MessagesAfter  int    `json:"messages_after"`
	TokensBefore   int64  `json:"tokens_before,omitempty"`
	TokensAfter    int64  `json:"tokens_after,omitempty"`
	// Fallback is why extracts replace some of the summaries; empty if none do.
	Fallback string `json:"fallback,omitempty"`
}

// RunEnded is the last event of a session. A queue that is full of RunEnded events
// drops the oldest.
type RunEnded struct {
	Outcome trajectories.Outcome `json:"outcome"`
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
func (ScrubStarted) Kind() Kind { return KindScrubStarted }

// Kind implements Event.
func (Scrubbed) Kind() Kind { return KindScrubbed }

// Kind implements Event.
func (TurnStarted) Kind() Kind { return KindTurnStarted }

// Kind implements Event.
func (TextDelta) Kind() Kind { return KindTextDelta }

// Kind implements Event.
func (Replied) Kind() Kind { return KindReplied }

// Kind implements Event.
func (Decided) Kind() Kind { return KindDecided }

// Kind implements Event.
func (ActionStarted) Kind() Kind { return KindActionStarted }

// Kind implements Event.
func (OutputChunk) Kind() Kind { return KindOutputChunk }

// Kind implements Event.
func (ActionEnded) Kind() Kind { return KindActionEnded }

// Kind implements Event.
func (FormatError) Kind() Kind { return KindFormatError }

// Kind implements Event.
func (UserMessage) Kind() Kind { return KindUserMessage }

// Kind implements Event.
func (LimitReached) Kind() Kind { return KindLimitReached }

// Kind implements Event.
func (ToolCalled) Kind() Kind { return KindToolCalled }

// Kind implements Event.
func (ChildProgress) Kind() Kind { return KindChildProgress }

// Kind implements Event.
func (Compacted) Kind() Kind { return KindCompacted }

// Kind implements Event.
func (RunEnded) Kind() Kind { return KindRunEnded }

// Kind implements Event.
func (Dropped) Kind() Kind { return KindDropped }
