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
	TypeHeader  Type = "header"  // Header: the first record
	TypeImport  Type = "import"  // Import: another agent's file this was made from
	TypeResume  Type = "resume"  // Resume: an interrupted attempt goes on
	TypeReplay  Type = "replay"  // Replay: a command of the past, run again to rebuild a sandbox
	TypeMessage Type = "message" // Message: a turn of the conversation
	TypeContext Type = "context" // Context: what the next call was sent, if not all messages
	TypeSummary Type = "summary" // Call: what a summary of messages took; it is no step
	// Compaction: what stands in place of earlier messages from here on.
	TypeCompaction Type = "compaction"
	TypeCall       Type = "call"      // Call: what one query of the model took
	TypeExecution  Type = "execution" // Execution: what one command did
	TypeTool       Type = "tool"      // ToolCall: what a command asked of mini, before its execution
	TypeSpent      Type = "spent"     // Spent: a call of a child's model, paid for by this attempt
	TypeDecision   Type = "decision"  // Decision: whether a command might run, and who said so
	TypeLimits     Type = "limits"    // Limits: a person raised them
	TypeScrub      Type = "scrub"     // Scrub: the repository was made honest
	TypeStart      Type = "start"     // Start: how the user's own files were before the work
	TypeCheck      Type = "check"     // Check: a submission was held against the files of the start
	TypeDiff       Type = "diff"      // Diff: the working tree at the end
	TypeOutcome    Type = "outcome"   // Outcome: the last record of a finished attempt
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
	// Redacted says, of a record that was just appended, that Data is not all that
	// was given: see Header.Redact.
	Redacted bool `json:"-"`
}

// Header says whose journal this is.
type Header struct {
	Format      string `json:"format"`
	MiniVersion string `json:"mini_version"`
	InstanceID  string `json:"instance_id"`
	Attempt     int    `json:"attempt"`
	// Sample is which of the attempts that were asked for (-k) this is a try of,
	// from 1 on; 0 is read as 1. Tries of one sample replace each other, samples
	// stand side by side.
	Sample int `json:"sample,omitempty"`
	// Origin is where this journal branches off another one; nil for an attempt
	// from the start.
	Origin *Origin `json:"origin,omitempty"`
	// Parent is whose child made this journal; nil for an attempt of its own.
	Parent *Parent `json:"parent,omitempty"`
	// Image, Model and the configuration that made this attempt; secrets are
	// not part of it.
	Image            string          `json:"image,omitempty"`
	ModelClass       string          `json:"model_class,omitempty"`
	ModelName        string          `json:"model_name,omitempty"`
	EnvironmentClass string          `json:"environment_class,omitempty"`
	Config           json.RawMessage `json:"config,omitempty"`
	// Tools are those that every request offered to the model.
	Tools []model.Definition `json:"tools,omitempty"`
	// Redact returns a text without the keys of this machine, or the text itself.
	// Every record of the journal goes through it; nil changes nothing.
	Redact func(text []byte) []byte `json:"-"`
}

// Origin is the point of another journal that a journal goes on from. The
// records up to there are repeated in it, so that it can be read alone.
type Origin struct {
	InstanceID string `json:"instance_id,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	// Run is the name of the parent's run, or of its file where it has none.
	Run string `json:"run,omitempty"`
	// SHA256 is that of the parent's file, in hex.
	SHA256 string `json:"sha256"`
	// Record is the last one that was taken over, Step the model calls up to it.
	Record int `json:"record"`
	Step   int `json:"step"`
}

// Import says which file of another format a journal was made from, and what
// of it could not be kept.
type Import struct {
	Format string `json:"format"` // as the file names it, or as mini calls it
	File   string `json:"file"`   // its base name
	SHA256 string `json:"sha256"` // of its bytes, in hex
	// Row is the conversation's place in a file of several, from 1 on; 0 where
	// the file is of one attempt.
	Row int `json:"row,omitempty"`
	// Agent is who made the trajectory, as far as the file says.
	Agent        string `json:"agent,omitempty"`
	AgentVersion string `json:"agent_version,omitempty"`
	// Lost names what has no place in a journal, a sentence each.
	Lost []string `json:"lost,omitempty"`
	// Extra is what the file says of the whole attempt beyond the messages, as
	// it stands there.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Resume says that the attempt goes on after the record it names: what stands
// between that one and this is the end of an earlier session.
type Resume struct {
	MiniVersion string `json:"mini_version"`
	Record      int    `json:"record"`
	// Redact is that of Header.
	Redact func(text []byte) []byte `json:"-"`
}

// Replay is a command of the past that was run again, and what came of it.
type Replay struct {
	Record int    `json:"record"` // the execution that was repeated
	Match  string `json:"match"`  // "exact", "normalised", "output differs" or "diverged"
	// Difference is the first thing that is another, where the output differs or it diverged.
	Difference string  `json:"difference,omitempty"`
	Duration   Seconds `json:"duration"`
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
	// CauseNotRun answers a tool call that was not run, or not to its end: the
	// attempt ended before, or an earlier call of its reply did not go through.
	CauseNotRun Cause = "not_run"
	// CauseMalformedPatch: what was handed in does not apply. The message
	// stands where the observation of the submit command would.
	CauseMalformedPatch Cause = "malformed_patch"
	// What people say while the agent works: after they interrupted it, without
	// that, and when it had handed in its work.
	CauseInterruption Cause = "interruption"
	CauseSteer        Cause = "steer"
	CauseFollowUp     Cause = "follow_up"
	// CauseCommand tells of a command that a person ran in place of the model; it
	// has the command as its only action, and its execution stands before it.
	CauseCommand Cause = "command"
)

// Message is one turn as the model saw or wrote it, byte for byte.
type Message struct {
	model.Message
	Cause Cause `json:"cause"`
	// Actions are the commands found in a reply.
	Actions []string `json:"actions,omitempty"`
}

// Call is what one query of the model took. It precedes the reply's message;
// a call that failed has an Error and no message. Waited is the part of the
// duration that was spent waiting for the provider, which does not count
// against the attempt's time.
type Call struct {
	Usage    model.Usage  `json:"usage"`
	Cost     model.Cost   `json:"cost"`
	Finish   model.Finish `json:"finish_reason,omitempty"`
	Model    string       `json:"model,omitempty"`
	Start    time.Time    `json:"start"`
	Duration Seconds      `json:"duration"`
	Waited   Seconds      `json:"waited,omitempty"`
	Tries    int          `json:"tries"`
	// Attempts are the requests, where there was more than one, or a wait.
	Attempts []Attempt       `json:"attempts,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Error    string          `json:"error,omitempty"`
	// Tree is git's hash of the working tree as the commands before the call left
	// it, ignored files left out; empty where it was not taken.
	Tree string `json:"tree,omitempty"`
}

// Attempt is one request of a call. The fields are those of model.Attempt.
type Attempt struct {
	Model      string       `json:"model,omitempty"`
	Queued     Seconds      `json:"queued,omitempty"` // before it
	Start      *time.Time   `json:"start,omitempty"`  // nil where it was never sent
	Duration   Seconds      `json:"duration"`
	Waited     Seconds      `json:"waited,omitempty"` // after it
	Status     model.Status `json:"status,omitempty"`
	Code       int          `json:"code,omitempty"`
	RetryAfter Seconds      `json:"retry_after,omitempty"`
	Error      string       `json:"error,omitempty"`
	Usage      *model.Usage `json:"usage,omitempty"`
	Cost       model.Cost   `json:"cost,omitempty"`
}

// Attempts is what a journal keeps of the requests of a call: nothing of one
// that was answered without a wait, for the call says all of it.
func Attempts(all []model.Attempt) []Attempt {
	if len(all) == 1 && all[0].Error == "" && all[0].Queued < time.Millisecond {
		return nil
	}
	var kept []Attempt
	for _, a := range all {
		k := Attempt{
			Model: a.Model, Queued: Seconds(a.Queued), Duration: Seconds(a.Elapsed), Waited: Seconds(a.Waited),
			Status: a.Status, Code: a.Code, RetryAfter: Seconds(a.RetryAfter), Error: a.Error, Cost: a.Cost,
		}
		if !a.Start.IsZero() {
			k.Start = &a.Start
		}
		if a.Usage != (model.Usage{}) {
			k.Usage = &a.Usage
		}
		kept = append(kept, k)
	}
	return kept
}

// Execution is what one command did; it precedes the observation made of it.
// The fields are those of env.Result.
type Execution struct {
	Command   string `json:"command"`
	Output    Bytes  `json:"output"`
	Head      int    `json:"head,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	Bytes     int64  `json:"bytes"`
	Chars     int64  `json:"chars"`
	ExitCode  int    `json:"returncode"`
	// CodeUnknown says that nobody wrote down the exit code, which is then 0:
	// the attempt was another agent's.
	CodeUnknown bool      `json:"returncode_unknown,omitempty"`
	Signal      int       `json:"signal,omitempty"`
	Start       time.Time `json:"start"`
	Duration    Seconds   `json:"duration"`
	TimedOut    bool      `json:"timed_out,omitempty"`
	Killed      int       `json:"killed,omitempty"`
	Survivors   int       `json:"survivors,omitempty"`
	Collateral  bool      `json:"collateral,omitempty"`
	Background  []Process `json:"background,omitempty"`
	OOMKilled   int       `json:"oom_killed,omitempty"`
	// Exception is the sentence the model was told beside the output.
	Exception string `json:"exception,omitempty"`
	// Person says that the command was a person's, and no reply asked for it.
	Person bool `json:"person,omitempty"`
}

// form is an Execution as a journal writes it. What a method has written is gone
// through once more by the encoder, and that would cost more than all the rest: an
// output is the bulk of what is saved.
func (x Execution) form() any {
	type rest Execution
	return struct {
		Command string `json:"command"`
		Output  any    `json:"output"`
		rest
	}{x.Command, x.Output.form(), rest(x)}
}

// Process is a process that a command left running.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Verb is what becomes of a command.
type Verb string

// The verbs: a command runs, somebody is to be asked, or it does not run.
const (
	Allow Verb = "allow"
	Ask   Verb = "ask"
	Deny  Verb = "deny"
)

// Ruling is what somebody decided on a command.
type Ruling struct {
	Action Verb `json:"action"`
	// Reason is for the model, of a command that does not run.
	Reason string `json:"reason,omitempty"`
	// By is who decided: "user", "mode" (commands run unasked), "whitelist", "rule",
	// "default" (no rule fits), "decider" (another program) or "unattended" (nobody
	// was there to be asked); Rule names the rule.
	By   string `json:"by,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Before are those who passed the question on, the first of them first.
	Before []Ruling `json:"before,omitempty"`
}

// Decision is a ruling on a command of a reply. It stands before the execution.
type Decision struct {
	Command string `json:"command"`
	Ruling
}

// Limits bound the model calls and the US dollars of an attempt; 0 is no limit.
type Limits struct {
	Steps int     `json:"steps"`
	Cost  float64 `json:"cost"`
}

// Source says where a submission comes from.
type Source string

// The sources of submissions.
const (
	SourceSubmitted Source = "submitted" // the agent's own word
	SourceWorktree  Source = "worktree"  // the working diff, as mini took it
)

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
	// Source says what the submission is; empty where there is none. It is the
	// working diff also where the agent handed in nothing, or nothing that
	// applies.
	Source Source `json:"source,omitempty"`
	// Differs says that the submission, the agent's own word, gives other
	// files than the working tree had.
	Differs bool `json:"differs,omitempty"`
	// PartialPatch is the working diff of an attempt that does not count.
	PartialPatch Bytes `json:"partial_patch,omitempty"`
	// Error explains classes that do not count; Hint says what to do; Stack
	// is there for InternalError.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	Stack string `json:"stack,omitempty"`

	// Steps are model calls. Those of children, of which ChildSteps are, count with
	// them, and so do their Usage and Cost.
	Steps      int         `json:"steps"`
	ChildSteps int         `json:"child_steps,omitempty"`
	Usage      model.Usage `json:"usage"`
	Cost       model.Cost  `json:"cost"`
	Start      time.Time   `json:"start"`
	End        time.Time   `json:"end"`
	// Idle is the part of that time in which nobody worked on it: between an
	// interruption and going on.
	Idle Seconds `json:"idle,omitempty"`
	// Times say where the time went, of all sessions together.
	Times Times `json:"times,omitzero"`
	// Warnings are the sandbox's and the patch's.
	Warnings []string `json:"warnings,omitempty"`
}

// Took is how long an attempt was worked on, all sessions together.
func (o Outcome) Took() time.Duration { return o.End.Sub(o.Start) - time.Duration(o.Idle) }
