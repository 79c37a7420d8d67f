package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
)

// resultSeparator separates the results of several tool calls of a reply in the only
// observation that LLaMA-Factory allows. LLaMA-Factory uses the same separator.
const resultSeparator = "\n</tool_response>\n<tool_response>\n"

// sharegptTurn is a message in LLaMA-Factory's format. from is alternately "human" or
// "observation", and "gpt" or "function_call".
type sharegptTurn struct{ from, value string }

// sharegpt returns one row with all messages of an attempt.
func (w *writer) sharegpt(items []*Item) ([]object, error) {
	item := items[0]
	turns, err := w.wholeConversation(item)
	if err != nil {
		return nil, err
	}
	system := ""
	if turns[0].Role == model.System {
		system, turns = turns[0].Content, turns[1:]
	}
	sharegptTurns, err := w.sharegptTurns(turns)
	if err != nil {
		return nil, err
	}
	conversations := []any{}
	for _, s := range sharegptTurns {
		conversations = append(conversations, object{{"from", s.from}, {"value", s.value}})
	}
	var tools []byte // written as a string; empty if there are no tools
	if len(item.Header.Tools) > 0 {
		list, err := functionList(item.Header.Tools)
		if err != nil {
			return nil, err
		}
		if tools, err = encode(list); err != nil {
			return nil, err
		}
	}
	r := object{{"conversations", conversations}, {"system", system}, {"tools", string(tools)}}
	return []object{append(r, metadata(item, "")...)}, nil
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
		case t.Role == model.Tool && len(out) > 0 && out[len(out)-1].from == "observation":
			out[len(out)-1].value += resultSeparator + t.Content
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
		if isPrompt := s.from == "human" || s.from == "observation"; isPrompt != (i%2 == 0) {
			return nil, skipf("%s does not alternate, so LLaMA-Factory would skip the row", s.from)
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
	var calls []any
	for _, c := range t.ToolCalls {
		args, ok := compactObject(c.Arguments)
		if !ok {
			return "", SkipReason("tool call arguments that are not a JSON object, which LLaMA-Factory does not accept")
		}
		calls = append(calls, object{{"name", c.Name}, {"arguments", args}})
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
	info := object{}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(f.Name, ".jsonl"), ".parquet")
		info = append(info, member{"mini_" + strings.ReplaceAll(name, "-", "_"), object{
			{"file_name", f.Name},
			{"formatting", "sharegpt"},
			{"columns", object{{"messages", "conversations"}, {"system", "system"}, {"tools", "tools"}}},
			{"tags", object{
				{"role_tag", "from"},
				{"content_tag", "value"},
				{"user_tag", "human"},
				{"assistant_tag", "gpt"},
				{"observation_tag", "observation"},
				{"function_tag", "function_call"},
			}},
		}})
	}
	slices.SortFunc(info, func(a, b member) int { return strings.Compare(a.name, b.name) })
	data, err := encode(info)
	if err != nil {
		return fmt.Errorf("write dataset_info.json: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, append(data, '\n'), "", "  "); err != nil {
		return fmt.Errorf("write dataset_info.json: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "dataset_info.json"), indented.Bytes(), 0o644) //nolint:gosec // results are for sharing
}
