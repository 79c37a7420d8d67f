package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
)

const (
	// placeholder stands for a message without text, which the API refuses.
	placeholder = "(empty)"
	// notRun answers calls that the conversation has no answer to, which the
	// API refuses too: an attempt is not to end with that.
	notRun = "(not run)"
	// tornKey is the name under which arguments go back that are no JSON.
	tornKey = "INVALID_JSON"
)

// The roles of this API.
const (
	user      = "user"
	assistant = "assistant"
)

// turn is what one side says until the other one answers.
type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`

	results int      // how many tool results the content begins with
	calls   []string // ids, of an assistant's turn
}

// turnsOf puts messages together, so that both sides take turns.
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
		turns[i+1].answer(t.calls)
	}
	return turns, nil
}

func (t *turn) add(m model.Message) error {
	if m.Role == model.Assistant {
		t.Content = append(t.Content, answerOf(m)...)
		for _, c := range m.Calls {
			t.calls = append(t.calls, plainID(c.ID))
		}
		return nil
	}
	images, err := imagesOf(m.Images)
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
		t.addResult(block{Type: "tool_result", ToolUseID: plainID(m.CallID), Content: content})
		return nil
	}
	t.Content = append(t.Content, content...)
	return nil
}

// addResult adds the answer to a call before everything else: the API wants
// these first, and all of them in one turn.
func (t *turn) addResult(b block) {
	t.Content = slices.Insert(t.Content, t.results, b)
	t.results++
}

// answer completes the answers to calls.
func (t *turn) answer(calls []string) {
	for _, id := range calls {
		answered := slices.ContainsFunc(t.Content[:t.results], func(b block) bool { return b.ToolUseID == id })
		if !answered {
			t.addResult(block{Type: "tool_result", ToolUseID: id, Content: []block{textBlock(notRun)}, IsError: true})
		}
	}
}

// answerOf is an earlier answer: as it was kept, or of its parts.
func answerOf(m model.Message) []block {
	var out []block
	var k kept
	if len(m.Kept) > 0 && json.Unmarshal(m.Kept, &k) == nil && len(k.Blocks) > 0 {
		for _, raw := range k.Blocks {
			out = append(out, block{raw: raw})
		}
		return out
	}
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, textBlock(m.Content))
	}
	for _, c := range m.Calls {
		out = append(out, toolUse(c))
	}
	if len(out) == 0 {
		out = append(out, textBlock(placeholder))
	}
	return out
}

func toolUse(c model.Call) block {
	input := json.RawMessage(c.Arguments)
	if !isObject(input) {
		input, _ = json.Marshal(map[string]string{tornKey: c.Arguments}) //nolint:errchkjson // strings
	}
	return block{Type: "tool_use", ID: plainID(c.ID), Name: plainID(c.Name), Input: input}
}

// isObject says whether arguments are what the API takes as such.
func isObject(arguments json.RawMessage) bool {
	return json.Valid(arguments) && strings.HasPrefix(strings.TrimLeft(string(arguments), " \t\r\n"), "{")
}

// plainID is an id, or a tool's name, that the API takes: another provider may
// have given it, or a model made it up.
func plainID(id string) string {
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

// imagesOf refuses what the API would refuse, with a word that helps.
func imagesOf(images []model.Image) ([]block, error) {
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
