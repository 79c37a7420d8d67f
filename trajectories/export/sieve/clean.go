package sieve

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// Found are secrets of one kind in one record of an attempt. What they are is
// said nowhere.
type Found struct {
	File   string `json:"file"`
	Record int    `json:"record"` // 0 where it is none of the conversation's
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	// Left says that it was left where it is: only of a patch that is no
	// training data, which without it would be another patch.
	Left bool `json:"left,omitempty"`
}

// cleaner takes secrets out of one attempt.
type cleaner struct {
	*scanner
	found  map[Found]int
	file   string
	record int
	leave  func(secret) bool
}

// clean takes secrets out of all texts of an attempt, whichever of them is
// exported. Patches of what trains nobody keep what only looks like a secret.
func (s *scanner) clean(it *export.Item, training bool) []Found {
	c := &cleaner{scanner: s, file: nameOf(it)}
	c.transcript(it.Transcript, training)
	for _, child := range it.Children {
		c.transcript(child, training)
	}
	return c.all()
}

func (c *cleaner) transcript(it *trajectories.Transcript, training bool) {
	c.leave, c.record = nil, 0
	c.header(&it.Header)
	if it.Import != nil {
		c.json(&it.Import.Extra)
		c.texts(it.Import.Lost)
	}
	for i := range it.Entries {
		c.entry(&it.Entries[i])
	}
	for i := range it.Setup {
		c.ran(&it.Setup[i])
	}
	for i := range it.Compactions {
		made := &it.Compactions[i]
		c.record = made.Record
		c.text(&made.Policy)
		c.text(&made.Fallback)
		for k := range made.Replaced {
			c.message(&made.Replaced[k].Message)
		}
	}
	for i := range it.Others {
		c.record = it.Others[i].ID
		c.json(&it.Others[i].Data)
	}
	c.record = 0
	for i := range it.Failed {
		c.call(&it.Failed[i])
	}
	if it.Outcome != nil {
		c.outcome(it.Outcome)
	}
	if it.Diff != nil {
		c.text(&it.Diff.Problem)
		c.text(&it.Diff.Error)
		c.texts(it.Diff.Omitted)
		c.texts(it.Diff.OmittedReasons)
	}
	if !training {
		c.leave = leaveShapes
	}
	if it.Outcome != nil {
		c.bytes((*[]byte)(&it.Outcome.Submission))
		c.bytes((*[]byte)(&it.Outcome.PartialPatch))
	}
	if it.Diff != nil {
		c.bytes((*[]byte)(&it.Diff.Patch))
	}
}

// leaveShapes leaves what only looks like a secret.
func leaveShapes(s secret) bool { return !s.known }

func (c *cleaner) text(s *string) { *s = redact(c.scanner, *s, c.leave, c.note) }

func (c *cleaner) bytes(b *[]byte) { *b = redact(c.scanner, *b, c.leave, c.note) }

func (c *cleaner) json(raw *json.RawMessage) { *raw = redactJSON(c.scanner, *raw, c.leave, c.note) }

func (c *cleaner) texts(list []string) {
	for i := range list {
		c.text(&list[i])
	}
}

func (c *cleaner) note(s secret, left bool) {
	if c.found == nil {
		c.found = map[Found]int{}
	}
	c.found[Found{File: c.file, Record: c.record, Kind: s.kind, Left: left}]++
}

func (c *cleaner) header(h *trajectories.Header) {
	c.json(&h.Config)
	c.text(&h.Image)
	if p := h.Parent; p != nil {
		c.text(&p.Task)
	}
	h.Tools = slices.Clone(h.Tools) // may be shared by attempts that are read side by side
	for i := range h.Tools {
		c.text(&h.Tools[i].Description)
		c.json(&h.Tools[i].Parameters)
	}
}

func (c *cleaner) entry(e *trajectories.Entry) {
	c.record = e.Record
	c.text(&e.Content)
	c.text(&e.Reasoning)
	c.json(&e.Kept)
	c.texts(e.Actions)
	c.calls(e.Calls)
	if e.Call != nil {
		c.call(e.Call)
	}
	if e.Context != nil {
		c.sent(e.Context)
	}
	if e.Recorded != nil {
		c.sent(e.Recorded)
	}
	for i := range e.Ran {
		c.ran(&e.Ran[i])
	}
}

// sent looks at what stands in a context alone. Contexts may share a message.
func (c *cleaner) sent(s *trajectories.Context) {
	c.text(&s.Tail)
	for i := range s.Sent {
		if m := s.Sent[i].Message; m != nil {
			c.message(m)
		}
	}
}

func (c *cleaner) message(m *model.Message) {
	c.text(&m.Content)
	c.text(&m.Reasoning)
	c.json(&m.Kept)
	c.calls(m.Calls)
}

func (c *cleaner) calls(calls []model.Call) {
	for i := range calls {
		c.text(&calls[i].Name)
		if _, ok := next(c.scanner, calls[i].Arguments, 0); ok {
			calls[i].Arguments = string(redactJSON(c.scanner, []byte(calls[i].Arguments), c.leave, c.note))
		}
	}
}

// call looks at what a provider answered beside the message.
func (c *cleaner) call(call *trajectories.Call) {
	c.text(&call.Error)
	c.json(&call.Raw)
	for i := range call.Attempts {
		c.text(&call.Attempts[i].Error)
	}
}

func (c *cleaner) ran(r *trajectories.Ran) {
	c.record = r.Record
	c.text(&r.Command)
	c.bytes((*[]byte)(&r.Output))
	c.text(&r.Exception)
	for i := range r.Background {
		c.text(&r.Background[i].Name)
	}
	for i := range r.Tools {
		c.called(&r.Tools[i])
	}
}

// called looks at what a command asked for, and what it was answered.
func (c *cleaner) called(t *trajectories.Called) {
	c.record = t.Record
	c.text(&t.Name) // the model's, there may be no such tool
	c.text(&t.Dir)
	c.texts(t.Args)
	for _, b := range []*trajectories.Bytes{&t.Input, &t.Output, &t.Errors} {
		c.bytes((*[]byte)(b))
	}
	c.json(&t.Details)
}

func (c *cleaner) outcome(o *trajectories.Outcome) {
	for _, s := range []*string{&o.ExitStatus, &o.Error, &o.Hint, &o.Stack} {
		c.text(s)
	}
	c.texts(o.Warnings)
}

// all is what was found, in the order of the records.
func (c *cleaner) all() []Found {
	var all []Found
	for f, n := range c.found {
		f.Count = n
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Record, b.Record), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}
