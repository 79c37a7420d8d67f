package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

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

// turn is what one side says until the other one answers.
type turn struct {
	role sdk.MessageParamRole
	// results stand before everything else: the API wants the answers to calls
	// first, and all of them in one turn.
	results, rest []sdk.ContentBlockParamUnion
	calls         []string // ids, of an assistant's turn
}

func (t turn) blocks() []sdk.ContentBlockParamUnion { return slices.Concat(t.results, t.rest) }

// turnsOf puts messages together, so that both sides take turns.
func turnsOf(messages []model.Message) ([]*turn, error) {
	var turns []*turn
	for _, m := range messages {
		role := sdk.MessageParamRoleUser
		if m.Role == model.Assistant {
			role = sdk.MessageParamRoleAssistant
		}
		if len(turns) == 0 || turns[len(turns)-1].role != role {
			turns = append(turns, &turn{role: role})
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
		t.rest = append(t.rest, assistant(m)...)
		for _, c := range m.Calls {
			t.calls = append(t.calls, plainID(c.ID))
		}
		return nil
	}
	images, err := imagesOf(m.Images)
	if err != nil {
		return err
	}
	text := m.Content
	if strings.TrimSpace(text) == "" {
		text = placeholder
		if len(images) > 0 {
			text = ""
		}
	}
	if m.Role == model.Tool {
		result := sdk.ToolResultBlockParam{ToolUseID: plainID(m.CallID)}
		if text != "" {
			result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: text}})
		}
		for _, image := range images {
			result.Content = append(result.Content, sdk.ToolResultBlockParamContentUnion{OfImage: image})
		}
		t.results = append(t.results, sdk.ContentBlockParamUnion{OfToolResult: &result})
		return nil
	}
	if text != "" {
		t.rest = append(t.rest, sdk.NewTextBlock(text))
	}
	for _, image := range images {
		t.rest = append(t.rest, sdk.ContentBlockParamUnion{OfImage: image})
	}
	return nil
}

// answer completes the answers to calls.
func (t *turn) answer(calls []string) {
	for _, id := range calls {
		answered := slices.ContainsFunc(t.results, func(b sdk.ContentBlockParamUnion) bool { return b.OfToolResult.ToolUseID == id })
		if !answered {
			t.results = append(t.results, sdk.NewToolResultBlock(id, notRun, true))
		}
	}
}

// assistant is an earlier answer: as it was kept, or of its parts.
func assistant(m model.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	var k kept
	if len(m.Kept) > 0 && json.Unmarshal(m.Kept, &k) == nil && len(k.Blocks) > 0 {
		for _, block := range k.Blocks {
			out = append(out, param.Override[sdk.ContentBlockParamUnion](block))
		}
		return out
	}
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, sdk.NewTextBlock(m.Content))
	}
	for _, c := range m.Calls {
		use := toolUse(c)
		out = append(out, sdk.ContentBlockParamUnion{OfToolUse: &use})
	}
	if len(out) == 0 {
		out = append(out, sdk.NewTextBlock(placeholder))
	}
	return out
}

func toolUse(c model.Call) sdk.ToolUseBlockParam {
	var input any = json.RawMessage(c.Arguments)
	if !object(json.RawMessage(c.Arguments)) {
		input = map[string]string{tornKey: c.Arguments}
	}
	return sdk.ToolUseBlockParam{ID: plainID(c.ID), Name: plainID(c.Name), Input: input}
}

// object says whether arguments are what the API takes as such.
func object(arguments json.RawMessage) bool {
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
func imagesOf(images []model.Image) ([]*sdk.ImageBlockParam, error) {
	var out []*sdk.ImageBlockParam
	for _, image := range images {
		switch image.MediaType {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
		default:
			return nil, &model.Error{
				Status: model.BadRequest, Err: fmt.Errorf("an image is of type %.40q", image.MediaType),
				Hint: "this API takes PNG, JPEG, GIF and WebP",
			}
		}
		out = append(out, &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{
			Data: base64.StdEncoding.EncodeToString(image.Data), MediaType: sdk.Base64ImageSourceMediaType(image.MediaType),
		}}})
	}
	return out, nil
}
