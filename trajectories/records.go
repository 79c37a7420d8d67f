package trajectories

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Records returns the records of a journal with the contents of t, for writing a
// transcript that was changed. Records are renumbered, including references in their
// data.
func (t *Transcript) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		b := recordBuilder{t: t, otherRecords: t.OtherRecords, failedCalls: t.FailedCalls}
		b.build()
		for i, it := range b.records {
			r := Record{ID: i + 1, Parent: i, Type: it.t, Time: it.at}
			var err error
			if r.Data, err = encode(it.data); err == nil {
				err = r.Renumber(b.newID)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// recordBuilder puts the records of a transcript in order.
type recordBuilder struct {
	t            *Transcript
	otherRecords []Record // not yet added
	failedCalls  []Call   // not yet added
	records      []newRecord
	newIDs       []idPair
}

type newRecord struct {
	t    Type
	at   time.Time
	data any
}

type idPair struct{ old, new int }

// newID returns the new ID of the record with an old ID, or of the closest earlier
// record if that one was removed.
func (b *recordBuilder) newID(old int) int {
	i, found := slices.BinarySearchFunc(b.newIDs, old, func(r idPair, old int) int { return cmp.Compare(r.old, old) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return b.newIDs[i].new
}

// put appends a record. old is its previous ID, or 0 if it has none.
func (b *recordBuilder) put(old int, t Type, at time.Time, data any) {
	b.records = append(b.records, newRecord{t, at, data})
	if old > 0 {
		b.newIDs = append(b.newIDs, idPair{old, len(b.records)})
	}
}

func (b *recordBuilder) build() {
	t := b.t
	header := t.Header
	b.put(1, TypeHeader, time.Time{}, &header)
	if t.Import != nil {
		b.put(0, TypeImport, time.Time{}, t.Import)
	}
	for i := range t.SetupExecutions {
		b.addExecution(&t.SetupExecutions[i], time.Time{})
	}
	var reply *Entry
	for i := range t.Entries {
		e := &t.Entries[i]
		b.addOtherRecords(e.Record)
		if e.Cause == CauseReply {
			b.addUnreported(reply)
			reply = e
		}
		b.addEntry(e, i, reply)
	}
	b.addOtherRecords(0)
	b.addUnreported(reply)
	for i := range b.failedCalls {
		b.put(0, TypeCall, time.Time{}, &b.failedCalls[i])
	}
	if t.Diff != nil {
		b.put(0, TypeDiff, time.Time{}, t.Diff)
	}
	if t.Outcome != nil {
		b.put(0, TypeOutcome, t.Outcome.End, t.Outcome)
	}
	slices.SortStableFunc(b.newIDs, func(x, y idPair) int { return cmp.Compare(x.old, y.old) })
	if o := header.Origin; o != nil {
		origin := *o
		origin.Record = b.newID(o.Record)
		header.Origin = &origin
	}
}

// addOtherRecords adds the other records with IDs below the given one; 0 means all.
func (b *recordBuilder) addOtherRecords(record int) {
	for len(b.otherRecords) > 0 && (record == 0 || b.otherRecords[0].ID < record) {
		r := b.otherRecords[0]
		b.put(r.ID, r.Type, r.Time, r.Data)
		b.otherRecords = b.otherRecords[1:]
	}
}

// addEntry adds a message after the records that precede it: for a reply, failed calls
// and its call; for an observation, the execution.
func (b *recordBuilder) addEntry(e *Entry, at int, reply *Entry) {
	for e.Call != nil && len(b.failedCalls) > 0 && b.failedCalls[0].Start.Before(e.Call.Start) {
		b.put(0, TypeCall, e.Time, &b.failedCalls[0])
		b.failedCalls = b.failedCalls[1:]
	}
	if e.ContextRecord != nil {
		b.put(0, TypeContext, e.Time, e.ContextRecord)
	}
	if e.Call != nil {
		b.put(0, TypeCall, e.Time, e.Call)
	}
	for _, candidate := range []*Entry{reply, e} {
		if candidate == nil || candidate == e && e.Cause != CauseUserCommand {
			continue
		}
		for i := range candidate.Executions {
			if x := &candidate.Executions[i]; x.ObservationEntry == at {
				b.addExecution(x, x.Start)
			}
		}
	}
	b.put(e.Record, TypeMessage, e.Time, e.Message)
}

// addUnreported adds the executions of a reply that no message reported.
func (b *recordBuilder) addUnreported(reply *Entry) {
	if reply == nil {
		return
	}
	for i := range reply.Executions {
		if x := &reply.Executions[i]; x.ObservationEntry < 0 {
			b.addExecution(x, x.Start)
		}
	}
}

// addExecution adds an execution after its mini-tool requests.
func (b *recordBuilder) addExecution(x *RecordedExecution, at time.Time) {
	for i := range x.ToolCalls {
		b.put(x.ToolCalls[i].Record, TypeTool, x.ToolCalls[i].Start, x.ToolCalls[i].ToolCall)
	}
	b.put(x.Record, TypeExecution, at, x.Execution)
}
