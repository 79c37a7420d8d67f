package export

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/model"
)

// resultSeparator separates the results of several tool calls of a reply in the only
// observation that LLaMA-Factory allows. LLaMA-Factory uses the same separator.
const resultSeparator = "\n</tool_response>\n<tool_response>\n"

// sharegptRow is a row in LLaMA-Factory's format.
type sharegptRow struct {
	Conversations []sharegptTurn `json:"conversations"`
	System        string         `json:"system"`
	Tools         string         `json:"tools"` // JSON; empty if there are no tools
	metadata
}

// sharegptTurn is a message in LLaMA-Factory's format. From is alternately "human" or
// "observation", and "gpt" or "function_call".
type sharegptTurn struct {
	From  string `json:"from"`
	Value string `json:"value"`
}

// sharegpt returns one row with all messages of an attempt.
func (w *writer) sharegpt(items []*Item) ([]any, error) {
	turns, err := w.wholeConversation(items[0])
	if err != nil {
		return nil, err
	}
	r := sharegptRow{metadata: metadataOf(items[0])}
	if turns[0].Role == model.System {
		r.System, turns = turns[0].Content, turns[1:]
	}
	if r.Conversations, err = w.sharegptTurns(turns); err != nil {
		return nil, err
	}
	functions, err := functionList(items[0].Header.Tools)
	if err == nil && len(functions) > 0 {
		var text []byte
		text, err = encode(functions)
		r.Tools = string(text)
	}
	return []any{r}, err
}

// sharegptTurns converts turns and checks that they alternate.
func (w *writer) sharegptTurns(turns []turn) ([]sharegptTurn, error) {
	var out []sharegptTurn
	for i := range turns {
		t := &turns[i]
		if len(t.Images) > 0 {
			w.losses[lossImages] += len(t.Images)
		}
		switch {
		case t.Role == model.Tool && len(out) > 0 && out[len(out)-1].From == "observation":
			out[len(out)-1].Value += resultSeparator + t.Content
			w.losses[lossJoinedResults]++
		case t.Role == model.Tool:
			out = append(out, sharegptTurn{"observation", t.Content})
		case t.Role == model.User:
			out = append(out, sharegptTurn{"human", t.Content})
		case len(t.ToolCalls) > 0:
			value, err := w.functionCall(t)
			if err != nil {
				return nil, err
			}
			out = append(out, sharegptTurn{"function_call", value})
		case t.Reasoning != "":
			out = append(out, sharegptTurn{"gpt", thinkBlock(t.Reasoning) + t.Content})
		default:
			out = append(out, sharegptTurn{"gpt", t.Content})
		}
	}
	for i, s := range out {
		if isPrompt := s.From == "human" || s.From == "observation"; isPrompt != (i%2 == 0) {
			return nil, skipf("%s does not alternate, so LLaMA-Factory would skip the row", s.From)
		}
	}
	return out, nil
}

// functionCall returns the value of a reply with tool calls: a block of reasoning,
// followed by JSON. The format has no place for other text, so functionCall moves that
// text to the reasoning, or omits it with ReasoningDrop.
func (w *writer) functionCall(t *turn) (string, error) {
	reasoning, text := t.Reasoning, strings.TrimSpace(t.Content)
	switch {
	case text == "":
	case w.opts.Reasoning == ReasoningDrop:
		w.losses[lossText]++
	case w.opts.Reasoning == ReasoningInline && strings.HasPrefix(text, "<think>"): // text starts with reasoning
		inlineReasoning, rest, _ := strings.Cut(strings.TrimPrefix(text, "<think>"), "</think>")
		reasoning = strings.TrimSpace(inlineReasoning)
		if rest = strings.TrimSpace(rest); rest != "" {
			reasoning += "\n\n" + rest
			w.losses[lossMovedText]++
		}
	default:
		w.losses[lossMovedText]++
		if reasoning != "" {
			reasoning += "\n\n"
		}
		reasoning += text
	}
	var calls []calledFunction
	for _, c := range t.ToolCalls {
		args, ok := compactObject(c.Arguments)
		if !ok {
			return "", SkipReason("tool call arguments that are not a JSON object, which LLaMA-Factory does not accept")
		}
		calls = append(calls, calledFunction{c.Name, args})
	}
	var value any = calls
	if len(calls) == 1 {
		value = calls[0]
	}
	data, err := encode(value)
	if reasoning != "" {
		return thinkBlock(reasoning) + string(data), err
	}
	return string(data), err
}

// writeDatasetInfo writes LLaMA-Factory's dataset_info.json, which registers each file as
// a dataset: mini_train, mini_val and so on.
func writeDatasetInfo(dir string, files []File) error {
	info := map[string]any{}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(f.Name, ".jsonl"), ".parquet")
		info["mini_"+strings.ReplaceAll(name, "-", "_")] = struct {
			FileName   string          `json:"file_name"`
			Formatting string          `json:"formatting"`
			Columns    json.RawMessage `json:"columns"`
			Tags       json.RawMessage `json:"tags"`
		}{
			f.Name, "sharegpt",
			json.RawMessage(`{"messages": "conversations", "system": "system", "tools": "tools"}`),
			json.RawMessage(`{"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt",
				"observation_tag": "observation", "function_tag": "function_call"}`),
		}
	}
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return fmt.Errorf("write dataset_info.json: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "dataset_info.json"), append(data, '\n'), 0o644) //nolint:gosec // results are for sharing
}
