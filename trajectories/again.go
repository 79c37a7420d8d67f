package trajectories

import (
	"iter"
	"time"
)

// Records are those that the transcript would be gathered from: a journal anew,
// after somebody has changed the transcript. Their numbers are those they had;
// what had none of its own has that of what it belongs to.
func (t *Transcript) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		a := again{yield: yield}
		a.put(Record{ID: 1, Type: TypeHeader}, t.Header)
		if t.Import != nil {
			a.put(Record{ID: 1, Type: TypeImport}, t.Import)
		}
		for i := range t.Setup {
			a.ran(&t.Setup[i], time.Time{})
		}
		var reply *Entry
		others := t.Others
		for i := range t.Entries {
			e := &t.Entries[i]
			others = a.shortened(others, e.Record)
			if e.Cause == CauseReply {
				a.untold(reply)
				reply = e
			}
			a.entry(e, i, reply)
		}
		a.shortened(others, 0)
		a.untold(reply)
		for i := range t.Failed {
			a.put(Record{Type: TypeCall}, t.Failed[i])
		}
		if t.Diff != nil {
			a.put(Record{Type: TypeDiff}, t.Diff)
		}
		if t.Outcome != nil {
			a.put(Record{Type: TypeOutcome, Time: t.Outcome.End}, t.Outcome)
		}
	}
}

// shortened gives the compactions before a record, and what their summaries took;
// 0 is before none. It returns the records that are left.
func (a *again) shortened(others []Record, before int) []Record {
	for i, r := range others {
		if before > 0 && r.ID > before {
			return others[i:]
		}
		if r.Type == TypeCompaction || r.Type == TypeSummary {
			a.put(Record{ID: r.ID, Type: r.Type, Time: r.Time}, r.Data)
		}
	}
	return nil
}

// again gives records until nobody wants more.
type again struct {
	yield func(Record, error) bool
	done  bool
	last  int
}

func (a *again) put(r Record, data any) {
	if a.done {
		return
	}
	var err error
	r.Data, err = encode(data)
	r.Parent, a.last = a.last, max(r.ID, a.last)
	r.ID = a.last
	a.done = !a.yield(r, err) || err != nil
}

// entry gives a message after what it came of: the call of a reply, the command
// of an observation.
func (a *again) entry(e *Entry, at int, reply *Entry) {
	if e.Recorded != nil {
		a.put(Record{ID: e.Record, Type: TypeContext, Time: e.Time}, e.Recorded)
	}
	if e.Call != nil {
		a.put(Record{ID: e.Record, Type: TypeCall, Time: e.Time}, e.Call)
	}
	for _, acted := range []*Entry{reply, e} {
		if acted == nil || acted == e && e.Cause != CauseCommand {
			continue
		}
		for i := range acted.Ran {
			if ran := &acted.Ran[i]; ran.Told == at {
				a.ran(ran, ran.Start)
			}
		}
	}
	a.put(Record{ID: e.Record, Type: TypeMessage, Time: e.Time}, e.Message)
}

// untold gives the commands of a reply that no message told of.
func (a *again) untold(reply *Entry) {
	if reply == nil {
		return
	}
	for i := range reply.Ran {
		if ran := &reply.Ran[i]; ran.Told < 0 {
			a.ran(ran, ran.Start)
		}
	}
}

// ran gives an execution after what its command asked for.
func (a *again) ran(ran *Ran, at time.Time) {
	for i := range ran.Tools {
		a.put(Record{ID: ran.Tools[i].Record, Type: TypeTool, Time: ran.Tools[i].Start}, ran.Tools[i].ToolCall)
	}
	a.put(Record{ID: ran.Record, Type: TypeExecution, Time: at}, ran.Execution)
}
