package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// gemini is Google's Gemini API.
type gemini struct{}

// Name implements Dialect.
func (gemini) Name() string { return "gemini" }

// geminiContent is a message.
type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text         string
	Thought      bool
	FunctionCall *struct {
		ID   string
		Name string
		Args json.RawMessage
	}
	FunctionResponse *struct {
		ID       string
		Name     string
		Response json.RawMessage
	}
}

// Messages implements Dialect.
func (gemini) Messages(b *Body) ([]model.Message, error) {
	var contents []geminiContent
	if err := json.Unmarshal(b.Get("contents"), &contents); err != nil {
		return nil, err
	}
	var system geminiContent
	for _, name := range []string{"systemInstruction", "system_instruction"} {
		_ = json.Unmarshal(b.Get(name), &system) // there may be none
	}
	var out []model.Message
	var answered map[string]int // results of the last reply, by name
	if m := system.message(); m.Content != "" {
		m.Role = model.System
		out = append(out, m)
	}
	for _, c := range contents {
		m := c.message()
		results := false
		if m.Role == model.Assistant || answered == nil {
			answered = map[string]int{}
		}
		for _, p := range c.Parts {
			if r := p.FunctionResponse; r != nil {
				out = append(out, model.Message{Role: model.Tool, Content: functionOutput(r.Response), ToolCallID: callID(r.ID, r.Name, answered)})
				results = true
			}
		}
		if !results || m.Content != "" {
			out = append(out, m)
		}
	}
	return out, nil
}

// functionOutput returns the text of the result of a call.
func functionOutput(raw json.RawMessage) string {
	var r struct{ Output, Error json.RawMessage }
	_ = json.Unmarshal(raw, &r) // another form is shown as it is
	if r.Output == nil && r.Error == nil {
		return string(raw)
	}
	return join(text(r.Output), text(r.Error))
}

// callID returns the id of a call. The API may leave it out; then the name is the id, with a
// number from the second call of a reply on. seen counts the calls by name.
func callID(id, name string, seen map[string]int) string {
	seen[name]++
	switch {
	case id != "":
		return id
	case seen[name] > 1:
		return fmt.Sprintf("%s-%d", name, seen[name])
	}
	return name
}

// message returns a content without the results of calls.
func (c geminiContent) message() model.Message {
	m := model.Message{Role: model.User}
	if c.Role == "model" {
		m.Role = model.Assistant
	}
	called := map[string]int{}
	var content, reasoning strings.Builder
	for _, p := range c.Parts {
		switch {
		case p.FunctionCall != nil:
			f := p.FunctionCall
			m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: callID(f.ID, f.Name, called), Name: f.Name, Arguments: string(f.Args)})
		case p.Thought:
			reasoning.WriteString(p.Text)
		default:
			content.WriteString(p.Text)
		}
	}
	m.Content, m.Reasoning = content.String(), reasoning.String()
	return m
}

// geminiAnswer is an answer, or a part of a streamed one.
type geminiAnswer struct {
	Candidates []struct {
		Content      geminiContent
		FinishReason string
	}
	PromptFeedback struct{ BlockReason string }
	ModelVersion   string
	UsageMetadata  struct{ PromptTokenCount, CandidatesTokenCount, ThoughtsTokenCount, CachedContentTokenCount transport.Number }
}

// geminiReply assembles the parts of an answer.
type geminiReply struct {
	content         geminiContent
	finish, blocked string
	reply           model.Reply
	seen            bool
	calls           int
	parts           []json.RawMessage
}

func (g *geminiReply) add(data []byte) error {
	if IsError(data) {
		return transport.Classify(0, transport.ParseErrorDetail(data))
	}
	var a geminiAnswer
	if err := transport.Unmarshal(data, &a); err != nil {
		return transport.MalformedResponse("read answer: %w", err)
	}
	g.parts = append(g.parts, bytes.Clone(data))
	if len(a.Candidates) > 0 {
		g.seen = true
		for _, p := range a.Candidates[0].Content.Parts {
			if p.FunctionCall != nil {
				g.calls++
			}
		}
		if err := transport.CheckToolCalls(g.calls); err != nil {
			return err
		}
		g.content.Parts = append(g.content.Parts, a.Candidates[0].Content.Parts...)
		if f := a.Candidates[0].FinishReason; f != "" {
			g.finish = f
		}
	}
	if a.PromptFeedback.BlockReason != "" {
		g.blocked = a.PromptFeedback.BlockReason
	}
	if a.ModelVersion != "" {
		g.reply.Model = a.ModelVersion
	}
	if u := a.UsageMetadata; u.PromptTokenCount > 0 {
		g.reply.Usage = model.Usage{
			Prompt: u.PromptTokenCount.Tokens(), CacheRead: u.CachedContentTokenCount.Tokens(),
			Completion: (u.CandidatesTokenCount + u.ThoughtsTokenCount).Tokens(), Reasoning: u.ThoughtsTokenCount.Tokens(),
		}
	}
	return nil
}

func (g *geminiReply) end(p model.Price) (model.Reply, error) {
	r := g.reply
	if r.Usage != (model.Usage{}) || g.finish != "" {
		setCost(&r, p)
	}
	g.content.Role = "model"
	r.Message, r.FinishReason = g.content.message(), model.FinishStop
	switch {
	case g.blocked != "" || g.finish == "SAFETY" || g.finish == "PROHIBITED_CONTENT" || g.finish == "BLOCKLIST":
		return r, &model.Error{Status: model.ContentRefused, Err: errors.New("the provider withheld the answer: " + join(g.blocked, g.finish))}
	case !g.seen || g.finish == "":
		return r, transport.MalformedResponse("the answer ended before it was complete (no finishReason)")
	case len(r.Message.ToolCalls) > 0:
		r.FinishReason = model.FinishToolCalls
	case g.finish == "MAX_TOKENS":
		r.FinishReason = model.FinishLength
	}
	return r, nil
}

// Reply implements Dialect.
func (gemini) Reply(body []byte, p model.Price) (model.Reply, error) {
	parts := []json.RawMessage{body}
	_ = json.Unmarshal(body, &parts) // a stream without alt=sse is a list
	var g geminiReply
	for _, part := range parts {
		if err := g.add(part); err != nil {
			return model.Reply{}, err
		}
	}
	r, err := g.end(p)
	r.Raw = body
	return r, err
}

// Stream implements Dialect.
func (gemini) Stream(events iter.Seq2[[]byte, error], p model.Price) (model.Reply, error) {
	var g geminiReply
	for data, err := range events {
		if err == nil {
			err = g.add(data)
		}
		if err != nil {
			g.content = geminiContent{} // only the usage counts
			r, _ := g.end(p)            // it fails because the answer is incomplete
			return model.Reply{Usage: r.Usage, Cost: r.Cost}, err
		}
	}
	r, err := g.end(p)
	r.Raw, _ = json.Marshal(g.parts) // parts of valid JSON
	return r, err
}

// IsTerminal implements Dialect.
func (gemini) IsTerminal(data []byte) bool {
	var a geminiAnswer
	return json.Unmarshal(data, &a) == nil && len(a.Candidates) > 0 && a.Candidates[0].FinishReason != ""
}

// HasEventNames implements Dialect.
func (gemini) HasEventNames() bool { return false }

// Problem implements Dialect.
func (gemini) Problem(status int, message string) []byte {
	word := strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_"))
	if status == http.StatusBadRequest {
		word = "INVALID_ARGUMENT"
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"code": status, "message": message, "status": word}}) // cannot fail
	return body
}

// keepTool keeps the functions of a tool: all its other fields are tools of the provider.
func (gemini) keepTool(tool json.RawMessage) (json.RawMessage, bool) {
	b, err := ParseBody(tool)
	if err != nil {
		return nil, false
	}
	unchanged := true
	for _, name := range b.names() {
		if name != "functionDeclarations" && name != "function_declarations" {
			b.Delete(name)
			unchanged = false
		}
	}
	if len(b.fields) == 0 {
		return nil, false
	}
	return b.Bytes(), unchanged
}

var geminiFields = strings.Fields(`contents systemInstruction system_instruction tools toolConfig tool_config generationConfig
	generation_config safetySettings safety_settings labels`)

func (gemini) fields() []string { return geminiFields }
