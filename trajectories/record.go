// Package trajectories reads and writes the records of an attempt: the run of an
// agent on one task. The records are kept in an append-only journal. Other files are
// derived from it: .traj.json in the format of mini-swe-agent, and preds.json for the
// SWE-bench harness.
//
// A journal is a file of JSON lines. Each line is a Record. Records form a tree
// through their parent IDs; the tree has one branch unless an interrupted attempt was
// resumed from an earlier record. Records are never changed.
package trajectories

import (
	"encoding/json"
	"time"

	"github.com/minibench/mini/model"
)

// Format is the version of the journal format. The header record contains it.
const Format = "mini-1"

// Type is the type of a record. It determines the type of Record.Data.
type Type string

// The record types. Readers ignore types they do not know.
const (
	TypeHeader  Type = "header"  // Header: the first record
	TypeImport  Type = "import"  // Import: the file of another agent that this journal was made from
	TypeResume  Type = "resume"  // Resume: an interrupted attempt was resumed
	TypeReplay  Type = "replay"  // Replay: a recorded command was run again to rebuild the sandbox
	TypeMessage Type = "message" // Message: a message of the conversation
	TypeContext Type = "context" // Context: the prompt of the next call, if it is not all messages
	TypeSummary Type = "summary" // Call: a model call that summarized messages; it is not a step
	// Compaction: messages that replace earlier ones from here on.
	TypeCompaction Type = "compaction"
	TypeCall       Type = "call"      // Call: a model call
	TypeExecution  Type = "execution" // Execution: a command and its result
	TypeTool       Type = "tool"      // ToolCall: a mini-tool request, before the execution of its command
	TypeChildCall  Type = "spent"     // ChildCall: a model call of a subagent, charged to this attempt
	TypeDecision   Type = "decision"  // CommandDecision: whether a command may run, and who decided
	TypeLimits     Type = "limits"    // Limits: the user raised the limits
	TypeScrub      Type = "scrub"     // Scrub: commits after HEAD were removed from the repository
	TypeStartState Type = "start"     // StartState: the user's own files before the agent changed them
	TypePatchCheck Type = "check"     // PatchCheck: whether a submission applies to the files at the start
	TypeDiff       Type = "diff"      // Diff: the working tree diff at the end
	TypeOutcome    Type = "outcome"   // Outcome: the last record of a finished attempt
)

// Record is one line of a journal.
type Record struct {
	// ID counts from 1 within a journal. Parent is the ID of the preceding record, 0
	// for the first.
	ID     int             `json:"id"`
	Parent int             `json:"parent_id"`
	Type   Type            `json:"type"`
	Time   time.Time       `json:"time"`
	Data   json.RawMessage `json:"data"`
	// Redacted is set by Journal.Append if Header.Redact changed the data.
	Redacted bool `json:"-"`
}

// Header identifies the attempt of a journal.
type Header struct {
	Format      string `json:"format"`
	MiniVersion string `json:"mini_version"`
	InstanceID  string `json:"instance_id"`
	Attempt     int    `json:"attempt"`
	// Repetition numbers the repetitions of the instance (-k), from 1; 0 means 1.
	// Retries of a repetition replace each other; repetitions are independent.
	Repetition int `json:"sample,omitempty"`
	// Origin is the point where this journal was forked from another one; nil if it
	// was not forked.
	Origin *Origin `json:"origin,omitempty"`
	// Parent identifies the attempt that started this one as a subagent; nil for
	// others.
	Parent *Parent `json:"parent,omitempty"`
	// Image, model and configuration of the attempt. Config contains no secrets.
	Image            string          `json:"image,omitempty"`
	ModelClass       string          `json:"model_class,omitempty"`
	ModelName        string          `json:"model_name,omitempty"`
	EnvironmentClass string          `json:"environment_class,omitempty"`
	Config           json.RawMessage `json:"config,omitempty"`
	// Tools are the tool definitions sent with every request.
	Tools []model.ToolDefinition `json:"tools,omitempty"`
	// Redact removes the API keys of this machine from text. It is applied to every
	// record; nil disables it.
	Redact func(text []byte) []byte `json:"-"`
}

// Origin is the point of another journal that this journal was forked from. The
// records up to that point are copied, so the fork is complete by itself.
type Origin struct {
	InstanceID string `json:"instance_id,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	// Run is the name of the original run, or of the original file if there is no
	// run.
	Run string `json:"run,omitempty"`
	// SHA256 is the checksum of the original journal, in hex.
	SHA256 string `json:"sha256"`
	// Record is the last copied record; Step counts the model calls up to it.
	Record int `json:"record"`
	Step   int `json:"step"`
}

// Import describes the file of another format that a journal was made from, and the
// information that was lost.
type Import struct {
	Format string `json:"format"` // as named in the file, else mini's name for the format
	File   string `json:"file"`   // base name
	SHA256 string `json:"sha256"` // of the file, in hex
	// Row is the position of the conversation in a file of several, from 1; 0 if the
	// file contains one attempt.
	Row int `json:"row,omitempty"`
	// Agent is the agent that made the trajectory, if the file names it.
	Agent        string `json:"agent,omitempty"`
	AgentVersion string `json:"agent_version,omitempty"`
	// Losses are sentences about information that a journal cannot represent.
	Losses []string `json:"lost,omitempty"`
	// Extra is the file's data about the whole attempt, unchanged.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Resume records that the attempt continues after Record. The records between that
// one and this belong to an abandoned end of an earlier session.
type Resume struct {
	MiniVersion string `json:"mini_version"`
	Record      int    `json:"record"`
	// Redact is as in Header.
	Redact func(text []byte) []byte `json:"-"`
}

// Replay is the result of running a recorded command again.
type Replay struct {
	Record int    `json:"record"` // the repeated execution
	Match  string `json:"match"`  // "exact", "normalised", "output differs" or "diverged"
	// Difference is the first difference, if Match is "output differs" or "diverged".
	Difference string  `json:"difference,omitempty"`
	Duration   Seconds `json:"duration"`
}

// Cause is the reason why a message is in the conversation.
type Cause string

// The causes of messages. Plain user messages have none.
const (
	CausePrompt      Cause = "prompt"       // a system or instance prompt
	CauseReply       Cause = "reply"        // written by the model
	CauseObservation Cause = "observation"  // the output of a command
	CauseFormatError Cause = "format_error" // explains the expected action format to the model
	CauseRejection   Cause = "rejection"    // the user rejected a command
	// CauseNotRun answers a tool call that did not run or did not finish, because the
	// attempt ended or an earlier call of the same reply failed.
	CauseNotRun Cause = "not_run"
	// CauseMalformedPatch reports that the submitted patch does not apply. The
	// message replaces the observation of the submit command.
	CauseMalformedPatch Cause = "malformed_patch"
	// Messages of the user while the agent runs: after an interruption, without one,
	// and after a submission.
	CauseInterruption Cause = "interruption"
	CauseSteer        Cause = "steer"
	CauseFollowUp     Cause = "follow_up"
	// CauseUserCommand reports a command that the user ran. The command is the
	// message's only action; its execution precedes the message.
	CauseUserCommand Cause = "command"
)

// Message is a message of the conversation, exactly as the model received or wrote
// it.
type Message struct {
	model.Message
	Cause Cause `json:"cause"`
	// Actions are the commands parsed from a reply.
	Actions []string `json:"actions,omitempty"`
}

// Call is a model call. It precedes the message of the reply; a failed call has an
// Error and no message. Waited is the part of Duration spent waiting for the
// provider. It does not count against the time limit of the attempt.
type Call struct {
	Usage        model.Usage        `json:"usage"`
	Cost         model.Cost         `json:"cost"`
	Finish       model.FinishReason `json:"finish_reason,omitempty"`
	Model        string             `json:"model,omitempty"`
	Start        time.Time          `json:"start"`
	Duration     Seconds            `json:"duration"`
	Waited       Seconds            `json:"waited,omitempty"`
	RequestCount int                `json:"tries"`
	// Requests are the requests of the call. It is empty if there was one request and
	// no wait.
	Requests []Request       `json:"attempts,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Error    string          `json:"error,omitempty"`
	// Tree is git's hash of the working tree before the call, without ignored files;
	// empty if it was not recorded.
	Tree string `json:"tree,omitempty"`
}

// Request is one request of a call. The fields are those of model.Request.
type Request struct {
	Model      string       `json:"model,omitempty"`
	Queued     Seconds      `json:"queued,omitempty"` // wait before the request
	Start      *time.Time   `json:"start,omitempty"`  // nil if the request was not sent
	Duration   Seconds      `json:"duration"`
	Waited     Seconds      `json:"waited,omitempty"` // wait after the request
	Status     model.Status `json:"status,omitempty"`
	Code       int          `json:"code,omitempty"`
	RetryAfter Seconds      `json:"retry_after,omitempty"`
	Error      string       `json:"error,omitempty"`
	Usage      *model.Usage `json:"usage,omitempty"`
	Cost       model.Cost   `json:"cost,omitempty"`
}

// RecordRequests converts the requests of a call. It returns nil for a single request
// without a wait, since Call describes it completely.
func RecordRequests(attempts []model.Request) []Request {
	if len(attempts) == 1 && attempts[0].Error == "" && attempts[0].Queued < time.Millisecond {
		return nil
	}
	var requests []Request
	for _, a := range attempts {
		r := Request{
			Model: a.Model, Queued: Seconds(a.Queued), Duration: Seconds(a.Elapsed), Waited: Seconds(a.Waited),
			Status: a.Status, Code: a.Code, RetryAfter: Seconds(a.RetryAfter), Error: a.Error, Cost: a.Cost,
		}
		if !a.Start.IsZero() {
			r.Start = &a.Start
		}
		if a.Usage != (model.Usage{}) {
			r.Usage = &a.Usage
		}
		requests = append(requests, r)
	}
	return requests
}

// Execution is the result of a command. It precedes the message with the observation.
// The fields are those of env.Result.
type Execution struct {
	Command string `json:"command"`
	// Output is the beginning and the end of the output if Truncated is set; Head is
	// the length of the beginning. Bytes and Chars are the size of the whole output.
	Output    Bytes `json:"output"`
	Head      int   `json:"head,omitempty"`
	Truncated bool  `json:"truncated,omitempty"`
	Bytes     int64 `json:"bytes"`
	Chars     int64 `json:"chars"`
	ExitCode  int   `json:"returncode"`
	// ExitCodeUnknown is set for imported attempts whose file has no exit code;
	// ExitCode is then 0.
	ExitCodeUnknown bool      `json:"returncode_unknown,omitempty"`
	Signal          int       `json:"signal,omitempty"`
	Start           time.Time `json:"start"`
	Duration        Seconds   `json:"duration"`
	TimedOut        bool      `json:"timed_out,omitempty"`
	// Killed and Survivors count the processes that were killed, and those that could
	// not be. Collateral is set if processes of earlier commands were killed too.
	Killed     int       `json:"killed,omitempty"`
	Survivors  int       `json:"survivors,omitempty"`
	Collateral bool      `json:"collateral,omitempty"`
	Background []Process `json:"background,omitempty"`
	OOMKilled  int       `json:"oom_killed,omitempty"`
	// Exception is the error message shown to the model besides the output.
	Exception string `json:"exception,omitempty"`
	// ByUser is set for a command that the user ran, not the model.
	ByUser bool `json:"person,omitempty"`
}

// jsonValue returns a value that encodes like x, but without calling
// Bytes.MarshalJSON. The encoder would scan its result a second time, which is
// expensive for large outputs.
func (x Execution) jsonValue() any {
	type rest Execution
	return struct {
		Command string `json:"command"`
		Output  any    `json:"output"`
		rest
	}{x.Command, x.Output.jsonValue(), rest(x)}
}

// Process is a process that a command left running in the background.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// DecisionAction is what happens with a command.
type DecisionAction string

// The actions: run the command, ask for approval, or reject it.
const (
	Allow DecisionAction = "allow"
	Ask   DecisionAction = "ask"
	Deny  DecisionAction = "deny"
)

// Decision is the decision of an approver about a command.
type Decision struct {
	Action DecisionAction `json:"action"`
	// Reason is shown to the model if the command does not run.
	Reason string `json:"reason,omitempty"`
	// By is the approver: "user", "mode" (run without asking), "whitelist", "rule",
	// "default" (no rule matches), "decider" (an external program) or "unattended"
	// (no user to ask). Rule is the matching rule.
	By   string `json:"by,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Previous are the earlier decisions to ask, oldest first.
	Previous []Decision `json:"before,omitempty"`
}

// CommandDecision is the decision about a command of a reply. It precedes the
// execution.
type CommandDecision struct {
	Command string `json:"command"`
	Decision
}

// Limits are the maximum number of model calls and the maximum cost in US dollars. 0
// means no limit.
type Limits struct {
	Steps int     `json:"steps"`
	Cost  float64 `json:"cost"`
}

// Source is the origin of a submission.
type Source string

// The sources of submissions.
const (
	SourceSubmitted Source = "submitted" // submitted by the agent
	SourceWorktree  Source = "worktree"  // the working tree diff, taken by mini
)

// Class classifies how an attempt ended.
type Class string

// The outcome classes.
const (
	Submitted   Class = "submitted"   // the agent submitted a patch
	Limit       Class = "limit"       // a limit was reached; the working tree diff is the submission
	Provider    Class = "provider"    // the model provider failed; not a result
	Environment Class = "environment" // the sandbox failed; not a result
	Interrupted Class = "interrupted" // the user or the budget of the run stopped the attempt; not a result
	Internal    Class = "internal"    // a bug in mini; not a result
)

// Counts reports whether the attempt is a result of its instance. Instances without a
// result are run again when the run is resumed.
func (c Class) Counts() bool { return c == Submitted || c == Limit }

// IsRetryable reports whether the same run retries the attempt.
func (c Class) IsRetryable() bool { return c == Provider || c == Environment }

// Outcome is the end of an attempt, with its totals.
type Outcome struct {
	Class      Class  `json:"class"`
	ExitStatus string `json:"exit_status"`
	// Submission is the final patch, byte for byte. Only classes that count have one.
	// Autosubmitted is set if mini took it from the working tree at a limit.
	Submission    Bytes `json:"submission"`
	Autosubmitted bool  `json:"autosubmitted,omitempty"`
	// Source is the origin of the submission, empty without one. It is SourceWorktree
	// also if the agent submitted nothing or a patch that does not apply.
	Source Source `json:"source,omitempty"`
	// DiffersFromWorktree is set if the patch that the agent submitted does not
	// produce the files of its working tree.
	DiffersFromWorktree bool `json:"differs,omitempty"`
	// PartialPatch is the working tree diff of an attempt that does not count.
	PartialPatch Bytes `json:"partial_patch,omitempty"`
	// Error explains classes that do not count; Hint says what to do about it. Stack
	// is the stack trace of an internal error.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	Stack string `json:"stack,omitempty"`

	// Steps counts model calls. It includes ChildSteps, the calls of subagents. Usage
	// and Cost include subagents too.
	Steps      int         `json:"steps"`
	ChildSteps int         `json:"child_steps,omitempty"`
	Usage      model.Usage `json:"usage"`
	Cost       model.Cost  `json:"cost"`
	Start      time.Time   `json:"start"`
	End        time.Time   `json:"end"`
	// Idle is the time between interruptions and resumes.
	Idle Seconds `json:"idle,omitempty"`
	// Times break down the duration of all sessions.
	Times Times `json:"times,omitzero"`
	// Warnings come from the sandbox and from the patch check.
	Warnings []string `json:"warnings,omitempty"`
}

// ActiveDuration returns the duration of all sessions, without Idle.
func (o Outcome) ActiveDuration() time.Duration { return o.End.Sub(o.Start) - time.Duration(o.Idle) }
