package events

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Kind names a type of event; it is the "type" of a line of JSON.
type Kind string

// The kinds, in about the order in which they are first seen.
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
	KindTold          Kind = "told"
	KindLimitReached  Kind = "limit_reached"
	KindToolCalled    Kind = "tool_called"
	KindChildWorked   Kind = "child_worked"
	KindCompacted     Kind = "compacted"
	KindEnded         Kind = "ended"
	KindLost          Kind = "lost"
)

// Event is one of the structs of this package, by value. An event is never
// changed once it is published, nor is what it points to.
type Event interface{ Kind() Kind }

// Stamped is an event as subscribers get it.
type Stamped struct {
	// Seq counts what was published on the bus while anybody listened, from 1.
	// A subscriber sees numbers grow. What is missing between two was either
	// joined to the piece that follows, or is counted by the Lost that follows.
	Seq  uint64
	Time time.Time
	// Instance and Attempt say whose event it is, where events of several
	// sessions are in one place, as in the file of a batch. A bus does not set
	// them.
	Instance string
	Attempt  int
	Event    Event
}

// RunStarted is the first event of a session.
type RunStarted struct {
	Task string `json:"task"`
	// Instance is the id of the dataset's row; empty for a task of a person's.
	Instance string `json:"instance,omitempty"`
	Model    string `json:"model,omitempty"`
	// Environment is the sandbox's kind, Dir the folder in it in which commands
	// start.
	Environment string `json:"environment,omitempty"`
	Dir         string `json:"dir,omitempty"`
	// Step is how many turns there were before: not 0 where a session goes on
	// from an earlier one.
	Step int `json:"step,omitempty"`
}

// ScrubStarted says that what came after HEAD is about to be removed from the
// repository, which may take seconds.
type ScrubStarted struct{}

// Scrubbed says what the scrub of the repository came to, as the journal has it.
type Scrubbed struct {
	OK             bool                 `json:"ok"`
	Prepared       bool                 `json:"prepared,omitempty"` // it was done in the image before
	ObjectsRemoved int                  `json:"objects_removed,omitempty"`
	RefsRemoved    int                  `json:"refs_removed,omitempty"`
	Duration       trajectories.Seconds `json:"duration"`
}

// TurnStarted says that the model is about to be asked. Steps count from 1.
type TurnStarted struct {
	Step int `json:"step"`
}

// TextDelta is the next piece of a reply that is being written. There are none
// where the model does not stream, and none of tool calls: a Replied with the
// whole follows in any case, unless the call fails.
type TextDelta struct {
	Step int    `json:"step"`
	Text string `json:"text"`
	// Thinking says that the piece belongs to what the model thinks, where it
	// shows that, and not to its reply.
	Thinking bool `json:"thinking,omitempty"`
	// Restart says that the pieces of this step until now are void, since the
	// model is asked again; Text may be empty then.
	Restart bool `json:"restart,omitempty"`
}

// Replied is the whole reply of a model.
type Replied struct {
	Step      int    `json:"step"`
	Text      string `json:"text"`
	Reasoning string `json:"reasoning,omitempty"`
	// Model is who answered, as the provider has it.
	Model string      `json:"model,omitempty"`
	Usage model.Usage `json:"usage"`
	Cost  model.Cost  `json:"cost"`
	// TotalUsage and TotalCost are those of the attempt, this call included.
	TotalUsage model.Usage          `json:"total_usage"`
	TotalCost  model.Cost           `json:"total_cost"`
	Duration   trajectories.Seconds `json:"duration,omitempty"`
	Commands   []string             `json:"commands,omitempty"` // that it asks for
}

// Decided says what supervision made of a command, before it runs or does not.
type Decided struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	// Action is "allow" or "deny"; By and Rule say who decided, and by what.
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// ActionStarted says that a command begins to run.
type ActionStarted struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	// User says that it is a person's own command, and not the model's.
	User bool `json:"user,omitempty"`
}

// OutputChunk is the next piece of the output of the command that runs. The
// chunks of a command, one after the other, are what is kept of its output (see
// env.Command.Watch): the beginning comes as it is written, an end that is
// further away than may be kept comes in one go when the command is over.
type OutputChunk struct {
	Step int                `json:"step"`
	Data trajectories.Bytes `json:"data"`
}

// ActionEnded says what a command did.
type ActionEnded struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	User    bool   `json:"user,omitempty"`
	// ExitCode is 128+Signal after a signal, and -1 where the command timed out
	// or never ran.
	ExitCode int                  `json:"exit_code"`
	Signal   int                  `json:"signal,omitempty"`
	TimedOut bool                 `json:"timed_out,omitempty"`
	Duration trajectories.Seconds `json:"duration"`
	// Bytes is the length of the whole output. When Truncated, the chunks have
	// its first Head bytes, and then its end.
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated,omitempty"`
	Head      int   `json:"head,omitempty"`
	// Exception says in words what kept the command from running to its end.
	Exception string `json:"exception,omitempty"`
}

// FormatError says that a reply could not be acted on; Text is what the model
// is told, or what is wrong where the attempt ends with it.
type FormatError struct {
	Step int    `json:"step"`
	Text string `json:"text"`
}

// Told is what the model is told by a person: Cause says on what occasion, as
// in the journal.
type Told struct {
	Step  int                `json:"step"`
	Cause trajectories.Cause `json:"cause"`
	Text  string             `json:"text"`
}

// The values of LimitReached.Which.
const (
	LimitSteps = "steps"
	LimitCost  = "cost"
	LimitTime  = "time"
)

// LimitReached says that the attempt has come to a limit. It ends, unless the
// limit was raised.
type LimitReached struct {
	Which string `json:"which"`
	// Steps and Cost are the limits that hold from now on; 0 is none.
	Steps  int        `json:"steps,omitempty"`
	Cost   model.Cost `json:"cost,omitempty"`
	Raised bool       `json:"raised,omitempty"`
}

// ToolCalled says that a command asked for something by mini-tool, and was
// answered.
type ToolCalled struct {
	Step     int                  `json:"step"`
	Name     string               `json:"name"`
	Args     []string             `json:"args,omitempty"`
	ExitCode int                  `json:"exit_code"`
	Duration trajectories.Seconds `json:"duration"`
	// Details are what the tool says for people and programs, beside its answer.
	Details json.RawMessage `json:"details,omitempty"`
}

// ChildWorked says what a child does that the command under way asked for: that
// it began (Task), that it is about to run a command (Command), or how it ended
// (ExitStatus).
type ChildWorked struct {
	Step int `json:"step"` // the parent's
	// Child is its number within the attempt, Depth 1 for a child of the attempt
	// itself.
	Child      int        `json:"child"`
	Depth      int        `json:"depth"`
	Task       string     `json:"task,omitempty"`
	Command    string     `json:"command,omitempty"`
	ExitStatus string     `json:"exit_status,omitempty"`
	Steps      int        `json:"steps,omitempty"`
	Cost       model.Cost `json:"cost,omitempty"`
}

// Text is the event as a line for people. Its parts are a model's: whoever shows it
// makes it fit for a terminal.
func (e ChildWorked) Text() string {
	switch {
	case e.ExitStatus != "":
		return fmt.Sprintf("child %d ended: %s, steps: %d", e.Child, e.ExitStatus, e.Steps)
	case e.Command != "":
		return fmt.Sprintf("child %d $ %s", e.Child, e.Command)
	}
	return fmt.Sprintf("child %d begins: %s", e.Child, e.Task)
}

// Compacted says that the model no longer gets the whole history, but other
// messages in place of some. Tokens are about how many the prompt has.
type Compacted struct {
	Step int `json:"step"`
	// Policy is how the history was made shorter: "elide" or "summarize".
	Policy         string `json:"policy"`
	MessagesBefore int    `json:"messages_before"`
	MessagesAfter  int    `json:"messages_after"`
	TokensBefore   int64  `json:"tokens_before,omitempty"`
	TokensAfter    int64  `json:"tokens_after,omitempty"`
}

// Ended is the last event of a session. It reaches every subscriber that reads
// on, however many events that one lost.
type Ended struct {
	Outcome trajectories.Outcome `json:"outcome"`
}

// Lost stands where events were that a subscriber was too slow for; its number
// is that of the newest of them. Nobody publishes it: each subscriber has its
// own.
type Lost struct {
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
func (Told) Kind() Kind { return KindTold }

// Kind implements Event.
func (LimitReached) Kind() Kind { return KindLimitReached }

// Kind implements Event.
func (ToolCalled) Kind() Kind { return KindToolCalled }

// Kind implements Event.
func (ChildWorked) Kind() Kind { return KindChildWorked }

// Kind implements Event.
func (Compacted) Kind() Kind { return KindCompacted }

// Kind implements Event.
func (Ended) Kind() Kind { return KindEnded }

// Kind implements Event.
func (Lost) Kind() Kind { return KindLost }
