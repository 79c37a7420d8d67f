// Package trajectories is what is left of an attempt: an append-only journal,
// which is the truth, and the files derived from it for other tools
// (.traj.json in the form of mini-swe-agent, preds.json as the SWE-bench
// harness reads it).
//
// A journal is a file of JSON lines. Each line is a Record; the records of one
// attempt form a tree through their parents (a line, until someone branches).
// Nothing in it is ever changed.
package trajectories

import (
	"encoding/json"
	"time"

	"github.com/minibench/mini/model"
)

// Format names the journal's layout; it stands in its first record.
const Format = "mini-1"

// Type says what the data of a record is.
type Type string

// The types of records. Readers pass over types they do not know.
const (
	TypeHeader    Type = "header"    // Header: the first record
	TypeMessage   Type = "message"   // Message: a turn of the conversation
	TypeCall      Type = "call"      // Call: what one query of the model took
	TypeExecution Type = "execution" // Execution: what one command did
	TypeDiff      Type = "diff"      // Diff: the working tree at the end
	TypeOutcome   Type = "outcome"   // Outcome: the last record of a finished attempt
)

// Record is one line of a journal.
type Record struct {
	// ID counts from 1 within a journal; Parent is the record this one
	// follows, 0 for the first.
	ID     int             `json:"id"`
	Parent int             `json:"parent_id"`
	Type   Type            `json:"type"`
	Time   time.Time       `json:"time"`
	Data   json.RawMessage `json:"data"`
}

// Header says whose journal this is.
type Header struct {
	Format      string `json:"format"`
	MiniVersion string `json:"mini_version"`
	InstanceID  string `json:"instance_id"`
	Attempt     int    `json:"attempt"`
	// Image, Model and the configuration that made this attempt; secrets are
	// not part of it.
	Image            string          `json:"image,omitempty"`
	ModelClass       string          `json:"model_class,omitempty"`
	ModelName        string          `json:"model_name,omitempty"`
	EnvironmentClass string          `json:"environment_class,omitempty"`
	Config           json.RawMessage `json:"config,omitempty"`
}

// Cause says why a message stands in the conversation.
type Cause string

// The causes of messages that are not plain turns.
const (
	CausePrompt      Cause = "prompt"       // the system and instance prompts
	CauseReply       Cause = "reply"        // the model's
	CauseObservation Cause = "observation"  // what a command gave
	CauseFormatError Cause = "format_error" // the model is told how to write actions
	CauseRejection   Cause = "rejection"    // the user did not let a command run
)

// Message is one turn as the model saw or wrote it, byte for byte.
type Message struct {
	model.Message
	Cause Cause `json:"cause"`
	// Actions are the commands found in a reply.
	Actions []string `json:"actions,omitempty"`
}

// Call is what one query of the model took. It precedes the reply's message;
// a call that failed has an Error and no message.
type Call struct {
	Usage    model.Usage     `json:"usage"`
	Cost     model.Cost      `json:"cost"`
	Finish   model.Finish    `json:"finish_reason,omitempty"`
	Model    string          `json:"model,omitempty"`
	Start    time.Time       `json:"start"`
	Duration Seconds         `json:"duration"`
	Waited   Seconds         `json:"waited,omitempty"`
	Tries    int             `json:"tries"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// Execution is what one command did; it precedes the observation made of it.
// The fields are those of env.Result.
type Execution struct {
	Command    string    `json:"command"`
	Output     Bytes     `json:"output"`
	Head       int       `json:"head,omitempty"`
	Truncated  bool      `json:"truncated,omitempty"`
	Bytes      int64     `json:"bytes"`
	Chars      int64     `json:"chars"`
	ExitCode   int       `json:"returncode"`
	Signal     int       `json:"signal,omitempty"`
	Start      time.Time `json:"start"`
	Duration   Seconds   `json:"duration"`
	TimedOut   bool      `json:"timed_out,omitempty"`
	Killed     int       `json:"killed,omitempty"`
	Survivors  int       `json:"survivors,omitempty"`
	Collateral bool      `json:"collateral,omitempty"`
	Background []Process `json:"background,omitempty"`
	OOMKilled  int       `json:"oom_killed,omitempty"`
	// Exception is the sentence the model was told beside the output.
	Exception string `json:"exception,omitempty"`
}

// Process is a process that a command left running.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Diff is the working tree at the end of an attempt, against HEAD as it was at
// the start. Error says why there is none.
type Diff struct {
	Base  string `json:"base,omitempty"`
	Patch Bytes  `json:"patch"`
	Error string `json:"error,omitempty"`
}

// Class says what an ending means for everything that follows.
type Class string

// The classes of outcomes.
const (
	Submitted   Class = "submitted"   // the agent handed in its work
	Limit       Class = "limit"       // a limit ended it; the working diff is the submission
	Provider    Class = "provider"    // the model's provider failed; does not count
	Environment Class = "environment" // the sandbox failed; does not count
	Interrupted Class = "interrupted" // the user, or the run's budget, stopped it
	Internal    Class = "internal"    // a defect of mini
)

// Counts says whether an attempt that ended so is a result of its instance;
// otherwise the instance is run again when the run is resumed.
func (c Class) Counts() bool { return c == Submitted || c == Limit }

// Retried says whether the same run tries again after such an ending.
func (c Class) Retried() bool { return c == Provider || c == Environment }

// Outcome is how an attempt ended, with its totals.
type Outcome struct {
	Class      Class  `json:"class"`
	ExitStatus string `json:"exit_status"`
	// Submission is the patch the attempt ends with, byte for byte; only
	// classes that count have one. Autosubmitted says that it is the working
	// diff, not the agent's own word.
	Submission    Bytes `json:"submission"`
	Autosubmitted bool  `json:"autosubmitted,omitempty"`
	// PartialPatch is the working diff of an attempt that does not count.
	PartialPatch Bytes `json:"partial_patch,omitempty"`
	// Error explains classes that do not count; Hint says what to do; Stack
	// is there for InternalError.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	Stack string `json:"stack,omitempty"`

	Steps int         `json:"steps"` // model calls
	Usage model.Usage `json:"usage"`
	Cost  model.Cost  `json:"cost"`
	Start time.Time   `json:"start"`
	End   time.Time   `json:"end"`
	// Warnings are the sandbox's and the patch's.
	Warnings []string `json:"warnings,omitempty"`
}
