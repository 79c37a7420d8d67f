// Package trajectories reads and writes the records of an attempt. An attempt is one
// run of an agent on a task. Its records are stored in an append-only file, the
// journal. Other files are derived from the journal: .traj.json in the format of
// mini-swe-agent, and preds.json for the SWE-bench harness.
//
// Each line of a journal is a Record in JSON. Records form a tree through their parent
// IDs. The tree has one branch unless an interrupted attempt was resumed from a record
// before the last. Records are never changed.
package trajectories

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// Format is the version of the journal format, stored in Header.Format.
const Format = "mini-1"

// Type is the type of a record. It determines the type of Record.Data.
type Type string

// The record types. The name before each colon is the Go type of Record.Data. Readers
// ignore types that they do not know.
const (
	TypeHeader  Type = "header"  // Header: the first record
	TypeImport  Type = "import"  // Import: the file from which this journal was imported
	TypeResume  Type = "resume"  // Resume: an interrupted attempt was resumed
	TypeReplay  Type = "replay"  // Replay: a recorded command was run again to rebuild the sandbox
	TypeMessage Type = "message" // Message: a message of the conversation
	TypeContext Type = "context" // PromptContext: the prompt of the next call, if it is not the whole conversation
	TypeSummary Type = "summary" // Summary: a model call that summarized messages; it is not a step
	// Compaction: messages that replace earlier ones in later prompts.
	TypeCompaction Type = "compaction"
	TypeCall       Type = "call"      // Call: a model call
	TypeExecution  Type = "execution" // Execution: a command and its result
	TypeTool       Type = "tool"      // ToolCall: a mini-tool request; it precedes the execution of its command
	TypeChildCall  Type = "spent"     // ChildCall: a model call of a subagent, charged to this attempt
	TypeExchange   Type = "exchange"  // Exchange: a model request of an agent other than mini's own
	TypeAgentRun   Type = "agent"     // AgentRun: how an agent other than mini's own ran
	TypeDecision   Type = "decision"  // CommandDecision: whether a command may run, and which approver decided
	TypeLimits     Type = "limits"    // Limits: the user raised the limits
	TypeModel      Type = "model"     // ModelChange: the user switched the model
	TypeScrub      Type = "scrub"     // Scrub: commits other than HEAD and its history were removed
	TypeStartState Type = "start"     // StartState: the files of the user's repository before the agent changed them
	TypePatchCheck Type = "check"     // PatchCheck: whether a submission applies to the initial files
	TypeDiff       Type = "diff"      // Diff: the working tree diff at the end
	TypeOutcome    Type = "outcome"   // Outcome: the last record of a finished attempt
)

// Record is one line of a journal.
type Record struct {
	// ID numbers the records of a journal from 1. Parent is the ID of the record that
	// this one continues, 0 for the first record. Only a resume record may continue
	// another record than the preceding one.
	ID     int             `json:"id"`
	Parent int             `json:"parent_id"`
	Type   Type            `json:"type"`
	Time   time.Time       `json:"time"`
	Data   json.RawMessage `json:"data"`
	// Redacted is set by Journal.Append if the Redact function of the Header or of
	// the Resume changed the data.
	Redacted bool `json:"-"`
}

// Header identifies the attempt of a journal.
type Header struct {
	Format      string `json:"format"`
	MiniVersion string `json:"mini_version"`
	InstanceID  string `json:"instance_id"`
	Attempt     int    `json:"attempt"`
	// Repetition numbers the repetitions of the instance (-k), from 1; 0 means 1. A
	// retry replaces earlier attempts of the same repetition.
	Repetition int `json:"sample,omitempty"`
	// Origin is the record of another journal from which this journal was forked; nil
	// if it was not forked.
	Origin *Origin `json:"origin,omitempty"`
	// Parent identifies the attempt that started this one as a subagent; nil if this
	// is not a subagent.
	Parent *Parent `json:"parent,omitempty"`
	// Session is the unique name that the attempt has for gateways; see model.Conversation.
	Session string `json:"session,omitempty"`
	// Image is the container image. Config is the configuration, without secrets.
	Image            string          `json:"image,omitempty"`
	ModelClass       string          `json:"model_class,omitempty"`
	ModelName        string          `json:"model_name,omitempty"`
	EnvironmentClass string          `json:"environment_class,omitempty"`
	Config           json.RawMessage `json:"config,omitempty"`
	// Tools are the tool definitions sent with every request.
	Tools []model.ToolDefinition `json:"tools,omitempty"`
	// Redact returns text without the API keys of this machine. Journal.Append applies
	// it to every record; nil disables redaction.
	Redact func(text []byte) []byte `json:"-"`
}

// AgentName returns the name of the agent: "mini" for mini's own.
func (h Header) AgentName() string {
	var config struct {
		Agent struct {
			Class string `json:"agent_class"`
		} `json:"agent"`
	}
	_ = json.Unmarshal(h.Config, &config) // imported attempts have none
	if name := filepath.Base(config.Agent.Class); name != "." {
		return strings.TrimSuffix(name, filepath.Ext(name))
	}
	return "mini"
}

// Origin identifies the record of another journal from which this journal was forked.
// The fork starts with copies of the records up to that one, so it can be read without
// the original.
type Origin struct {
	InstanceID string `json:"instance_id,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	// Run is the name of the original run, or the name of the original file if it is
	// not part of a run.
	Run string `json:"run,omitempty"`
	// SHA256 is the checksum of the original journal, in hex.
	SHA256 string `json:"sha256"`
	// Record is the last copied record; Step counts the model calls up to it.
	Record int `json:"record"`
	Step   int `json:"step"`
}

// Import describes the file from which a journal was imported, and the information
// that the import lost.
type Import struct {
	Format string `json:"format"` // the format's name in the file, else mini's name for it
	File   string `json:"file"`   // base name
	SHA256 string `json:"sha256"` // of the file, in hex
	// Row numbers the conversations of a file from 1; 0 if the file is one conversation
	// rather than a list.
	Row int `json:"row,omitempty"`
	// Agent is the agent that made the trajectory, if the file names it.
	Agent        string `json:"agent,omitempty"`
	AgentVersion string `json:"agent_version,omitempty"`
	// Losses are sentences; each describes information that a journal cannot represent.
	Losses []string `json:"lost,omitempty"`
	// Extra is the file's data about the whole attempt, unchanged.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Resume records that the attempt continues after Record. Later records of the earlier
// session are abandoned.
type Resume struct {
	MiniVersion string `json:"mini_version"`
	Record      int    `json:"record"` // ID
	// Redact is the same as Header.Redact, for the records of this session.
	Redact func(text []byte) []byte `json:"-"`
}

// Replay is the result of running a recorded command again.
type Replay struct {
	Record int    `json:"record"` // record ID of the original execution
	Match  string `json:"match"`  // "exact", "normalised", "output differs" or "diverged"
	// Difference describes the first difference, if Match is "output differs" or
	// "diverged".
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
	CauseFormatError Cause = "format_error" // rejects a reply without a valid action
	CauseRejection   Cause = "rejection"    // the user rejected a command
	// CauseNotRun answers a tool call that did not run or did not finish, because the
	// attempt ended or an earlier call of the same reply failed.
	CauseNotRun Cause = "not_run"
	// CauseMalformedPatch reports that the submitted patch does not apply. The
	// message replaces the observation of the submit command.
	CauseMalformedPatch Cause = "malformed_patch"
	CauseInterruption   Cause = "interruption" // the user wrote after interrupting the agent
	CauseSteer          Cause = "steer"        // the user wrote while the agent ran
	CauseFollowUp       Cause = "follow_up"    // the user wrote after a submission
	// CauseUserCommand reports a command that the user ran. The command is the
	// message's only action. The execution record precedes the message.
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

// Call is a model call. It precedes the message with the reply; a failed call has an
// Error and no reply. Waited is the part of Duration spent waiting before and between
// requests, for example during a rate limit. Waited does not count against the attempt's
// time limit.
type Call struct {
	Usage        model.Usage        `json:"usage"`
	Cost         model.Cost         `json:"cost"`
	Finish       model.FinishReason `json:"finish_reason,omitempty"`
	Model        string             `json:"model,omitempty"`
	Start        time.Time          `json:"start"`
	Duration     Seconds            `json:"duration"`
	Waited       Seconds            `json:"waited,omitempty"`
	RequestCount int                `json:"tries"`
	// Requests are the requests of the call. It is empty if there was only one, which
	// succeeded after a wait of less than a millisecond.
	Requests []Request       `json:"attempts,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"` // the provider's response, without Tokens
	Tokens   *Tokens         `json:"tokens,omitempty"`
	Error    string          `json:"error,omitempty"`
	// Tree is git's hash of the working tree before the call, without ignored files;
	// empty if it was not recorded.
	Tree string `json:"tree,omitempty"`
	// Record is the ID of the record. Attempt sets it.
	Record int `json:"-"`
}

// Summary is a model call that summarized messages. It is not a step.
type Summary Call

// Request is one request of a call. The fields are those of model.Request, of which Elapsed
// is here Duration, and HTTPStatus is Code.
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

// RecordRequests converts the requests of a call for Call.Requests. It returns nil for a
// single request that succeeded after a wait of less than a millisecond, since Call
// describes it completely.
func RecordRequests(requests []model.Request) []Request {
	if len(requests) == 1 && requests[0].Error == "" && requests[0].Queued < time.Millisecond {
		return nil
	}
	var converted []Request
	for _, a := range requests {
		r := Request{
			Model: a.Model, Queued: Seconds(a.Queued), Duration: Seconds(a.Elapsed), Waited: Seconds(a.Waited),
			Status: a.Status, Code: a.HTTPStatus, RetryAfter: Seconds(a.RetryAfter), Error: a.Error, Cost: a.Cost,
		}
		if !a.Start.IsZero() {
			r.Start = &a.Start
		}
		if a.Usage != (model.Usage{}) {
			r.Usage = &a.Usage
		}
		converted = append(converted, r)
	}
	return converted
}

// Execution is the result of a command. It precedes the message with the observation.
// Fields that env.Result has too have the same meaning there.
type Execution struct {
	Command string `json:"command"`
	// Output is the output. If Truncated is set, only its beginning, of Head bytes,
	// and its end are stored. Bytes and Chars are the size of the whole output.
	Output    Bytes `json:"output"`
	Head      int   `json:"head,omitempty"`
	Truncated bool  `json:"truncated,omitempty"`
	Bytes     int64 `json:"bytes"`
	Chars     int64 `json:"chars"`
	ExitCode  int   `json:"returncode"`
	// ExitCodeUnknown is set for imported attempts whose file has no exit code, and for a
	// command that did not run because the sandbox failed; ExitCode is then 0.
	ExitCodeUnknown bool      `json:"returncode_unknown,omitempty"`
	Signal          int       `json:"signal,omitempty"`
	Start           time.Time `json:"start"`
	Duration        Seconds   `json:"duration"`
	TimedOut        bool      `json:"timed_out,omitempty"`
	// Killed counts the processes that were killed, Survivors those that could not be
	// killed. KilledEarlierCommands is set if processes of earlier commands were killed too.
	Killed                int       `json:"killed,omitempty"`
	Survivors             int       `json:"survivors,omitempty"`
	KilledEarlierCommands bool      `json:"collateral,omitempty"`
	Background            []Process `json:"background,omitempty"`
	OOMKilled             int       `json:"oom_killed,omitempty"`
	// Exception is the error message shown to the model besides the output.
	Exception string `json:"exception,omitempty"`
	// ByUser is set if the user ran the command, not the model.
	ByUser bool `json:"person,omitempty"`

	// Attempt sets the other fields. Record is the ID of the record. ObservationEntry is the
	// index of the entry that reports the result to the model; -1 if none does, for example
	// after the submit command.
	Record           int `json:"-"`
	ObservationEntry int `json:"-"`
	// ToolCalls are the mini-tool requests of the command, in the order of their responses.
	ToolCalls []ToolCall `json:"-"`
	// Tree is git's hash of the working tree after the command, taken from the next call;
	// empty if it was not recorded.
	Tree string `json:"-"`
}

// HasFailed reports whether the command failed or could not be run to its end.
func (x Execution) HasFailed() bool { return x.ExitCode != 0 || x.TimedOut || x.Exception != "" }

// Process is a process that a command left running in the background.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// DecisionAction is an approver's answer to whether a command may run.
type DecisionAction string

// The actions: run the command, ask for approval, or reject the command.
const (
	Allow DecisionAction = "allow"
	Ask   DecisionAction = "ask"
	Deny  DecisionAction = "deny"
)

// Decision is an approver's decision about a command.
type Decision struct {
	Action DecisionAction `json:"action"`
	// Reason is shown to the model if the command does not run.
	Reason string `json:"reason,omitempty"`
	// By is the approver: "user", "mode" (run without asking), "whitelist", "rule",
	// "default" (no rule matches), "decider" (an external program) or "unattended"
	// (no user to ask). Rule is the matching rule.
	By   string `json:"by,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Edited is the command that runs in place of the model's, if the user changed it.
	Edited string `json:"edited,omitempty"`
	// Previous are earlier decisions, oldest first, whose Action is Ask.
	Previous []Decision `json:"before,omitempty"`
}

// CommandDecision is the decision about a command of a reply. It precedes the
// execution of the command.
type CommandDecision struct {
	Command string `json:"command"`
	Decision
}

// Limits are the maximum number of model calls and the maximum cost in US dollars of
// an attempt. 0 means no limit.
type Limits struct {
	Steps int     `json:"steps"`
	Cost  float64 `json:"cost"`
}

// ModelChange is the model that answers from here on. Settings are its settings by key,
// without secrets, for resuming the session.
type ModelChange struct {
	Name     string            `json:"name"`
	Settings map[string]string `json:"settings,omitempty"`
}

// SubmissionSource identifies how mini obtained a submission.
type SubmissionSource string

// The sources of submissions.
const (
	SourceSubmitted SubmissionSource = "submitted" // submitted by the agent
	SourceWorktree  SubmissionSource = "worktree"  // the working tree diff, taken by mini
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

// IsResult reports whether an attempt of this class is a result. When a run is resumed,
// it starts new attempts at instances without a result.
func (c Class) IsResult() bool { return c == Submitted || c == Limit }

// IsRetryable reports whether a run retries an attempt of this class.
func (c Class) IsRetryable() bool { return c == Provider || c == Environment }

// Outcome is the end of an attempt, with its totals.
type Outcome struct {
	Class      Class  `json:"class"`
	ExitStatus string `json:"exit_status"`
	// Submission is the final patch, byte for byte. Only results have one.
	// Autosubmitted is set if a limit ended the attempt and mini took the patch from
	// the working tree.
	Submission    Bytes `json:"submission"`
	Autosubmitted bool  `json:"autosubmitted,omitempty"`
	// Source is empty without a submission. It is SourceWorktree also if the agent
	// submitted an empty patch or one that does not apply.
	Source SubmissionSource `json:"source,omitempty"`
	// DiffersFromWorktree is set if applying the submission of the agent does not
	// produce the files of the working tree.
	DiffersFromWorktree bool `json:"differs,omitempty"`
	// PartialPatch is the working tree diff of an attempt that is not a result.
	PartialPatch Bytes `json:"partial_patch,omitempty"`
	// Error is the error that ended the attempt; empty if ExitStatus says enough. Hint
	// tells the user what to do about the error. Stack is the stack trace of an
	// internal error.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	Stack string `json:"stack,omitempty"`

	// Steps counts model calls without summaries, including ChildSteps, the steps of
	// subagents. Usage and Cost include summaries and subagents.
	Steps      int         `json:"steps"`
	ChildSteps int         `json:"child_steps,omitempty"`
	Usage      model.Usage `json:"usage"`
	Cost       model.Cost  `json:"cost"`
	Start      time.Time   `json:"start"`
	End        time.Time   `json:"end"`
	// Idle is the total time between the sessions, from interruptions to resumes.
	Idle Seconds `json:"idle,omitempty"`
	// Times divides the duration of all sessions by activity.
	Times Times `json:"times,omitzero"`
	// NetworkProof is env.Info.NetworkProof of the sandbox of the last session.
	NetworkProof string `json:"network_proof,omitempty"`
	// Warnings come from the sandbox and from the patch check.
	Warnings []string `json:"warnings,omitempty"`
}

// ActiveDuration returns the duration of all sessions, without Idle.
func (o Outcome) ActiveDuration() time.Duration { return o.End.Sub(o.Start) - time.Duration(o.Idle) }
