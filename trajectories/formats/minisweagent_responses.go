package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minibench/mini/model"
)

// responsesTurn has the fields of messages from OpenAI's Responses API. Release 2 stores a
// reply as the whole response, and an observation as a "function_call_output" item.
type responsesTurn struct {
	Type       string          `json:"type"`
	Object     string          `json:"object"`
	Output     json.RawMessage `json:"output"`
	AnsweredID string          `json:"call_id"`
}

// responsesItem is an output item of a response.
type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
}

// convertResponses converts a message of the Responses API to a chat message. It does not
// change other messages.
func (m *trajTurn) convertResponses() error {
	if m.Role != nil {
		return nil
	}
	switch {
	case m.Object == "response":
		role := string(model.Assistant)
		m.Role = &role
		return m.convertReply()
	case m.Type == "function_call_output":
		role := string(model.Tool)
		m.Role, m.CallID, m.Content = &role, m.AnsweredID, m.Output
	}
	return nil
}

// convertReply sets the text, reasoning and tool calls of m from the output items.
func (m *trajTurn) convertReply() error {
	var items []responsesItem
	if len(m.Output) > 0 {
		if err := json.Unmarshal(m.Output, &items); err != nil {
			return fmt.Errorf(".output: %w", err)
		}
	}
	var content, reasoning strings.Builder
	for i, item := range items {
		var err error
		switch item.Type {
		case "message":
			err = appendText(&content, item.Content)
		case "reasoning":
			if err = appendText(&reasoning, item.Summary); err == nil {
				err = appendText(&reasoning, item.Content)
			}
		case "function_call":
			call := turnCall{ID: cmp.Or(item.CallID, item.ID)}
			call.Function.Name, call.Function.Arguments = item.Name, item.Arguments
			m.ToolCalls = append(m.ToolCalls, call)
		}
		if err != nil {
			return fmt.Errorf(".output[%d]: %w", i, err)
		}
	}
	text, err := json.Marshal(content.String())
	m.Content, m.Reasoning = text, reasoning.String()
	return err
}

func appendText(b *strings.Builder, content json.RawMessage) error {
	s, err := contentText(content)
	b.WriteString(s)
	return err
}
