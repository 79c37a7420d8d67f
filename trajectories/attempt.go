package trajectories

import (
	"slices"
	"time"

	"github.com/minibench/mini/model"
)

// Attempt is an attempt in memory: the records of its journal, grouped by message. Add
// folds the records one at a time. The agent adds the records that it writes; readers add
// those of a journal, see Fold. The zero value is an attempt without records.
type Attempt struct {
	// Omit says what Add does not keep. Set it before the first record.
	Omit Omit

	Header Header
	// Import is set if the journal was imported.
	Import *Import
	// Entries are the messages, in order.
	Entries []Entry
	// SetupExecutions are the executions before the first reply, such as the start-up
	// command.
	SetupExecutions []Execution
	// FailedCalls are model calls without a reply, and calls whose replies were
	// abandoned when the attempt was resumed.
	FailedCalls []Call
	// Compactions are the compactions that were not abandoned, in order. Their records
	// are in Notes too.
	Compactions []Compaction
	// Notes are compactions and the records that no other field represents, in order.
	// They include the contexts of failed calls, but no abandoned compactions.
	Notes []Note
	// Limits and Model are those that the user set last; nil if the user set none.
	Limits *Limits
	Model  *ModelChange
	// StartState is nil if it is not recorded.
	StartState *StartState
	Diff       *Diff
	// Outcome is nil if the attempt has not ended.
	Outcome *Outcome
	Totals  Totals
	// Children are the subagents. Add does not set it.
	Children []*Attempt

	call           *Call          // call without a reply so far
	context        *PromptContext // of the next call
	contextRecord  Record         // the record of context
	reply          int            // 1 + index of the entry of the newest reply; 0 before the first
	replies        int            // number of replies
	nextUnreported int            // index of the reply's first execution without an observation
	userCommands   []Execution    // user commands without a message so far
	toolCalls      []ToolCall     // tool calls without an execution so far
	toolRecords    []Note         // the records of toolCalls
	view           ConversationView
	sequence       []int32 // the tokens of the newest call that has any
}

// Omit says which data an Attempt does not keep, to save time and memory.
type Omit uint8

// Data that may be left out.
const (
	OmitResponses    Omit = 1 << iota // provider responses
	OmitExecutions                    // executions, diffs, tool calls, and notes other than summaries
	OmitObservations                  // the text of an observation if an execution has the output
	OmitExchanges                     // requests of other agents, and the state of the files at the start
	OmitPrompts                       // what NextPrompt and Entry.Context need
	OmitMessages                      // all messages except the causes of imported ones
	OmitTokens                        // the tokens of calls
)

// What readers need.
const (
	// ForTraining keeps the messages and the calls.
	ForTraining = OmitResponses | OmitExecutions | OmitExchanges | OmitTokens
	// ForDisplay keeps what people read.
	ForDisplay = OmitResponses | OmitObservations | OmitExchanges | OmitPrompts | OmitTokens
	// ForTotals keeps the header, the import record, the outcome and the totals.
	ForTotals = ForTraining | ForDisplay | OmitMessages
)

func (a *Attempt) omits(o Omit) bool { return a.Omit&o != 0 }

// keeps reports whether records of a type are decoded.
func (a *Attempt) keeps(t Type) bool {
	switch t {
	case TypeHeader, TypeImport, TypeResume, TypeCall, TypeSummary, TypeChildCall, TypeOutcome:
		return true
	case TypeMessage:
		return !a.omits(OmitMessages) || a.Import != nil
	case TypeCompaction:
		return !a.omits(OmitMessages)
	case TypeContext:
		return !a.omits(OmitPrompts)
	case TypeExchange, TypeAgentRun, TypeStartState:
		return !a.omits(OmitExchanges)
	}
	return !a.omits(OmitExecutions)
}

// IsForeign reports whether the attempt was imported from another format, which may
// contain less information than a journal.
func (a *Attempt) IsForeign() bool { return a.Import != nil && a.Import.Format != Format }

// Entry is a message with related records.
type Entry struct {
	Record int // record ID of the message
	Time   time.Time
	Message
	// Call is the model call of a reply. It is nil for other messages, and for
	// replies of agents that do not record calls.
	Call *Call
	// Context is the prompt of a reply's call, or nil if the prompt was all messages
	// before the reply. It refers only to records of original messages; it contains
	// replacements as messages. ContextRecord is the data of the context record, or
	// nil.
	Context, ContextRecord *PromptContext
	// Executions are the executions of a reply's actions, in order, followed by those
	// of user commands that no message reports. An action that did not run has no
	// execution. The entry of a user command has the execution of that command.
	Executions []Execution
}

// Note is a record that is not a part of the conversation.
type Note struct {
	Record
	// Abandoned is set if the step in which the note was written was abandoned when the
	// attempt was resumed.
	Abandoned bool
}

// Replies returns the number of replies.
func (a *Attempt) Replies() int {
	if a.replies == 0 { // the entries may have been set without Add
		for i := range a.Entries {
			if a.Entries[i].Cause == CauseReply {
				a.replies++
			}
		}
	}
	return a.replies
}

// FormatErrors returns how many of the newest replies in a row, after the record since,
// the model was told are invalid. A message of the user starts the count again.
func (a *Attempt) FormatErrors(since int) int {
	n, rejected := 0, false
	for i, e := range slices.Backward(a.Entries) {
		switch {
		case e.Record <= since:
			return n
		case i == len(a.Entries)-1 && e.Cause == CauseReply: // it has no answer yet
		case e.Cause == CauseReply && !rejected:
			return n
		case e.Cause == CauseReply:
			n, rejected = n+1, false
		case e.Cause == CauseInterruption, e.Cause == CauseSteer, e.Cause == CauseFollowUp:
			return n
		default:
			rejected = e.Cause == CauseFormatError
		}
	}
	return n
}

// LastReply returns the entry of the newest reply; nil if there is none.
func (a *Attempt) LastReply() *Entry {
	if a.reply == 0 {
		return nil
	}
	return &a.Entries[a.reply-1]
}

// Conversation is what the model knows: the messages, as compactions left them.
func (a *Attempt) Conversation() *ConversationView { return &a.view }

// NextPrompt returns the messages of the next call. The caller must not change them.
func (a *Attempt) NextPrompt() []model.Message { return a.view.SentMessages(a.context) }

// ResumePoint returns the newest record from which the attempt can be resumed without
// running a command twice in one sandbox. Later records are to be abandoned: a call
// without a recorded reply, a command whose output was not sent to the model, and messages
// saying only that the attempt was over. The commands among them run again.
func (a *Attempt) ResumePoint() int {
	entries, record := a.resumableEntries(), 1 // the header
	if entries > 0 {
		record = a.Entries[entries-1].Record
	}
	for _, c := range a.Compactions {
		// A compaction before a call without a reply is abandoned too.
		if entries == len(a.Entries) || c.Record < record {
			record = max(record, c.Record)
		}
	}
	return record
}

// resumableEntries returns how many entries to keep: all complete steps and, of an
// incomplete last step, the reply and the results up to the first missing one.
func (a *Attempt) resumableEntries() int {
	n := len(a.Entries)
	if a.reply == 0 {
		if n > 0 && a.Entries[n-1].Role == model.User {
			return n
		}
		return 0 // the attempt sends the prompts again
	}
	answers := a.Entries[a.reply:]
	results := a.Results()
	// A message that is not a result ends the step once every call has a result.
	// CauseNotRun messages say only that the attempt was over.
	if results < len(answers) && answers[results].Cause != CauseNotRun && len(answers) >= a.LastReply().wantedResults() {
		return n
	}
	return a.reply + results
}

// Results returns the number of results before the first other message among the answers
// to the newest reply.
func (a *Attempt) Results() int {
	answers := a.Entries[a.reply:]
	n := slices.IndexFunc(answers, func(e Entry) bool { return e.Cause != CauseObservation })
	if n < 0 {
		return len(answers)
	}
	return n
}

// IsAnswered reports whether the newest reply has all results, or another answer.
func (a *Attempt) IsAnswered() bool {
	return a.Results() < len(a.Entries)-a.reply || a.Results() >= a.LastReply().wantedResults()
}

// wantedResults returns how many results complete a reply.
func (e *Entry) wantedResults() int { return max(1, len(e.ToolCalls)) }
