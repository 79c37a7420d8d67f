package fake

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

type anthropicRequest struct {
	Model      string             `json:"model"`
	MaxTokens  *int64             `json:"max_tokens"`
	System     json.RawMessage    `json:"system"`
	Messages   []anthropicMessage `json:"messages"`
	Stream     bool               `json:"stream"`
	Tools      []json.RawMessage  `json:"tools"`
	ToolChoice typed              `json:"tool_choice"`
	Thinking   typed              `json:"thinking"`
	// CacheControl, in the request itself, marks the last message.
	CacheControl json.RawMessage `json:"cache_control"`
}

// typed reads only the type of an object.
type typed struct {
	Type string `json:"type"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// anthropicBlock is a content block of any type.
type anthropicBlock struct {
	Type         string
	Thinking     string
	Signature    string
	ID           string
	ToolUseID    string          `json:"tool_use_id"`
	CacheControl json.RawMessage `json:"cache_control"`
}

func (anthropic) parse(body []byte) (*request, *problem) {
	var in anthropicRequest
	if p := decode(body, &in); p != nil {
		return nil, p
	}
	switch {
	case in.Model == "":
		return nil, invalid("model: Field required")
	case in.MaxTokens == nil:
		return nil, invalid("max_tokens: Field required")
	case *in.MaxTokens < 1:
		return nil, invalid("max_tokens: Input should be greater than or equal to 1")
	case len(in.Messages) == 0:
		return nil, invalid("messages: at least one message is required")
	}
	r := &request{
		model: in.Model, stream: in.Stream, marked: -1, needsMark: true, usageEvent: true,
		thinking: in.Thinking.Type == "enabled" || in.Thinking.Type == "adaptive",
	}
	if !absent(in.System) {
		r.turns = append(r.turns, turn{"system", len(in.System), texts(in.System)})
		r.mark(blocks(in.System))
	}
	if p := r.addMessages(in.Messages); p != nil {
		return nil, p
	}
	if !absent(in.CacheControl) {
		r.marked = len(r.turns) - 1
	}
	return r, r.addTools(in)
}

func (r *request) addMessages(messages []anthropicMessage) *problem {
	pending := map[string]bool{} // calls without a result
	for i, m := range messages {
		if m.Role != "user" && m.Role != "assistant" {
			return invalid(fmt.Sprintf("messages: Unexpected role %q. Use the top-level `system` parameter for a system prompt.", m.Role))
		}
		list := blocks(m.Content)
		if absent(m.Content) || string(m.Content) == `""` {
			return invalid(fmt.Sprintf("messages.%d: all messages must have non-empty content", i))
		}
		r.turns = append(r.turns, turn{m.Role, len(m.Content), texts(m.Content)})
		r.mark(list)
		calls := map[string]bool{}
		for j, b := range list {
			switch {
			case b.Type == "thinking" && b.Signature != sign(b.Thinking):
				return invalid(fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j))
			case b.Type == "tool_use":
				calls[b.ID] = true
			case b.Type == "tool_result" && !pending[b.ToolUseID]:
				return invalid(fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
					"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID))
			case b.Type == "tool_result":
				delete(pending, b.ToolUseID)
			}
		}
		for id := range pending {
			return withoutResult(i-1, id)
		}
		pending = calls
	}
	for id := range pending {
		return withoutResult(len(messages)-1, id)
	}
	return nil
}

func withoutResult(message int, id string) *problem {
	return invalid(fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
		"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", message, id))
}

func (r *request) addTools(in anthropicRequest) *problem {
	var tools []tool
	for _, raw := range in.Tools {
		var t struct {
			Name        string
			InputSchema json.RawMessage `json:"input_schema"`
		}
		if p := decode(raw, &t); p != nil {
			return p
		}
		listed := tool{Name: t.Name}
		if !absent(t.InputSchema) {
			if p := decode(t.InputSchema, &listed.Parameters); p != nil {
				return p
			}
		}
		tools = append(tools, listed)
		r.extra += len(raw)
	}
	if in.ToolChoice.Type != "none" {
		r.tool = commandTool(tools)
	}
	return nil
}

// mark records the newest turn as marked if one of its blocks has a cache_control.
func (r *request) mark(list []anthropicBlock) {
	for _, b := range list {
		if !absent(b.CacheControl) {
			r.marked = len(r.turns) - 1
		}
	}
}

// blocks returns the blocks of a content that is not a string.
func blocks(content json.RawMessage) []anthropicBlock {
	var list []anthropicBlock
	if json.Unmarshal(content, &list) != nil {
		return nil
	}
	return list
}

// sign returns the signature of a thinking text. If a signature that a client sends back
// does not match, the client has changed the text or the signature.
func sign(thinking string) string {
	sum := sha256.Sum256([]byte("thought by nobody: " + thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}
