package atif

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// foreign makes records of another agent's document.
type foreign struct {
	doc     *Trajectory
	newer   bool // than what is known
	made    trajectories.Import
	records []trajectories.Record
	err     error
	// counted are sentences for the list of what is lost, with how many steps
	// each is true of.
	counted map[string]int
	usage   model.Usage
	cost    model.Cost
	calls   int
}

func (f *foreign) file() (*File, error) {
	f.counted = map[string]int{}
	h := f.header()
	f.add(trajectories.TypeHeader, f.first(), h)
	f.add(trajectories.TypeImport, f.first(), nil) // filled in when all is known
	for _, s := range f.doc.Steps {
		f.step(s)
	}
	f.outcome()
	f.whole()
	f.keep()
	if f.err != nil {
		return nil, fmt.Errorf("read trajectory %s: %w", f.made.File, f.err)
	}
	return &File{Version: f.doc.SchemaVersion, Header: h, Lost: f.made.Lost, Records: f.records}, nil
}

func (f *foreign) add(t trajectories.Type, at time.Time, data any) {
	body, err := trajectories.Encode(data)
	if err != nil && f.err == nil {
		f.err = err
	}
	n := len(f.records)
	f.records = append(f.records, trajectories.Record{ID: n + 1, Parent: n, Type: t, Time: at, Data: body})
}

// first is the earliest time that a step has.
func (f *foreign) first() time.Time {
	for _, s := range f.doc.Steps {
		if at := timeOf(s.Timestamp); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

func timeOf(stamp *string) time.Time {
	at, _ := parseTime(value(stamp))
	return at
}

func (f *foreign) header() trajectories.Header {
	h := trajectories.Header{Format: trajectories.Format, ModelName: value(f.doc.Agent.ModelName)}
	h.Tools = definitions(f.doc.Agent.Tools, func() { f.note("a definition of a tool that is no function is kept as data") })
	return h
}

// definitions are the tools of a list; odd is called for what is none.
func definitions(list []json.RawMessage, odd func()) []model.Definition {
	var tools []model.Definition
	for _, raw := range list {
		var t struct {
			Function *model.Definition `json:"function"`
		}
		if json.Unmarshal(raw, &t) != nil || t.Function == nil || t.Function.Name == "" {
			odd()
			continue
		}
		if len(t.Function.Parameters) == 0 {
			t.Function.Parameters = json.RawMessage("{}")
		}
		tools = append(tools, *t.Function)
	}
	return tools
}

func (f *foreign) note(sentence string) { f.counted[sentence]++ }

func (f *foreign) step(s Step) {
	at := timeOf(s.Timestamp)
	text, images := f.content(s.Message)
	m := trajectories.Message{Cause: trajectories.CausePrompt, Message: model.Message{Content: text, Images: images}}
	switch s.Source {
	case sourceSystem:
		m.Role = model.System
	case sourceUser:
		m.Role = model.User
	default:
		f.reply(s, &m, at)
	}
	f.add(trajectories.TypeMessage, at, m)
	f.results(s, at)
}

// reply fills in what an agent's step has. One that was copied from another
// trajectory, or that no model wrote, is a part of the prompt.
func (f *foreign) reply(s Step, m *trajectories.Message, at time.Time) {
	m.Role = model.Assistant
	m.Reasoning = value(s.Reasoning)
	if m.Reasoning == m.Content && m.Content != "" && f.doc.Agent.Name == "mini-swe-agent" {
		m.Reasoning = "" // the converter of Harbor writes every text twice
		f.note("the reasoning is the text of the reply once more: kept as data")
	}
	for _, c := range s.Calls {
		m.Calls = append(m.Calls, model.Call{ID: c.ID, Name: c.Function, Arguments: string(formOf(c.Arguments))})
		if !shells[c.Function] {
			f.note("a tool call that is no command for a shell is kept as a call, and cannot be replayed")
		}
	}
	switch {
	case value(s.Copied):
		f.note("a step was copied from another trajectory: it is kept as a part of the prompt, not as a reply")
	case s.LLMCalls != nil && *s.LLMCalls == 0:
		f.note("a step was made by a program, not a model: it is kept as a part of the prompt, not as a reply")
	default:
		m.Cause = trajectories.CauseReply
		m.Actions = commandsOf(m.Calls)
		f.call(s, at)
	}
}

func (f *foreign) call(s Step, at time.Time) {
	if s.Metrics == nil && s.ModelName == nil {
		return
	}
	c := trajectories.Call{Model: value(s.ModelName), Start: at, Tries: 1}
	c.Usage, c.Cost = s.Metrics.usage()
	f.calls, f.usage, f.cost = f.calls+1, f.usage.Add(c.Usage), f.cost+c.Cost
	f.add(trajectories.TypeCall, at, c)
}

// results are messages to the model. Those without the id of a call are paired
// with the calls where there are as many.
func (f *foreign) results(s Step, at time.Time) {
	results := s.results()
	pair := len(results) == len(s.Calls) && !slices.ContainsFunc(results, func(r Result) bool { return r.CallID != nil })
	for i, r := range results {
		if len(r.Refs) > 0 {
			f.note("a step refers to the trajectory of another agent: the reference is kept as data")
		}
		if r.Content == nil && len(r.Refs) > 0 {
			continue // nothing was said
		}
		m := trajectories.Message{Cause: trajectories.CauseObservation}
		m.Role = model.User
		m.Content, m.Images = f.content(r.Content)
		switch {
		case r.CallID != nil:
			m.Role, m.CallID = model.Tool, *r.CallID
		case pair:
			m.Role, m.CallID = model.Tool, s.Calls[i].ID
			f.note("results do not say which call they are of, and were taken in the order of the calls: they are written with the ids")
		}
		f.add(trajectories.TypeMessage, at, m)
	}
}

// content is the text of a content, and its pictures as far as they stand in it.
func (f *foreign) content(c *Content) (string, []model.Image) {
	if c == nil {
		return "", nil
	}
	if c.Parts == nil {
		return c.Text, nil
	}
	var text strings.Builder
	var images []model.Image
	for _, p := range c.Parts {
		switch {
		case p.Text != nil:
			text.WriteString(*p.Text)
		case p.Type == "image":
			if data, ok := inline(p.Source); ok {
				images = append(images, model.Image{MediaType: p.Source.MediaType, Data: data})
				continue
			}
			f.note("a picture stands in a file of its own: its path is kept as data, the picture is not")
		default:
			f.note("a part is sound: its path is kept as data, the sound is not")
		}
	}
	return text.String(), images
}

// inline is the data of a "data:" URL.
func inline(s *Source) ([]byte, bool) {
	rest, ok := strings.CutPrefix(s.Path, "data:"+s.MediaType+";base64,")
	if !ok {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(rest)
	return data, err == nil
}

// outcome is there where the document says that the work was handed in.
func (f *foreign) outcome() {
	var x struct {
		ExitStatus *string `json:"exit_status"`
		Submission *string `json:"submission"`
	}
	if json.Unmarshal(f.doc.Extra, &x) != nil || x.ExitStatus == nil || *x.ExitStatus != "Submitted" {
		return
	}
	o := trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: *x.ExitStatus, Submission: trajectories.Bytes(value(x.Submission)),
		Steps: f.calls, Usage: f.usage, Cost: f.cost, Start: f.first(),
	}
	if len(o.Submission) > 0 {
		o.Source = trajectories.SourceSubmitted
	}
	for _, s := range slices.Backward(f.doc.Steps) {
		if o.End = timeOf(s.Timestamp); !o.End.IsZero() {
			break
		}
	}
	f.add(trajectories.TypeOutcome, o.End, o)
}

// whole notes what is true of the document as a whole.
func (f *foreign) whole() {
	if ref := value(f.doc.Continued); ref != "" {
		f.made.Lost = append(f.made.Lost, fmt.Sprintf("it goes on in %.200q, which is a trajectory of its own", ref))
	}
	if n := len(f.doc.Subagents); n > 0 {
		f.made.Lost = append(f.made.Lost, fmt.Sprintf("trajectories of other agents within it (%d) are kept as data, not as messages", n))
	}
}

// keep fills in the import record: with what Write would not make of the records
// again.
func (f *foreign) keep() {
	if f.err != nil {
		return
	}
	file := File{Records: f.records[2:]}
	t, err := trajectories.Gather(file.All())
	if err != nil {
		f.err = err
		return
	}
	b := builder{t: t, foreign: true, shown: map[shown]bool{}}
	b.build()
	kept := keptDocument{Trajectory: *f.doc}
	if f.newer { // what is written again is what was understood
		kept.SchemaVersion = fmt.Sprintf("ATIF-v1.%d", Newest)
	}
	if len(b.steps) != len(f.doc.Steps) {
		f.err = fmt.Errorf("%d steps became %d", len(f.doc.Steps), len(b.steps))
		return
	}
	d := difference{}
	for i, s := range f.doc.Steps {
		b.steps[i].ID = 0 // so that what is kept has the number
		if k := d.beyond(formOf(s), formOf(b.steps[i])); len(apart[object](k)) > 1 {
			kept.Steps = append(kept.Steps, k)
		}
	}
	for _, sentence := range slices.Sorted(maps.Keys(f.counted)) {
		f.made.Lost = append(f.made.Lost, fmt.Sprintf("%s (%d times)", sentence, f.counted[sentence]))
	}
	delete(d, "source_call_id") // is among the sentences
	for _, name := range slices.Sorted(maps.Keys(d)) {
		f.made.Lost = append(f.made.Lost, fmt.Sprintf("%s is written where it was empty (%d times)", name, d[name]))
	}
	f.made.Extra = formOf(kept)
	f.records[1].Data = formOf(f.made)
}
