package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// atifDocument has the fields that this package reads of a document in the Agent Trajectory
// Interchange Format. Package atif describes the format.
type atifDocument struct {
	Version string `json:"schema_version"`
	Agent   struct {
		Name    string            `json:"name"`
		Version string            `json:"version"`
		Model   string            `json:"model_name"`
		Tools   []json.RawMessage `json:"tool_definitions"`
	} `json:"agent"`
	Continuation string            `json:"continued_trajectory_ref"`
	Steps        []json.RawMessage `json:"steps"`
	atifExtra
}

// atifExtra is the extra data of a trajectory and of those that are embedded in it.
type atifExtra struct {
	Extra     json.RawMessage `json:"extra"`
	Subagents []atifExtra     `json:"subagent_trajectories"`
}

type atifStep struct {
	Time        string      `json:"timestamp"`
	Source      string      `json:"source"`
	Model       string      `json:"model_name"`
	Message     atifContent `json:"message"`
	Reasoning   string      `json:"reasoning_content"`
	Calls       []fileCall  `json:"tool_calls"`
	Observation struct {
		Results []atifResult `json:"results"`
	} `json:"observation"`
	Metrics  *atifMetrics `json:"metrics"`
	Copied   bool         `json:"is_copied_context"`
	LLMCalls *float64     `json:"llm_call_count"` // 0 if no model wrote the step
}

type atifResult struct {
	CallID  *string           `json:"source_call_id"`
	Content *atifContent      `json:"content"`
	Refs    []json.RawMessage `json:"subagent_trajectory_ref"`
}

type atifMetrics struct {
	Prompt     float64  `json:"prompt_tokens"`
	Completion float64  `json:"completion_tokens"`
	Cached     float64  `json:"cached_tokens"`
	Cost       *float64 `json:"cost_usd"`
	Extra      struct {
		Reasoning      lenient[float64] `json:"reasoning_tokens"`
		CacheWrite     lenient[float64] `json:"cache_write_tokens"`
		CacheWriteHour lenient[float64] `json:"cache_write_hour_tokens"`
		Unpriced       lenient[float64] `json:"unpriced_calls"`
		Details        struct {
			Reasoning lenient[float64] `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheCreation lenient[float64] `json:"cache_creation_input_tokens"`
	} `json:"extra"`
}

// atifContent is a content: a string, or a list of parts.
type atifContent []atifPart

type atifPart struct {
	Type   string  `json:"type"`
	Text   *string `json:"text"`
	Source struct {
		MediaType string `json:"media_type"`
		Path      string `json:"path"` // may be a data URL
	} `json:"source"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *atifContent) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*[]atifPart)(c))
	}
	*c = make(atifContent, 1)
	return json.Unmarshal(data, &(*c)[0].Text)
}

// atifVersion matches the versions of ATIF; its group is the minor version.
var atifVersion = lazyregexp.New(`^ATIF-v1\.(0|[1-9][0-9]?)$`)

// latestATIF is the newest minor version of ATIF that is known.
const latestATIF = 8

// readATIF reads an ATIF document. The import record contains the document. From a document
// that mini wrote, readATIF restores the original journal instead.
func readATIF(src source, data []byte) (*File, error) {
	data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	var doc atifDocument
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("invalid ATIF: %w", explainJSON(err))
	}
	version := cmp.Or(doc.Version, "ATIF-v1.7")
	m := atifVersion.FindStringSubmatch(version)
	if m == nil {
		return nil, fmt.Errorf("invalid ATIF: schema_version: ATIF-v1.0 to ATIF-v1.%d expected, got %.60q", latestATIF, version)
	}
	if len(doc.Steps) == 0 {
		return nil, errors.New("invalid ATIF: steps: at least one step required")
	}
	b := newBuilder(src, version)
	b.imported.Agent, b.imported.AgentVersion = doc.Agent.Name, doc.Agent.Version
	if minor, _ := strconv.Atoi(m[1]); minor > latestATIF {
		b.addLoss(fmt.Sprintf("the version %s is unknown; the file was read as 1.%d", version, latestATIF), 1)
	}
	b.addLoss("the file has no version; it was read as "+version, boolInt(doc.Version == ""))
	if f, err := doc.restore(b); f != nil || err != nil {
		return f, err
	}
	b.addLoss(fmt.Sprintf("the trajectory continues in %.200q", doc.Continuation), boolInt(doc.Continuation != ""))
	b.addLoss(fmt.Sprintf("embedded trajectories of other agents (%d) are kept as data only", len(doc.Subagents)), boolInt(len(doc.Subagents) > 0))
	b.imported.Extra = data
	b.header.ModelName = doc.Agent.Model
	for _, raw := range doc.Agent.Tools {
		var tool struct {
			Function model.ToolDefinition `json:"function"`
		}
		if json.Unmarshal(raw, &tool) != nil || tool.Function.Name == "" {
			b.addLoss("a tool definition that is not a function is kept as data only", 1)
			continue
		}
		if len(tool.Function.Parameters) == 0 {
			tool.Function.Parameters = json.RawMessage("{}")
		}
		b.header.Tools = append(b.header.Tools, tool.Function)
	}
	for i, raw := range doc.Steps {
		var s atifStep
		err := json.Unmarshal(raw, &s)
		if err == nil {
			err = b.addATIFStep(s)
		}
		if err != nil {
			return nil, fmt.Errorf("invalid ATIF: steps[%d]: %w", i, explainJSON(err))
		}
	}
	var e struct {
		Status     string `json:"exit_status"`
		Submission string `json:"submission"`
	}
	if json.Unmarshal(doc.Extra, &e) == nil && e.Status == "Submitted" { // other agents write no outcome
		b.end(ending{status: e.Status, submission: e.Submission})
	}
	return b.file()
}

// addATIFStep adds the records of a step. A step of the agent that was copied from another
// trajectory, or that no model wrote, becomes a part of the prompt.
func (b *builder) addATIFStep(s atifStep) error {
	at := parseTime(s.Time)
	b.addLoss("a timestamp that is not a time of ISO 8601 is kept as data only", boolInt(s.Time != "" && at.IsZero()))
	m := model.Message{Role: model.Role(s.Source)}
	m.Content, m.Images = b.atifContent(s.Message)
	switch s.Source {
	case "system", "user":
		b.addLoss("the reasoning, calls and metrics of a step that is not the agent's are kept as data only",
			boolInt(s.Reasoning != "" || len(s.Calls) > 0 || s.Metrics != nil))
		b.addMessage(m, trajectories.CausePrompt, at)
		s.Calls = nil
	case "agent":
		m.Role, m.Reasoning = model.Assistant, s.Reasoning
		if m.Reasoning == m.Content && m.Content != "" && b.imported.Agent == "mini-swe-agent" {
			m.Reasoning = "" // Harbor's converter writes every text twice
			b.addLoss("reasoning that repeats the text of the reply is kept as data only", 1)
		}
		var commands []string
		for _, c := range s.Calls {
			call := c.toolCall()
			if compact, err := trajectories.EncodeJSON(json.RawMessage(call.Arguments)); err == nil {
				call.Arguments = string(compact)
			}
			m.ToolCalls = append(m.ToolCalls, call)
			b.addLoss("a tool call that is not a shell command cannot be replayed", boolInt(!atifShells[call.Name]))
			if command, isInput := shellCommand(call); atifShells[call.Name] && command != nil && !isInput {
				commands = append(commands, *command)
			}
		}
		switch {
		case s.Copied:
			b.addLoss("a step copied from another trajectory is part of the prompt, not a reply", 1)
			b.addMessage(m, trajectories.CausePrompt, at)
		case s.LLMCalls != nil && *s.LLMCalls == 0:
			b.addLoss("a step made by a program, not a model, is part of the prompt, not a reply", 1)
			b.addMessage(m, trajectories.CausePrompt, at)
		default:
			var call *trajectories.Call
			if s.Metrics != nil || s.Model != "" {
				call = &trajectories.Call{Model: s.Model, Start: at, RequestCount: 1}
				call.Usage, call.Cost = s.Metrics.usage()
			}
			b.addReply(m, commands, call, at)
		}
	default:
		return fmt.Errorf("source: one of system, user, agent expected, got %.60q", s.Source)
	}
	// If no result has a call ID and there are as many results as calls, they correspond in order.
	results := s.Observation.Results
	matchInOrder := len(results) == len(s.Calls) && !slices.ContainsFunc(results, func(r atifResult) bool { return r.CallID != nil })
	for i, r := range results {
		b.addLoss("a reference to the trajectory of another agent is kept as data only", boolInt(len(r.Refs) > 0))
		if r.Content == nil && len(r.Refs) > 0 {
			continue // the result has no text
		}
		answer := model.Message{Role: model.User}
		if r.Content != nil {
			answer.Content, answer.Images = b.atifContent(*r.Content)
		}
		switch {
		case r.CallID != nil && slices.ContainsFunc(m.ToolCalls, func(c model.ToolCall) bool { return c.ID == *r.CallID }):
			answer.Role, answer.ToolCallID = model.Tool, *r.CallID
		case r.CallID != nil:
			b.addLoss("a result of a call that is not in its step is a message of the user", 1)
		case matchInOrder:
			answer.Role, answer.ToolCallID = model.Tool, m.ToolCalls[i].ID
			b.addLoss("results without a call ID were matched to calls in order", 1)
		}
		b.addMessage(answer, trajectories.CauseObservation, at)
	}
	return nil
}

// atifShells are the names that agents use for tools that run a bash command.
var atifShells = map[string]bool{
	"bash": true, "execute_bash": true, "run_bash": true, "shell": true, "run_shell_command": true,
	"execute_command": true, "run_command": true,
}

// usage returns the usage and the cost in metrics, which may be nil. The extra data is that
// of mini and other agents.
func (m *atifMetrics) usage() (model.Usage, model.Cost) {
	if m == nil {
		return model.Usage{Unpriced: 1}, 0
	}
	x := m.Extra
	u := model.Usage{
		Prompt: tokenCount(m.Prompt), Completion: tokenCount(m.Completion), CacheRead: tokenCount(m.Cached),
		Reasoning:  tokenCount(max(x.Reasoning.value, x.Details.Reasoning.value)),
		CacheWrite: tokenCount(max(x.CacheWrite.value, x.CacheCreation.value)), CacheWriteHour: tokenCount(x.CacheWriteHour.value),
		Unpriced: tokenCount(x.Unpriced.value),
	}
	if m.Cost == nil {
		u.Unpriced = max(u.Unpriced, 1)
		return u, 0
	}
	return u, model.Cost(*m.Cost)
}

// atifContent returns the text and the embedded images of a content.
func (b *builder) atifContent(c atifContent) (string, []model.Image) {
	var text strings.Builder
	var images []model.Image
	for _, p := range c {
		image, embedded := decodeDataURL(p.Source.Path)
		switch {
		case p.Text != nil:
			text.WriteString(*p.Text)
		case embedded:
			images = append(images, image)
		case p.Type == "image":
			b.addLoss("an image in a separate file is not kept, only its path as data", 1)
		case p.Type != "":
			b.addLoss("an audio part is not kept, only its path as data", 1)
		}
	}
	return text.String(), images
}

// restore returns the journal in the extra data of a document that mini wrote, and the
// journals of all descendants in one list. It returns nil for documents of other agents.
func (doc *atifDocument) restore(b *builder) (*File, error) {
	t, err := doc.attempt(b)
	if t == nil || err != nil {
		return nil, err
	}
	t.Header.InstanceID = cmp.Or(t.Header.InstanceID, b.src.instanceID())
	f := &File{
		Format: b.imported.Format, Header: t.Header, Records: t.Records(),
		SHA256: t.Import.SHA256, Row: t.Import.Row, Losses: t.Import.Losses,
	}
	for children := doc.Subagents; len(children) > 0; children = children[1:] {
		child, err := children[0].attempt(b)
		switch {
		case err != nil:
			return nil, err
		case child != nil && child.Header.Parent != nil:
			f.Children = append(f.Children, child.Records())
			children = append(children, children[0].Subagents...)
		}
	}
	return f, nil
}

// attempt restores the attempt in the extra data of a trajectory that mini wrote. It adds
// the import record, unless the attempt has one. It returns nil for other trajectories.
func (e atifExtra) attempt(b *builder) (*trajectories.Attempt, error) {
	var own struct {
		Journal string                `json:"journal"`
		Records []trajectories.Record `json:"records"`
	}
	if json.Unmarshal(e.Extra, &own) != nil || own.Journal != trajectories.Format || len(own.Records) == 0 || own.Records[0].Type != trajectories.TypeHeader {
		return nil, nil //nolint:nilerr // written by another program
	}
	t, err := trajectories.Fold(func(yield func(trajectories.Record, error) bool) {
		for _, r := range own.Records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("invalid ATIF: extra: %w", explainJSON(err))
	}
	t.Header.Format = trajectories.Format
	if t.Import == nil {
		imported := b.imported
		for _, loss := range b.losses {
			imported.Losses = append(imported.Losses, loss.String())
		}
		t.Import = &imported
	}
	return t, nil
}
