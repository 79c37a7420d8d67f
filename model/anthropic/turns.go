package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
)

const (
	// placeholder is the text of a message without content: the API rejects blank
	// texts.
	placeholder = "(empty)"
	// notRun is the result sent for a call that has none: the API rejects calls
	// without a result.
	notRun = "(not run)"
	// invalidJSONKey is the key under which invalid arguments are sent back.
	invalidJSONKey = "INVALID_JSON"
)

// The API's roles.
const (
	user      = "user"
	assistant = "assistant"
)

// turn is a sequence of messages with the same role.
type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`

	results int      // number of tool results at the start of the content
	calls   []string // ids of the assistant's calls
}

// turnsOf groups messages into turns with alternating roles.
func turnsOf(messages []model.Message) ([]*turn, error) {
	var turns []*turn
	for _, m := range messages {
		role := user
		if m.Role == model.Assistant {
			role = assistant
		}
		if len(turns) == 0 || turns[len(turns)-1].Role != role {
			turns = append(turns, &turn{Role: role})
		}
		if err := turns[len(turns)-1].add(m); err != nil {
			return nil, err
		}
	}
	for i, t := range turns[:max(0, len(turns)-1)] {
		turns[i+1].answerCalls(t.calls)
	}
	return turns, nil
}

func (t *turn) add(m model.Message) error {
	if m.Role == model.Assistant {
		t.Content = append(t.Content, assistantBlocks(m)...)
		for _, c := range m.ToolCalls {
			t.calls = append(t.calls, validID(c.ID))
		}
		return nil
	}
	images, err := imageBlocks(m.Images)
	if err != nil {
		return err
	}
	var content []block
	switch {
	case strings.TrimSpace(m.Content) != "":
		content = append(content, textBlock(m.Content))
	case len(images) == 0:
		content = append(content, textBlock(placeholder))
	}
	content = append(content, images...)
	if m.Role == model.Tool {
		t.addResult(block{Type: "tool_result", ToolUseID: validID(m.ToolCallID), Content: content})
		return nil
	}
	t.Content = append(t.Content, content...)
	return nil
}

// addResult inserts a tool result after the earlier results and before all other content:
// the API requires results first, all in one turn.
func (t *turn) addResult(b block) {
	t.Content = slices.Insert(t.Content, t.results, b)
	t.results++
}

// answerCalls adds results for the calls that have none.
func (t *turn) answerCalls(calls []string) {
	for _, id := range calls {
		answered := slices.ContainsFunc(t.Content[:t.results], func(b block) bool { return b.ToolUseID == id })
		if !answered {
			t.addResult(block{Type: "tool_result", ToolUseID: id, Content: []block{textBlock(notRun)}, IsError: true})
		}
	}
}

// assistantBlocks returns the content of an assistant's message: the blocks that
// the API sent, or blocks made from the message.
func assistantBlocks(m model.Message) []block {
	var out []block
	var data providerData
	if len(m.ProviderData) > 0 && json.Unmarshal(m.ProviderData, &data) == nil && len(data.Blocks) > 0 {
		for _, raw := range data.Blocks {
			out = append(out, block{raw: raw})
		}
		return out
	}
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, textBlock(m.Content))
	}
	for _, c := range m.ToolCalls {
		out = append(out, toolUse(c))
	}
	if len(out) == 0 {
		out = append(out, textBlock(placeholder))
	}
	return out
}

func toolUse(c model.ToolCall) block {
	input := json.RawMessage(c.Arguments)
	if !isObject(input) {
		input, _ = json.Marshal(map[string]string{invalidJSONKey: c.Arguments}) //nolint:errchkjson // strings
	}
	return block{Type: "tool_use", ID: validID(c.ID), Name: validID(c.Name), Input: input}
}

// isObject reports whether arguments are a JSON object, as the API requires.
func isObject(arguments json.RawMessage) bool {
	return json.Valid(arguments) && strings.HasPrefix(strings.TrimLeft(string(arguments), " \t\r\n"), "{")
}

// validID replaces the characters of an id or a tool's name that the API rejects, and an
// empty one, by "_". The id may come from another provider, and a model may have invented the
// name.
func validID(id string) string {
	if id == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, id)
}

// imageBlocks converts images. It rejects types that the API would reject.
func imageBlocks(images []model.Image) ([]block, error) {
	var out []block
	for _, image := range images {
		switch image.MediaType {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
		default:
			return nil, &model.Error{
				Status: model.BadRequest, Err: fmt.Errorf("an image is of type %.40q", image.MediaType),
				Hint: "this API takes PNG, JPEG, GIF and WebP",
			}
		}
		out = append(out, block{Type: "image", Source: &source{Type: "base64", MediaType: image.MediaType, Data: image.Data}})
	}
	return out, nil
}
