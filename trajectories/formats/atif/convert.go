package atif

import (
	"cmp"
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

// converter converts a document of another agent to records.
type converter struct {
	doc        *Trajectory
	newer      bool // the version is newer than LatestSpec
	imported   trajectories.Import
	records    []trajectories.Record
	err        error
	lossCounts map[string]int // number of occurrences by loss
	usage      model.Usage    // total of the calls
	cost       model.Cost     // total of the calls
	calls      int            // number of calls
}

func (conv *converter) convert() (*File, error) {
	conv.lossCounts = map[string]int{}
	h := conv.header()
	conv.add(trajectories.TypeHeader, conv.firstTime(), h)
	conv.add(trajectories.TypeImport, conv.firstTime(), nil) // filled in by finish
	for _, s := range conv.doc.Steps {
		conv.addStep(s)
	}
	conv.addOutcome()
	conv.documentLosses()
	conv.finish()
	if conv.err != nil {
		return nil, fmt.Errorf("read trajectory %s: %w", conv.imported.File, conv.err)
	}
	return &File{Version: conv.doc.SchemaVersion, Header: h, Losses: conv.imported.Losses, Records: conv.records}, nil
}

func (conv *converter) add(t trajectories.Type, at time.Time, data any) {
	body, err := trajectories.EncodeJSON(data)
	if err != nil && conv.err == nil {
		conv.err = err
	}
	n := len(conv.records)
	conv.records = append(conv.records, trajectories.Record{ID: n + 1, Parent: n, Type: t, Time: at, Data: body})
}

// firstTime returns the time of the first step that has one, or the zero time.
func (conv *converter) firstTime() time.Time {
	for _, s := range conv.doc.Steps {
		if at := parseTimestamp(s.Timestamp); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// parseTimestamp returns the time of a valid timestamp, or the zero time for nil.
func parseTimestamp(stamp *string) time.Time {
	at, _ := parseTime(value(stamp))
	return at
}

func (conv *converter) header() trajectories.Header {
	h := trajectories.Header{Format: trajectories.Format, ModelName: value(conv.doc.Agent.ModelName)}
	for _, raw := range conv.doc.Agent.Tools {
		var tool struct {
			Function *model.ToolDefinition `json:"function"`
		}
		if json.Unmarshal(raw, &tool) != nil || tool.Function == nil || tool.Function.Name == "" {
			conv.addLoss("a tool definition that is not a function is kept as data only")
			continue
		}
		if len(tool.Function.Parameters) == 0 {
			tool.Function.Parameters = json.RawMessage("{}")
		}
		h.Tools = append(h.Tools, *tool.Function)
	}
	return h
}

func (conv *converter) addLoss(sentence string) { conv.lossCounts[sentence]++ }

// addStep adds the records of a step.
func (conv *converter) addStep(s Step) {
	at := parseTimestamp(s.Timestamp)
	text, images := conv.content(s.Message)
	m := trajectories.Message{Cause: trajectories.CausePrompt, Message: model.Message{Content: text, Images: images}}
	switch s.Source {
	case sourceSystem:
		m.Role = model.System
	case sourceUser:
		m.Role = model.User
	default:
		conv.fillReply(s, &m, at)
	}
	conv.add(trajectories.TypeMessage, at, m)
	conv.addResults(s, at)
}

// fillReply sets the fields of the message of an agent's step, and adds its call. A step
// that was copied from another trajectory, or that no model wrote, becomes a part of the
// prompt.
func (conv *converter) fillReply(s Step, m *trajectories.Message, at time.Time) {
	m.Role = model.Assistant
	m.Reasoning = value(s.Reasoning)
	if m.Reasoning == m.Content && m.Content != "" && conv.doc.Agent.Name == "mini-swe-agent" {
		m.Reasoning = "" // Harbor's converter writes every text twice
		conv.addLoss("reasoning that repeats the text of the reply is kept as data only")
	}
	for _, c := range s.Calls {
		arguments, _ := trajectories.EncodeJSON(c.Arguments) // cannot fail for JSON that was decoded
		m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: c.ID, Name: c.Function, Arguments: string(arguments)})
		if !shellTools[c.Function] {
			conv.addLoss("a tool call that is not a shell command cannot be replayed")
		}
	}
	switch {
	case value(s.Copied):
		conv.addLoss("a step copied from another trajectory is part of the prompt, not a reply")
	case s.LLMCalls != nil && *s.LLMCalls == 0:
		conv.addLoss("a step made by a program, not a model, is part of the prompt, not a reply")
	default:
		m.Cause = trajectories.CauseReply
		m.Actions = shellCommands(m.ToolCalls)
		conv.addCall(s, at)
	}
}

// addCall adds the call of a step, unless the step has no data about it.
func (conv *converter) addCall(s Step, at time.Time) {
	if s.Metrics == nil && s.ModelName == nil {
		return
	}
	c := trajectories.Call{Model: value(s.ModelName), Start: at, RequestCount: 1}
	c.Usage, c.Cost = s.Metrics.usage()
	conv.calls, conv.usage, conv.cost = conv.calls+1, conv.usage.Add(c.Usage), conv.cost+c.Cost
	conv.add(trajectories.TypeCall, at, c)
}

// addResults adds messages with the results of a step. If no result has a call ID and
// there are as many results as tool calls, they correspond in order.
func (conv *converter) addResults(s Step, at time.Time) {
	results := s.results()
	matchInOrder := len(results) == len(s.Calls) && !slices.ContainsFunc(results, func(r Result) bool { return r.CallID != nil })
	for i, r := range results {
		if len(r.Refs) > 0 {
			conv.addLoss("a reference to the trajectory of another agent is kept as data only")
		}
		if r.Content == nil && len(r.Refs) > 0 {
			continue // the result has no text
		}
		m := trajectories.Message{Cause: trajectories.CauseObservation}
		m.Role = model.User
		m.Content, m.Images = conv.content(r.Content)
		switch {
		case r.CallID != nil:
			m.Role, m.ToolCallID = model.Tool, *r.CallID
		case matchInOrder:
			m.Role, m.ToolCallID = model.Tool, s.Calls[i].ID
			conv.addLoss("results without a call ID were matched to calls in order")
		}
		conv.add(trajectories.TypeMessage, at, m)
	}
}

// content returns the text and the embedded images of a content.
func (conv *converter) content(c *Content) (string, []model.Image) {
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
			if data, ok := inlineData(p.Source); ok {
				images = append(images, model.Image{MediaType: p.Source.MediaType, Data: data})
				continue
			}
			conv.addLoss("an image in a separate file is not kept, only its path as data")
		default:
			conv.addLoss("an audio part is not kept, only its path as data")
		}
	}
	return text.String(), images
}

// inlineData returns the data of a source whose path is a data URL.
func inlineData(s *Source) ([]byte, bool) {
	rest, ok := strings.CutPrefix(s.Path, "data:"+s.MediaType+";base64,")
	if !ok {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(rest)
	return data, err == nil
}

// addOutcome adds an outcome if the exit status in the extra data is "Submitted".
func (conv *converter) addOutcome() {
	var x struct {
		ExitStatus *string `json:"exit_status"`
		Submission *string `json:"submission"`
	}
	if json.Unmarshal(conv.doc.Extra, &x) != nil || x.ExitStatus == nil || *x.ExitStatus != "Submitted" {
		return
	}
	o := trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: *x.ExitStatus, Submission: trajectories.Bytes(value(x.Submission)),
		Steps: conv.calls, Usage: conv.usage, Cost: conv.cost, Start: conv.firstTime(),
	}
	if len(o.Submission) > 0 {
		o.Source = trajectories.SourceSubmitted
	}
	for _, s := range slices.Backward(conv.doc.Steps) {
		if o.End = parseTimestamp(s.Timestamp); !o.End.IsZero() {
			break
		}
	}
	conv.add(trajectories.TypeOutcome, o.End, o)
}

// documentLosses adds losses about the document as a whole.
func (conv *converter) documentLosses() {
	if ref := value(conv.doc.Continuation); ref != "" {
		conv.imported.Losses = append(conv.imported.Losses, fmt.Sprintf("the trajectory continues in %.200q", ref))
	}
	if n := len(conv.doc.Subagents); n > 0 {
		conv.imported.Losses = append(conv.imported.Losses, fmt.Sprintf("embedded trajectories of other agents (%d) are kept as data only", n))
	}
}

// finish sets the data of the import record. It contains the document, so that Write can
// write the document again.
func (conv *converter) finish() {
	if conv.newer { // the document has no unknown fields anymore
		conv.doc.SchemaVersion = fmt.Sprintf("ATIF-v1.%d", LatestSpec)
	}
	for _, sentence := range slices.Sorted(maps.Keys(conv.lossCounts)) {
		conv.imported.Losses = append(conv.imported.Losses, fmt.Sprintf("%s (%d times)", sentence, conv.lossCounts[sentence]))
	}
	var err error
	if conv.imported.Extra, err = trajectories.EncodeJSON(conv.doc); err == nil {
		conv.records[1].Data, err = trajectories.EncodeJSON(conv.imported)
	}
	conv.err = cmp.Or(conv.err, err)
}
