package openai

import (
	"encoding/base64"

	client "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model"
)

// placeholder stands for a message without text, for an empty content is left
// out by the client library, and refused by many servers.
const placeholder = "(empty)"

// outgoing is a conversation as a request has it. Answers of tools may only be
// text there, so that their images follow in a message of the user's, behind
// all the answers to one reply. What goes with them that the client library
// does not know is beside it, by their places.
func outgoing(messages []model.Message, reasoning bool) (out []client.ChatCompletionMessage, more map[int]addition, err error) {
	out, more = make([]client.ChatCompletionMessage, 0, len(messages)), map[int]addition{}
	var shown []model.Image
	for i, m := range messages {
		sent := client.ChatCompletionMessage{
			Role: string(m.Role), Content: m.Content, ToolCalls: toolCalls(m.Calls), ToolCallID: m.CallID,
		}
		if m.Content == "" && len(m.Calls) == 0 {
			sent.Content = placeholder
		}
		a, err := additionTo(m, reasoning)
		if err != nil {
			return nil, nil, err
		}
		if !a.empty() {
			more[len(out)] = a
		}
		switch {
		case m.Role == model.Tool:
			shown = append(shown, m.Images...)
		case len(m.Images) > 0:
			sent.Content, sent.MultiContent = "", parts(m.Content, m.Images)
		}
		out = append(out, sent)
		if last := i == len(messages)-1 || messages[i+1].Role != model.Tool; last && len(shown) > 0 {
			out = append(out, client.ChatCompletionMessage{
				Role: string(model.User), MultiContent: parts("The images of the output above:", shown),
			})
			shown = nil
		}
	}
	return out, more, nil
}

func toolCalls(calls []model.Call) []client.ToolCall {
	var out []client.ToolCall
	for _, c := range calls {
		out = append(out, client.ToolCall{
			ID: c.ID, Type: client.ToolTypeFunction,
			Function: client.FunctionCall{Name: c.Name, Arguments: c.Arguments},
		})
	}
	return out
}

// parts is a content with images behind its text.
func parts(text string, images []model.Image) []client.ChatMessagePart {
	var out []client.ChatMessagePart
	if text != "" {
		out = append(out, client.ChatMessagePart{Type: client.ChatMessagePartTypeText, Text: text})
	}
	for _, i := range images {
		url := "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		out = append(out, client.ChatMessagePart{
			Type: client.ChatMessagePartTypeImageURL, ImageURL: &client.ChatMessageImageURL{URL: url},
		})
	}
	return out
}

// offered is the tools of a request.
func offered(tools []model.Definition) []client.Tool {
	var out []client.Tool
	for _, d := range tools {
		out = append(out, client.Tool{Type: client.ToolTypeFunction, Function: &client.FunctionDefinition{
			Name: d.Name, Description: d.Description, Parameters: d.Parameters,
		}})
	}
	return out
}
