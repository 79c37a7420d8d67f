package trajectories

import (
	"bytes"
	"iter"
	"slices"

	"github.com/minibench/mini/model"
)

// Fold returns the attempt of records. With an error, it also returns the attempt of the
// records before the error, so that the beginning of a damaged journal can be read.
func Fold(records iter.Seq2[Record, error]) (*Attempt, error) { return Omit(0).Fold(records) }

// Fold is the function Fold without the data that o omits.
func (o Omit) Fold(records iter.Seq2[Record, error]) (*Attempt, error) {
	a := &Attempt{Omit: o}
	defer a.finish()
	for r, err := range records {
		if err == nil {
			err = a.Add(r)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// finish attaches what further records could belong to.
func (a *Attempt) finish() {
	a.dropCall()
	a.dropToolCalls()
	a.attachUserCommands()
}

// observationEnd is the end of the data of an observation without actions. No text ends
// so, because its quotes are escaped.
var observationEnd = []byte(`"cause":"observation"}`)

// Add adds the next record. If its data cannot be decoded, it is not added.
func (a *Attempt) Add(r Record) error {
	if !a.keeps(r.Type) {
		a.Totals.add(&a.Header, r, nil)
		return nil
	}
	if a.omits(OmitObservations) && r.Type == TypeMessage && a.nextUnreported < len(a.executions()) && bytes.HasSuffix(r.Data, observationEnd) {
		a.AddData(r, Message{Cause: CauseObservation}) // the execution has the output
		return nil
	}
	data, err := Decode(r)
	if err == nil {
		a.AddData(r, data)
	}
	return err
}

// AddData is Add for a record whose decoded data is known.
func (a *Attempt) AddData(r Record, data any) {
	a.Totals.add(&a.Header, r, data)
	if !a.keeps(r.Type) {
		return
	}
	switch d := data.(type) {
	case Header:
		a.Header = d
	case Import:
		a.Import = &d
	case Message:
		a.addMessage(Entry{Record: r.ID, Time: r.Time, Message: d})
	case Call:
		a.dropCall()
		if a.omits(OmitResponses) {
			d.Raw = nil
		}
		d.Tokens = a.addTokens(d.Tokens)
		d.Record, a.call = r.ID, &d
		if d.Tree != "" && !a.omits(OmitExecutions) {
			a.setTree(d.Tree)
		}
	case PromptContext:
		a.dropCall()
		a.context, a.contextRecord = &d, r
	case Compaction:
		a.dropCall()
		d.Record = r.ID
		if !a.omits(OmitPrompts) {
			a.view.Compact(d)
		}
		a.Compactions, a.Notes = append(a.Compactions, d), append(a.Notes, Note{Record: r})
	case Execution:
		d.Record, d.ObservationEntry, d.ToolCalls = r.ID, -1, a.toolCalls
		a.toolCalls, a.toolRecords = nil, nil
		a.addExecution(d)
	case ToolCall:
		d.Record = r.ID
		a.toolCalls, a.toolRecords = append(a.toolCalls, d), append(a.toolRecords, Note{Record: r})
	case Diff:
		a.Diff = &d
	case Resume:
		a.Rewind(r.Parent)
		a.addNote(r)
	case Outcome:
		a.finish()
		a.Outcome = &d
	case Summary:
		_ = a.addTokens(d.Tokens) // the next call keeps some of them
		a.addNote(r)
	case Limits:
		a.Limits = &d
		a.addNote(r)
	case ModelChange:
		a.Model = &d
		a.addNote(r)
	case StartState:
		a.StartState = &d
		a.addNote(r)
	default:
		a.addNote(r)
	}
}

// addNote adds a record that is not a part of the conversation.
func (a *Attempt) addNote(r Record) {
	if a.omits(OmitMessages) || a.omits(OmitExecutions) && r.Type == TypeChildCall {
		return
	}
	a.Notes = append(a.Notes, Note{Record: r})
}

// setTree sets Execution.Tree of the newest execution.
func (a *Attempt) setTree(tree string) {
	if n := len(a.userCommands); n > 0 {
		a.userCommands[n-1].Tree = tree
		return
	}
	for i := len(a.Entries) - 1; i >= 0; i-- {
		if n := len(a.Entries[i].Executions); n > 0 {
			a.Entries[i].Executions[n-1].Tree = tree
			return
		}
	}
	if n := len(a.SetupExecutions); n > 0 {
		a.SetupExecutions[n-1].Tree = tree
	}
}

// Rewind removes what follows the record with ID to, as a resume record does: entries,
// executions and compactions, and the diff and the outcome. Calls become failed calls,
// since their cost still counts.
func (a *Attempt) Rewind(to int) {
	a.dropCall()
	a.dropToolCalls()
	isAfter := func(e Entry) bool { return e.Record > to }
	isLate := func(x Execution) bool { return x.Record > to }
	a.Diff, a.Outcome, a.context, a.userCommands = nil, nil, nil, slices.DeleteFunc(a.userCommands, isLate)
	if n := slices.IndexFunc(a.Entries, isAfter); n >= 0 {
		a.abandon(a.Entries[n:])
		a.Entries = a.Entries[:n]
	}
	a.Compactions = slices.DeleteFunc(a.Compactions, func(c Compaction) bool { return c.Record > to })
	a.Notes = slices.DeleteFunc(a.Notes, func(n Note) bool { return n.Type == TypeCompaction && n.ID > to })
	a.view.Rewind(to)
	a.SetupExecutions = slices.DeleteFunc(a.SetupExecutions, isLate)
	a.reply, a.replies, a.nextUnreported = 0, 0, 0
	for i := range a.Entries {
		e := &a.Entries[i]
		e.Executions = slices.DeleteFunc(e.Executions, isLate)
		for j := range e.Executions {
			if e.Executions[j].ObservationEntry >= len(a.Entries) {
				e.Executions[j].ObservationEntry = -1
			}
		}
		if e.Cause == CauseReply {
			a.reply, a.replies, a.nextUnreported = i+1, a.replies+1, 0
		}
	}
	for _, x := range a.executions() {
		if x.ObservationEntry >= 0 {
			a.nextUnreported++
		}
	}
}

// abandon keeps the calls of abandoned entries, and marks the notes of abandoned steps.
func (a *Attempt) abandon(entries []Entry) {
	for _, e := range entries {
		if e.Call != nil {
			a.FailedCalls = append(a.FailedCalls, *e.Call)
		}
	}
	first := slices.IndexFunc(entries, func(e Entry) bool { return e.Cause == CauseReply })
	for i := len(a.Notes) - 1; first >= 0 && i >= 0 && a.Notes[i].ID > entries[first].Record; i-- {
		a.Notes[i].Abandoned = true
	}
}

// dropCall adds a call without a reply to FailedCalls, and its context to Notes.
func (a *Attempt) dropCall() {
	if a.call != nil {
		a.FailedCalls = append(a.FailedCalls, *a.call)
		a.call = nil
		if a.context != nil {
			a.Notes = append(a.Notes, Note{Record: a.contextRecord})
			a.context = nil
		}
	}
}

// dropToolCalls adds tool calls whose command did not finish to Notes.
func (a *Attempt) dropToolCalls() {
	a.Notes = append(a.Notes, a.toolRecords...)
	a.toolCalls, a.toolRecords = nil, nil
}

func (a *Attempt) addMessage(e Entry) {
	index := len(a.Entries)
	switch e.Cause {
	case CauseUserCommand:
		e.Executions, a.userCommands = a.userCommands, nil
		for i := range e.Executions {
			e.Executions[i].ObservationEntry = index
		}
	case CauseReply:
		a.attachUserCommands()
		if a.call != nil {
			e.Call, a.call = a.call, nil
		}
		e.Context, e.ContextRecord, a.context = a.view.resolve(a.context), a.context, nil
		a.reply, a.replies, a.nextUnreported = index+1, a.replies+1, 0
	case CauseObservation, CauseMalformedPatch:
		if executions := a.executions(); a.nextUnreported < len(executions) {
			executions[a.nextUnreported].ObservationEntry = index
			a.nextUnreported++
		}
	}
	if a.omits(OmitMessages) {
		e = Entry{Record: e.Record, Message: Message{Cause: e.Cause}}
	}
	a.Entries = append(a.Entries, e)
	if !a.omits(OmitPrompts) {
		a.view.Add(e.Record, e.Message.Message)
	}
}

// attachUserCommands adds user commands without a message, which the model does not
// know, to the entry of the newest reply or, before the first reply, to SetupExecutions.
func (a *Attempt) attachUserCommands() {
	if a.reply == 0 {
		a.SetupExecutions = append(a.SetupExecutions, a.userCommands...)
	} else if len(a.userCommands) > 0 {
		e := &a.Entries[a.reply-1]
		e.Executions = append(e.Executions, a.userCommands...)
	}
	a.userCommands = nil
}

// executions returns the executions of the newest reply.
func (a *Attempt) executions() []Execution {
	if a.reply == 0 {
		return nil
	}
	return a.Entries[a.reply-1].Executions
}

func (a *Attempt) addExecution(x Execution) {
	switch {
	case x.ByUser:
		a.userCommands = append(a.userCommands, x)
	case a.reply == 0:
		a.SetupExecutions = append(a.SetupExecutions, x)
	default:
		e := &a.Entries[a.reply-1]
		e.Executions = append(e.Executions, x)
	}
}

// add counts a record.
func (t *Totals) add(h *Header, r Record, data any) {
	if t.Start.IsZero() {
		t.Start = r.Time
	}
	inherited := h.IsInherited(r.ID) // its time and cost belong to the other attempt
	times := t.Times
	switch d := data.(type) {
	case Header, StartState, Limits:
	case Resume:
		t.endPeriod()
		t.Idle += max(0, r.Time.Sub(t.newest))
	case Replay: // rebuilding a sandbox does not count
		times.SandboxStart += d.Duration
		t.period.start, t.period.end = r.Time, r.Time
	case ModelCall:
		c, spent := d.OfChild(0), &t.Children
		if r.Type != TypeChildCall {
			times.Model, spent = times.Model+c.Duration, &t.Own
		}
		t.spend(spent, c.steps(), inherited, c.Usage, c.Cost)
		t.period.extend(r.Time, c.Duration, c.Waited)
	case Execution:
		times.Commands += d.Duration
		t.period.extend(r.Time, d.Duration, 0)
	case Scrub:
		times.Scrub += d.Duration
		t.period.extend(r.Time, d.Duration, 0)
	case PatchCheck:
		times.Diff += d.Duration
		t.period.extend(r.Time, d.Duration, 0)
	case Diff: // taken after the end of the attempt
		times.Diff += d.Duration
	case Outcome:
		t.Warnings = d.Warnings
		if d.Times != (Times{}) { // they include the start of the sandbox
			times = d.Times
		}
	default:
		t.period.extend(r.Time, 0, 0)
	}
	t.End, t.newest = r.Time, r.Time
	switch {
	case !inherited:
		t.Times = times
	case r.ID == h.Origin.Record:
		t.endPeriod()
		fallthrough
	default:
		t.newest = t.Start
	}
}

// spend adds a call.
func (t *Totals) spend(s *Spending, steps int, inherited bool, u model.Usage, c model.Cost) {
	if inherited {
		t.Inherited, u, c = t.Inherited+steps, model.Usage{}, 0
	}
	*s = s.Add(Spending{steps, u, c})
}
