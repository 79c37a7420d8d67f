package trajectories

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Transcript is an attempt in memory: the records of its journal, grouped by message.
// Read processes records one at a time instead.
type Transcript struct {
	Header Header
	// Import is set if the journal was imported.
	Import *Import
	// Entries are the messages, in order.
	Entries []Entry
	// FailedCalls are model calls without a reply, and calls whose replies were
	// abandoned when the attempt was resumed.
	FailedCalls []Call
	// SetupExecutions are the executions before the first reply, such as the start-up
	// command.
	SetupExecutions []RecordedExecution
	Diff            *Diff
	// Compactions are the compactions that were not abandoned, in order. Their records
	// are in OtherRecords too.
	Compactions []RecordedCompaction
	// OtherRecords are compactions and the records that no other field represents, in
	// order. They include the contexts of failed calls, but no abandoned compactions.
	OtherRecords []Record
	// Outcome is nil if the attempt has not ended.
	Outcome *Outcome
	// Children are the transcripts of all subagents. BuildTranscript does not set it.
	Children []*Transcript
}

// IsForeign reports whether the attempt was imported from another format, which may
// contain less information than a journal.
func (t *Transcript) IsForeign() bool { return t.Import != nil && t.Import.Format != Format }

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
	Executions []RecordedExecution
}

// RecordedExecution is an execution with related records.
type RecordedExecution struct {
	Record int // record ID of the execution
	Execution
	// ObservationEntry is the index of the entry that reports the result to the
	// model. It is -1 if no entry does, for example after the submit command.
	ObservationEntry int
	// ToolCalls are the mini-tool requests of the command, in the order of their
	// responses.
	ToolCalls []RecordedToolCall
	// Tree is git's hash of the working tree after the command, taken from the next
	// call; empty if it was not recorded.
	Tree string
}

// RecordedToolCall is a tool call with its record ID.
type RecordedToolCall struct {
	Record int // record ID
	ToolCall
}

// BuildTranscript builds a transcript from the records of an attempt. With an error, it
// also returns the transcript of the records before the error, so that the beginning of
// a damaged journal can be read.
func BuildTranscript(records iter.Seq2[Record, error]) (*Transcript, error) {
	b := transcriptBuilder{reply: -1, t: &Transcript{}}
	for r, err := range records {
		if err == nil {
			err = b.add(r)
		}
		if err != nil {
			return b.t, err
		}
	}
	b.dropToolCalls()
	b.attachUserCommands()
	return b.t, nil
}

// transcriptBuilder is the state of BuildTranscript.
type transcriptBuilder struct {
	t               *Transcript
	call            *Call               // call without a reply so far
	context         *PromptContext      // context of the next call
	contextRecord   Record              // the record of context
	reply           int                 // index of the entry of the newest reply; -1 before the first
	nextUnreported  int                 // index of the reply's first execution without an observation
	userCommands    []RecordedExecution // user commands without a message so far
	toolCalls       []RecordedToolCall  // tool calls without an execution so far
	toolCallRecords []Record            // the records of toolCalls
	view            ConversationView
}

func (b *transcriptBuilder) add(r Record) error {
	var err error
	switch r.Type {
	case TypeHeader:
		err = json.Unmarshal(r.Data, &b.t.Header)
	case TypeImport:
		b.t.Import = &Import{}
		err = json.Unmarshal(r.Data, b.t.Import)
	case TypeMessage:
		e := Entry{Record: r.ID, Time: r.Time}
		if err = json.Unmarshal(r.Data, &e.Message); err == nil {
			b.addMessage(e)
		}
	case TypeCall:
		b.dropCall()
		b.call = &Call{}
		if err = json.Unmarshal(r.Data, b.call); err == nil && b.call.Tree != "" {
			b.setTree(b.call.Tree)
		}
	case TypeContext:
		b.dropCall()
		b.context, b.contextRecord = &PromptContext{}, r
		err = json.Unmarshal(r.Data, b.context)
	case TypeCompaction:
		b.dropCall()
		c := RecordedCompaction{Record: r.ID}
		err = json.Unmarshal(r.Data, &c.Compaction)
		b.view.Compact(r.ID, c.Compaction)
		b.t.Compactions, b.t.OtherRecords = append(b.t.Compactions, c), append(b.t.OtherRecords, r)
	case TypeExecution:
		x := RecordedExecution{Record: r.ID, ObservationEntry: -1}
		if err = json.Unmarshal(r.Data, &x.Execution); err == nil {
			x.ToolCalls, b.toolCalls, b.toolCallRecords = b.toolCalls, nil, nil
			b.addExecution(x)
		}
	case TypeTool:
		c := RecordedToolCall{Record: r.ID}
		if err = json.Unmarshal(r.Data, &c.ToolCall); err == nil {
			b.toolCalls, b.toolCallRecords = append(b.toolCalls, c), append(b.toolCallRecords, r)
		}
	case TypeDiff:
		b.t.Diff = &Diff{}
		err = json.Unmarshal(r.Data, b.t.Diff)
	case TypeResume:
		b.dropCall()
		b.dropToolCalls()
		b.rewind(r.Parent)
		b.t.OtherRecords = append(b.t.OtherRecords, r)
	case TypeOutcome:
		b.dropCall()
		b.dropToolCalls()
		b.attachUserCommands()
		b.t.Outcome = &Outcome{}
		err = json.Unmarshal(r.Data, b.t.Outcome)
	default:
		b.t.OtherRecords = append(b.t.OtherRecords, r)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil
}

// setTree sets RecordedExecution.Tree of the newest execution.
func (b *transcriptBuilder) setTree(tree string) {
	if n := len(b.userCommands); n > 0 {
		b.userCommands[n-1].Tree = tree
		return
	}
	for i := len(b.t.Entries) - 1; i >= 0; i-- {
		if n := len(b.t.Entries[i].Executions); n > 0 {
			b.t.Entries[i].Executions[n-1].Tree = tree
			return
		}
	}
	if n := len(b.t.SetupExecutions); n > 0 {
		b.t.SetupExecutions[n-1].Tree = tree
	}
}

// rewind removes entries, executions and compactions after the record with ID to, and the
// diff and the outcome. Calls become failed calls, since their cost still counts.
func (b *transcriptBuilder) rewind(to int) {
	isAfter := func(e Entry) bool { return e.Record > to }
	b.t.Diff, b.t.Outcome, b.userCommands = nil, nil, nil
	if n := slices.IndexFunc(b.t.Entries, isAfter); n >= 0 {
		for _, e := range b.t.Entries[n:] {
			if e.Call != nil {
				b.t.FailedCalls = append(b.t.FailedCalls, *e.Call)
			}
		}
		b.t.Entries = b.t.Entries[:n]
	}
	b.t.Compactions = slices.DeleteFunc(b.t.Compactions, func(c RecordedCompaction) bool { return c.Record > to })
	b.t.OtherRecords = slices.DeleteFunc(b.t.OtherRecords, func(r Record) bool { return r.Type == TypeCompaction && r.ID > to })
	b.view.Rewind(to)
	b.t.SetupExecutions = slices.DeleteFunc(b.t.SetupExecutions, func(x RecordedExecution) bool { return x.Record > to })
	b.reply, b.nextUnreported = -1, 0
	for i := range b.t.Entries {
		e := &b.t.Entries[i]
		e.Executions = slices.DeleteFunc(e.Executions, func(x RecordedExecution) bool { return x.Record > to })
		for j := range e.Executions {
			if e.Executions[j].ObservationEntry >= len(b.t.Entries) {
				e.Executions[j].ObservationEntry = -1
			}
		}
		if e.Cause == CauseReply {
			b.reply, b.nextUnreported = i, 0
		}
	}
	for _, x := range b.executions() {
		if x.ObservationEntry >= 0 {
			b.nextUnreported++
		}
	}
}

// dropCall adds a call without a reply to FailedCalls, and its context to OtherRecords.
func (b *transcriptBuilder) dropCall() {
	if b.call != nil {
		b.t.FailedCalls = append(b.t.FailedCalls, *b.call)
		b.call = nil
		if b.context != nil {
			b.t.OtherRecords = append(b.t.OtherRecords, b.contextRecord)
			b.context = nil
		}
	}
}

// dropToolCalls adds tool calls whose command did not finish to OtherRecords.
func (b *transcriptBuilder) dropToolCalls() {
	b.t.OtherRecords = append(b.t.OtherRecords, b.toolCallRecords...)
	b.toolCalls, b.toolCallRecords = nil, nil
}

func (b *transcriptBuilder) addMessage(e Entry) {
	index := len(b.t.Entries)
	switch e.Cause {
	case CauseUserCommand:
		e.Executions, b.userCommands = b.userCommands, nil
		for i := range e.Executions {
			e.Executions[i].ObservationEntry = index
		}
	case CauseReply:
		b.attachUserCommands()
		e.Call, b.call = b.call, nil
		e.Context, e.ContextRecord, b.context = b.view.resolve(b.context), b.context, nil
		b.reply, b.nextUnreported = index, 0
	case CauseObservation, CauseMalformedPatch:
		if executions := b.executions(); b.nextUnreported < len(executions) {
			executions[b.nextUnreported].ObservationEntry = index
			b.nextUnreported++
		}
	}
	b.t.Entries = append(b.t.Entries, e)
	b.view.Add(e.Record, e.Message.Message)
}

// attachUserCommands adds user commands without a message, which the model does not
// know, to the entry of the newest reply or, before the first reply, to SetupExecutions.
func (b *transcriptBuilder) attachUserCommands() {
	if b.reply < 0 {
		b.t.SetupExecutions = append(b.t.SetupExecutions, b.userCommands...)
	} else if len(b.userCommands) > 0 {
		e := &b.t.Entries[b.reply]
		e.Executions = append(e.Executions, b.userCommands...)
	}
	b.userCommands = nil
}

// executions returns the executions of the newest reply.
func (b *transcriptBuilder) executions() []RecordedExecution {
	if b.reply < 0 {
		return nil
	}
	return b.t.Entries[b.reply].Executions
}

func (b *transcriptBuilder) addExecution(x RecordedExecution) {
	if x.ByUser {
		b.userCommands = append(b.userCommands, x)
		return
	}
	if b.reply < 0 {
		b.t.SetupExecutions = append(b.t.SetupExecutions, x)
		return
	}
	e := &b.t.Entries[b.reply]
	e.Executions = append(e.Executions, x)
}
