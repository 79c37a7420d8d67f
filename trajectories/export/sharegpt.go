package export

import (
	"strings"

	"github.com/minibench/mini/model"
)

// betweenResults joins the results of several calls into the one observation
// that LLaMA-Factory allows, in the way in which it does so itself.
const betweenResults = "\n</tool_response>\n<tool_response>\n"

// said is a turn of LLaMA-Factory's: human or observation, then gpt or
// function_call, strictly in turns.
type said struct {
	from    string
	prompts bool // human, observation
	value   []byte
}

// sharegpt is a row of conversations.
func (w *writer) sharegpt(items []*Item) error {
	for _, it := range items {
		turns, err := w.whole(it)
		if err != nil {
			return err
		}
		system := ""
		if turns[0].Role == model.System {
			system, turns = turns[0].Content, turns[1:]
		}
		spoken, err := w.spoken(turns)
		if err != nil {
			return err
		}
		r := w.begin()
		r.key("conversations")
		r.open('[')
		for _, s := range spoken {
			r.comma()
			r.open('{')
			r.text("from", s.from)
			r.text("value", string(s.value))
			r.close('}')
		}
		r.close(']')
		r.text("system", system)
		offered, err := offered(it.Header.Tools)
		if err != nil {
			return err
		}
		r.text("tools", offered)
		about(r, it)
		w.end()
	}
	return nil
}

// offered is the list of tools, as a text; empty where calls are not native.
func offered(defs []model.Definition) (string, error) {
	if len(defs) == 0 {
		return "", nil
	}
	var r row
	r.open('[')
	for _, d := range defs {
		r.comma()
		if err := definition(&r, d); err != nil {
			return "", err
		}
	}
	r.close(']')
	return string(r.data), nil
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
			last := &all[len(all)-1]
			last.value = append(append(last.value, betweenResults...), t.Content...)
			w.lost[joinedResults]++
		case t.Role == model.Tool:
			all = append(all, said{"observation", true, []byte(t.Content)})
		case t.Role == model.User:
			all = append(all, said{"human", true, []byte(t.Content)})
		case len(t.Calls) > 0:
			value, err := w.functionCall(t)
			if err != nil {
				return nil, err
			}
			all = append(all, said{"function_call", false, value})
		default:
			value := t.Content
			if t.Reasoning != "" {
				value = thought(t.Reasoning) + value
			}
			all = append(all, said{"gpt", false, []byte(value)})
		}
	}
	for i, s := range all {
		if s.prompts != (i%2 == 0) {
			return nil, refuse("%s does not take turns here: LLaMA-Factory would pass the row over", s.from)
		}
	}
	return all, nil
}

// functionCall is a reply with calls: thinking between its marks, then nothing
// but JSON. Text beside the calls has no other place than the thinking.
func (w *writer) functionCall(t *turn) ([]byte, error) {
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
	var r row
	if thinking != "" {
		r.data = append(r.data, thought(thinking)...)
	}
	if len(t.Calls) > 1 {
		r.open('[')
	}
	r.first = true
	for _, c := range t.Calls {
		args, ok := object(c.Arguments)
		if !ok {
			return nil, Refusal("arguments of a tool call that are no object of JSON, which LLaMA-Factory asks for")
		}
		r.comma()
		r.open('{')
		r.text("name", c.Name)
		r.raw("arguments", args)
		r.close('}')
	}
	if len(t.Calls) > 1 {
		r.close(']')
	}
	return r.data, nil
}
