package trajectories

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Records yields records for a journal with the contents of t, for example to write a
// changed attempt. It numbers the records anew and updates record IDs in their
// data.
func (t *Attempt) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		b := recordBuilder{t: t, notes: t.Notes, failedCalls: t.FailedCalls}
		b.build()
		for i, n := range b.records {
			r := Record{ID: i + 1, Parent: i, Type: n.typ, Time: n.time}
			var err error
			if r.Data, err = encode(n.data); err == nil {
				err = r.Renumber(b.newID)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// recordBuilder collects the records of an attempt in the order of a journal.
type recordBuilder struct {
	t           *Attempt
	notes       []Note // not yet added
	failedCalls []Call // not yet added
	records     []newRecord
	newIDs      []idPair // sorted by old at the end of build
}

// newRecord is a record without an ID. Its data is not encoded yet.
type newRecord struct {
	typ  Type
	time time.Time
	data any
}

type idPair struct{ old, new int }

// newID returns the new ID of the record whose ID was old. If newIDs does not contain that
// record, newID returns the new ID of the closest earlier record in newIDs, or 0 if there
// is none.
func (b *recordBuilder) newID(old int) int {
	i, found := slices.BinarySearchFunc(b.newIDs, old, func(p idPair, old int) int { return cmp.Compare(p.old, old) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return b.newIDs[i].new
}

// put appends a record. old is its previous ID, or 0 if nothing refers to it.
func (b *recordBuilder) put(old int, typ Type, at time.Time, data any) {
	b.records = append(b.records, newRecord{typ, at, data})
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
		b.addNotes(e.Record)
		if e.Cause == CauseReply {
			b.addUnreported(reply)
			reply = e
		}
		b.addEntry(e, i, reply)
	}
	b.addNotes(0)
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

// addNotes adds the notes with IDs below before, or all if before is 0.
func (b *recordBuilder) addNotes(before int) {
	for len(b.notes) > 0 && (before == 0 || b.notes[0].ID < before) {
		r := b.notes[0]
		b.put(r.ID, r.Type, r.Time, r.Data)
		b.notes = b.notes[1:]
	}
}

// addEntry adds entry e, which has the given index, after the records that precede its
// message: for a reply, earlier failed calls, its context and its own call; for an
// observation, the execution, which is stored in the entry of the reply; for a user
// command, the execution, which is stored in e.
func (b *recordBuilder) addEntry(e *Entry, index int, reply *Entry) {
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
	for _, source := range []*Entry{reply, e} {
		if source == nil || source == e && e.Cause != CauseUserCommand {
			continue
		}
		for i := range source.Executions {
			if x := &source.Executions[i]; x.ObservationEntry == index {
				b.addExecution(x, x.Start)
			}
		}
	}
	b.put(e.Record, TypeMessage, e.Time, e.Message)
}

// addUnreported adds those executions of a reply that no message reports.
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
func (b *recordBuilder) addExecution(x *Execution, at time.Time) {
	for i := range x.ToolCalls {
		b.put(x.ToolCalls[i].Record, TypeTool, x.ToolCalls[i].Start, x.ToolCalls[i])
	}
	b.put(x.Record, TypeExecution, at, x)
}
