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

// betweenResults joins the results of several calls into the one observation
// that LLaMA-Factory allows, in the way in which it does so itself.
const betweenResults = "\n</tool_response>\n<tool_response>\n"

// said is a turn of LLaMA-Factory's: human or observation, then gpt or
// function_call, strictly in turns.
type said struct{ from, value string }

// sharegpt is a row of conversations.
func (w *writer) sharegpt(items []*Item) ([]object, error) {
	it := items[0]
	turns, err := w.whole(it)
	if err != nil {
		return nil, err
	}
	system := ""
	if turns[0].Role == model.System {
		system, turns = turns[0].Content, turns[1:]
	}
	spoken, err := w.spoken(turns)
	if err != nil {
		return nil, err
	}
	conversations := []any{}
	for _, s := range spoken {
		conversations = append(conversations, object{{"from", s.from}, {"value", s.value}})
	}
	var offered []byte // as a text; empty where calls are not native
	if len(it.Header.Tools) > 0 {
		list, err := definitions(it.Header.Tools)
		if err != nil {
			return nil, err
		}
		if offered, err = encode(list); err != nil {
			return nil, err
		}
	}
	r := object{{"conversations", conversations}, {"system", system}, {"tools", string(offered)}}
	return []object{append(r, aboutItem(it, "")...)}, nil
}

func (w *writer) spoken(turns []turn) ([]said, error) {
	var all []said
	for i := range turns {
		t := &turns[i]
		if len(t.Images) > 0 {
			w.lost[lostImages] += len(t.Images)
		}
		switch {
		case t.Role == model.Tool && len(all) > 0 && all[len(all)-1].from == "observation":
			all[len(all)-1].value += betweenResults + t.Content
			w.lost[joinedResults]++
		case t.Role == model.Tool:
			all = append(all, said{"observation", t.Content})
		case t.Role == model.User:
			all = append(all, said{"human", t.Content})
		case len(t.Calls) > 0:
			value, err := w.functionCall(t)
			if err != nil {
				return nil, err
			}
			all = append(all, said{"function_call", value})
		case t.Reasoning != "":
			all = append(all, said{"gpt", thought(t.Reasoning) + t.Content})
		default:
			all = append(all, said{"gpt", t.Content})
		}
	}
	for i, s := range all {
		if prompts := s.from == "human" || s.from == "observation"; prompts != (i%2 == 0) {
			return nil, refuse("%s does not take turns here: LLaMA-Factory would pass the row over", s.from)
		}
	}
	return all, nil
}

// functionCall is a reply with calls: thinking between its marks, then nothing
// but JSON. Text beside the calls has no other place than the thinking.
func (w *writer) functionCall(t *turn) (string, error) {
	thinking, text := t.Reasoning, strings.TrimSpace(t.Content)
	switch {
	case text == "":
	case w.o.Reasoning == Drop:
		w.lost[lostText]++
	case w.o.Reasoning == Inline && strings.HasPrefix(text, "<think>"): // it is there already
		before, after, _ := strings.Cut(strings.TrimPrefix(text, "<think>"), "</think>")
		thinking = strings.TrimSpace(before)
		if after = strings.TrimSpace(after); after != "" {
			thinking += "\n\n" + after
			w.lost[movedText]++
		}
	default:
		w.lost[movedText]++
		if thinking != "" {
			thinking += "\n\n"
		}
		thinking += text
	}
	var calls []any
	for _, c := range t.Calls {
		args, ok := compactObject(c.Arguments)
		if !ok {
			return "", Refusal("arguments of a tool call that are no object of JSON, which LLaMA-Factory asks for")
		}
		calls = append(calls, object{{"name", c.Name}, {"arguments", args}})
	}
	var written any = calls
	if len(calls) == 1 {
		written = calls[0]
	}
	data, err := encode(written)
	if thinking != "" {
		return thought(thinking) + string(data), err
	}
	return string(data), err
}

// writeDatasetInfo names the files for LLaMA-Factory: mini_train, mini_val, and
// so on.
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
	var shown bytes.Buffer
	if err := json.Indent(&shown, append(data, '\n'), "", "  "); err != nil {
		return fmt.Errorf("write dataset_info.json: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "dataset_info.json"), shown.Bytes(), 0o644) //nolint:gosec // results are for sharing
}
