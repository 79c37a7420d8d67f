package atif

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// restorer makes the journal again that Write made a document of.
type restorer struct {
	root  *ownRoot
	doc   *Trajectory
	items []item
	last  key // of what was met last
	err   error
}

// key orders records: by the number that they had, and what has none after what
// it was found behind.
type key struct{ record, behind int }

func (r *restorer) key(record int) key {
	if record > 0 {
		r.last = key{record, 0}
	} else {
		r.last.behind++
	}
	return r.last
}

// item is a record on its way back. The records that a document does not number
// stand before the one that they belong to.
type item struct {
	key
	before int // how far before the record of the key: 0 is that record itself
	t      trajectories.Type
	at     time.Time
	data   any
}

func (root *ownRoot) file(doc *Trajectory, made trajectories.Import) (*File, error) {
	r := restorer{root: root, doc: doc}
	h := root.Header
	h.Format = trajectories.Format
	h.Tools = definitions(doc.Agent.Tools, func() {})
	if root.Import != nil {
		made = *root.Import
	}
	for _, ran := range root.Setup {
		r.execution(ran, ran.Command)
	}
	for i := range doc.Steps {
		r.step(&doc.Steps[i])
	}
	for _, o := range root.Records {
		r.items = append(r.items, item{r.key(o.ID), 0, o.Type, o.Time, o.Data})
	}
	r.failed()
	slices.SortStableFunc(r.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.behind, b.behind), cmp.Compare(b.before, a.before))
	})
	f := &File{Version: doc.SchemaVersion, Header: h, Lost: made.Lost}
	var start, end time.Time
	if root.Outcome != nil {
		start, end = root.Start, root.End
	}
	all := slices.Concat([]item{{key{}, 0, trajectories.TypeHeader, start, h}, {key{}, 0, trajectories.TypeImport, start, made}}, r.items)
	if root.Diff != nil {
		all = append(all, item{key{}, 0, trajectories.TypeDiff, end, root.Diff})
	}
	if root.Outcome != nil {
		all = append(all, item{key{}, 0, trajectories.TypeOutcome, end, root.Outcome})
	}
	r.number(f, all)
	if r.err != nil {
		return nil, fmt.Errorf("read trajectory %s: %w", made.File, r.err)
	}
	var err error
	f.Children, err = doc.subagents(made)
	return f, err
}

// number gives the records their ids, and those that name others the ids that
// these have now.
func (r *restorer) number(f *File, all []item) {
	now := map[int]int{}
	for i, it := range all {
		if it.record > 0 && it.behind == 0 && it.before == 0 {
			now[it.record] = i + 1
		}
	}
	for i, it := range all {
		rec := trajectories.Record{ID: i + 1, Parent: i, Type: it.t, Time: it.at}
		var err error
		if rec.Data, err = trajectories.Encode(it.data); err == nil {
			err = rec.Renumber(func(record int) int { return now[record] })
		}
		if err != nil && r.err == nil {
			r.err = fmt.Errorf("record %d: %w", i+1, err)
		}
		f.Records = append(f.Records, rec)
	}
}

func (r *restorer) step(s *Step) {
	var own ownStep
	r.take(s.Extra, &own)
	if own.Compaction > 0 {
		return
	}
	m := trajectories.Message{Cause: own.Cause}
	m.Content, m.Images = (&foreign{counted: map[string]int{}}).content(s.Message)
	m.Images = append(m.Images, own.Images...)
	m.CallID, m.Kept = own.CallID, own.Kept
	of := map[string]model.Role{sourceSystem: model.System, sourceUser: model.User, sourceAgent: model.Assistant}
	m.Role = cmp.Or(own.Role, of[s.Source])
	switch {
	case own.Cause == none:
		m.Cause = ""
	case own.Cause == "" && s.Source == sourceAgent:
		m.Cause = trajectories.CauseReply
	case own.Cause == "":
		m.Cause = trajectories.CausePrompt
	}
	written := r.calls(s, &m)
	if own.Actions != nil {
		m.Actions = *own.Actions
	}
	at := r.key(own.Record)
	if s.Source == sourceAgent {
		m.Reasoning = value(s.Reasoning)
		r.call(s, own, at)
	}
	r.items = append(r.items, item{at, 0, trajectories.TypeMessage, timeOf(s.Timestamp), m})
	for _, res := range s.results() {
		r.result(s, res, written)
	}
}

// calls are those of a reply, and its commands. True means that there are none:
// what stands for them is in the text.
func (r *restorer) calls(s *Step, m *trajectories.Message) bool {
	written := false
	for _, c := range s.Calls {
		var own ownToolCall
		r.take(c.Extra, &own)
		if command, ok := commandOf(c.Function, c.Arguments); ok {
			m.Actions = append(m.Actions, command)
		}
		if own.Written {
			written = true
			continue
		}
		call := model.Call{ID: c.ID, Name: c.Function, Arguments: string(formOf(c.Arguments))}
		if own.ID != nil {
			call.ID = *own.ID
		}
		if own.Arguments != nil {
			call.Arguments = *own.Arguments
		}
		m.Calls = append(m.Calls, call)
	}
	return written
}

func (r *restorer) call(s *Step, own ownStep, at key) {
	if own.Sent != nil {
		r.items = append(r.items, item{at, 2, trajectories.TypeContext, timeOf(s.Timestamp), own.Sent})
	}
	c := own.Call
	if c == nil {
		return
	}
	call := trajectories.Call{
		Cost: c.Cost, Finish: c.Finish, Model: value(s.ModelName), Start: c.Start,
		Duration: c.Duration, Waited: c.Waited, Tries: c.Tries, Attempts: c.Attempts,
	}
	if s.Metrics != nil {
		var cost model.Cost
		call.Usage, cost = s.Metrics.usage()
		if s.Metrics.Cost != nil {
			call.Cost = cost
		}
	}
	r.items = append(r.items, item{at, 1, trajectories.TypeCall, timeOf(s.Timestamp), call})
}

func (r *restorer) result(s *Step, res Result, written bool) {
	var own ownResult
	r.take(res.Extra, &own)
	if own.Execution != nil {
		command := own.Command
		for _, c := range s.Calls {
			if said, ok := commandOf(c.Function, c.Arguments); ok && command == "" && res.CallID != nil && c.ID == *res.CallID {
				command = said
			}
		}
		r.execution(own, command)
	}
	if res.Content == nil {
		return
	}
	m := trajectories.Message{Cause: own.Cause}
	m.Content, m.Images = (&foreign{counted: map[string]int{}}).content(res.Content)
	m.Images = append(m.Images, own.Images...)
	m.Role, m.CallID = model.User, own.CallID
	if res.CallID != nil && !written {
		m.Role, m.CallID = model.Tool, r.idOf(s, *res.CallID)
	}
	m.Role = cmp.Or(own.Role, m.Role)
	switch own.Cause {
	case none:
		m.Cause = ""
	case "":
		m.Cause = trajectories.CauseObservation
	}
	at := timeOf(s.Timestamp)
	if own.Time != nil {
		at = *own.Time
	}
	r.items = append(r.items, item{r.key(own.Record), 0, trajectories.TypeMessage, at, m})
}

// idOf is what the model called a call.
func (r *restorer) idOf(s *Step, id string) string {
	for _, c := range s.Calls {
		var own ownToolCall
		if r.take(c.Extra, &own); c.ID == id && own.ID != nil {
			return *own.ID
		}
	}
	return id
}

func (r *restorer) execution(own ownResult, command string) {
	if own.Execution == nil {
		return
	}
	for _, t := range own.Tools {
		r.items = append(r.items, item{r.key(t.Record), 0, trajectories.TypeTool, t.Start, t.ToolCall})
	}
	x := *own.Execution
	x.Command = command
	r.items = append(r.items, item{r.key(own.Ran), 0, trajectories.TypeExecution, x.Start, x})
}

// failed puts the calls that failed before the first reply to a later one.
func (r *restorer) failed() {
	for _, c := range r.root.Failed {
		it := item{key{1 << 40, 0}, 0, trajectories.TypeCall, c.Start, c}
		for _, o := range r.items {
			if later, ok := o.data.(trajectories.Call); ok && o.before == 1 && later.Start.After(c.Start) {
				it.key, it.before = o.key, 3
				break
			}
		}
		r.items = append(r.items, it)
	}
}

// take reads an extra of mini's own.
func (r *restorer) take(extra json.RawMessage, v any) {
	if len(extra) == 0 {
		return
	}
	if err := json.Unmarshal(extra, v); err != nil && r.err == nil {
		r.err = fmt.Errorf("an extra of mini's: %w", err)
	}
}
