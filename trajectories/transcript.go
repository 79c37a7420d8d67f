package trajectories

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Transcript is one attempt in memory: the records of its journal, put together
// as what reads a conversation wants them. It is for what looks at an attempt
// as a whole; what only passes by goes through Read.
type Transcript struct {
	Header Header
	// Import is there where the attempt was another agent's.
	Import *Import
	// Entries are the messages, in order.
	Entries []Entry
	// Failed are the calls of the model that no reply came of, and those whose
	// replies were left behind when an interrupted attempt went on.
	Failed []Call
	// Setup are executions before the first reply: the start-up command.
	Setup []Ran
	Diff  *Diff
	// Compactions are those that hold, in order. Their records are among Others.
	Compactions []Compacted
	// Others are the records of which nothing above is made, in order; a context
	// whose call failed is one, and so is a summary. Compactions that were left
	// behind are not.
	Others []Record
	// Outcome is nil where the attempt has not ended, or never will.
	Outcome *Outcome
	// Children are what children did, and children of those, where whoever read the
	// attempt read them, too: Gather does not.
	Children []*Transcript
}

// Foreign says that the attempt was made of another agent's file, which may say
// less of it than a journal of mini's.
func (t *Transcript) Foreign() bool { return t.Import != nil && t.Import.Format != Format }

// Entry is a message with what belongs to it.
type Entry struct {
	Record int // of the message, in the journal
	Time   time.Time
	Message
	// Call is what it took to get a reply; nil for other messages, and for
	// replies of agents that did not say.
	Call *Call
	// Context is what a reply's call was sent, where that was not every message
	// before it: what compactions left, and what a policy made of that. It names
	// messages of the journal only as they are; those that stand for others are in
	// it. Recorded is the context record of it, where there is one.
	Context, Recorded *Context
	// Ran are the commands that a reply's actions came to, in order; fewer than
	// its Actions where not all were run. Of a message that tells of a person's
	// command it is that one.
	Ran []Ran
}

// Ran is a command that was run.
type Ran struct {
	Record int // of the execution, in the journal
	Execution
	// Told is the index of the entry that told the model of it; -1 where none
	// did, as after the command that handed in the work.
	Told int
	// Tools are what it asked for by mini-tool, in the order of the answers.
	Tools []Called
	// Tree is git's hash of the working tree after it, from the call that followed;
	// empty where it is not on record.
	Tree string
}

// Called is what a command asked for.
type Called struct {
	Record int // in the journal
	ToolCall
}

// Gather reads a whole attempt. The first error of the records ends it, with
// what was read so far: of a damaged journal the beginning is still there.
func Gather(records iter.Seq2[Record, error]) (*Transcript, error) {
	g := gatherer{reply: -1, t: &Transcript{}}
	for r, err := range records {
		if err == nil {
			err = g.take(r)
		}
		if err != nil {
			return g.t, err
		}
	}
	g.uncalled()
	g.untold()
	return g.t, nil
}

// gatherer is what is known on the way through a journal.
type gatherer struct {
	t       *Transcript
	call    *Call    // whose reply has not come yet
	context *Context // of the call
	sent    Record   // that holds the context
	reply   int      // the entry whose actions are being run; -1 before the first
	next    int      // of the reply's executions, the first that nobody was told of
	own     []Ran    // a person's commands, whose message has not come yet
	called  []Called // by a command whose execution has not come yet
	calls   []Record // the same, as they stand there
	view    View
}

func (g *gatherer) take(r Record) error {
	var err error
	switch r.Type {
	case TypeHeader:
		err = json.Unmarshal(r.Data, &g.t.Header)
	case TypeImport:
		g.t.Import = &Import{}
		err = json.Unmarshal(r.Data, g.t.Import)
	case TypeMessage:
		e := Entry{Record: r.ID, Time: r.Time}
		if err = json.Unmarshal(r.Data, &e.Message); err == nil {
			g.message(e)
		}
	case TypeCall:
		g.failed()
		g.call = &Call{}
		if err = json.Unmarshal(r.Data, g.call); err == nil && g.call.Tree != "" {
			g.left(g.call.Tree)
		}
	case TypeContext:
		g.failed()
		g.context, g.sent = &Context{}, r
		err = json.Unmarshal(r.Data, g.context)
	case TypeCompaction:
		g.failed()
		c := Compacted{Record: r.ID}
		err = json.Unmarshal(r.Data, &c.Compaction)
		g.view.Compact(r.ID, c.Compaction)
		g.t.Compactions, g.t.Others = append(g.t.Compactions, c), append(g.t.Others, r)
	case TypeExecution:
		ran := Ran{Record: r.ID, Told: -1}
		if err = json.Unmarshal(r.Data, &ran.Execution); err == nil {
			ran.Tools, g.called, g.calls = g.called, nil, nil
			g.execution(ran)
		}
	case TypeTool:
		c := Called{Record: r.ID}
		if err = json.Unmarshal(r.Data, &c.ToolCall); err == nil {
			g.called, g.calls = append(g.called, c), append(g.calls, r)
		}
	case TypeDiff:
		g.t.Diff = &Diff{}
		err = json.Unmarshal(r.Data, g.t.Diff)
	case TypeResume:
		g.failed()
		g.uncalled()
		g.rewind(r.Parent)
		g.t.Others = append(g.t.Others, r)
	case TypeOutcome:
		g.failed()
		g.uncalled()
		g.untold()
		g.t.Outcome = &Outcome{}
		err = json.Unmarshal(r.Data, g.t.Outcome)
	default:
		g.t.Others = append(g.t.Others, r)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil
}

// left gives the newest command the tree that it left.
func (g *gatherer) left(tree string) {
	if n := len(g.own); n > 0 {
		g.own[n-1].Tree = tree
		return
	}
	for i := len(g.t.Entries) - 1; i >= 0; i-- {
		if n := len(g.t.Entries[i].Ran); n > 0 {
			g.t.Entries[i].Ran[n-1].Tree = tree
			return
		}
	}
	if n := len(g.t.Setup); n > 0 {
		g.t.Setup[n-1].Tree = tree
	}
}

// rewind forgets what stands after a record, but for what it cost: the attempt
// goes on from there.
func (g *gatherer) rewind(to int) {
	after := func(e Entry) bool { return e.Record > to }
	g.t.Diff, g.t.Outcome, g.own = nil, nil, nil
	if n := slices.IndexFunc(g.t.Entries, after); n >= 0 {
		for _, e := range g.t.Entries[n:] {
			if e.Call != nil {
				g.t.Failed = append(g.t.Failed, *e.Call)
			}
		}
		g.t.Entries = g.t.Entries[:n]
	}
	g.t.Compactions = slices.DeleteFunc(g.t.Compactions, func(c Compacted) bool { return c.Record > to })
	g.t.Others = slices.DeleteFunc(g.t.Others, func(r Record) bool { return r.Type == TypeCompaction && r.ID > to })
	g.view.Rewind(to)
	g.t.Setup = slices.DeleteFunc(g.t.Setup, func(x Ran) bool { return x.Record > to })
	g.reply, g.next = -1, 0
	for i := range g.t.Entries {
		e := &g.t.Entries[i]
		e.Ran = slices.DeleteFunc(e.Ran, func(x Ran) bool { return x.Record > to })
		for j := range e.Ran {
			if e.Ran[j].Told >= len(g.t.Entries) {
				e.Ran[j].Told = -1
			}
		}
		if e.Cause == CauseReply {
			g.reply, g.next = i, 0
		}
	}
	for _, x := range g.ran() {
		if x.Told >= 0 {
			g.next++
		}
	}
}

// failed puts away a call that no reply came of.
func (g *gatherer) failed() {
	if g.call != nil {
		g.t.Failed = append(g.t.Failed, *g.call)
		g.call = nil
		if g.context != nil {
			g.t.Others = append(g.t.Others, g.sent)
			g.context = nil
		}
	}
}

// uncalled puts away what a command asked for that never came to its end.
func (g *gatherer) uncalled() {
	g.t.Others = append(g.t.Others, g.calls...)
	g.called, g.calls = nil, nil
}

func (g *gatherer) message(e Entry) {
	at := len(g.t.Entries)
	switch e.Cause {
	case CauseCommand:
		e.Ran, g.own = g.own, nil
		for i := range e.Ran {
			e.Ran[i].Told = at
		}
	case CauseReply:
		g.untold()
		e.Call, g.call = g.call, nil
		e.Context, e.Recorded, g.context = g.view.explained(g.context), g.context, nil
		g.reply, g.next = at, 0
	case CauseObservation, CauseMalformedPatch:
		if ran := g.ran(); g.next < len(ran) {
			ran[g.next].Told = at
			g.next++
		}
	}
	g.t.Entries = append(g.t.Entries, e)
	g.view.Add(e.Record, e.Message.Message)
}

// untold gives a person's commands that the model was never told of to whatever
// stands before them.
func (g *gatherer) untold() {
	if g.reply < 0 {
		g.t.Setup = append(g.t.Setup, g.own...)
	} else if len(g.own) > 0 {
		e := &g.t.Entries[g.reply]
		e.Ran = append(e.Ran, g.own...)
	}
	g.own = nil
}

// ran are the executions of the current reply.
func (g *gatherer) ran() []Ran {
	if g.reply < 0 {
		return nil
	}
	return g.t.Entries[g.reply].Ran
}

func (g *gatherer) execution(ran Ran) {
	if ran.Person {
		g.own = append(g.own, ran)
		return
	}
	if g.reply < 0 {
		g.t.Setup = append(g.t.Setup, ran)
		return
	}
	e := &g.t.Entries[g.reply]
	e.Ran = append(e.Ran, ran)
}
