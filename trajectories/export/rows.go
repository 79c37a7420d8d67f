package export

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/minibench/mini/model"
)

// losses count what a format has no place for, by a sentence.
type losses map[string]int

// The losses, and what else a reader of the rows should know.
const (
	lostImages      = "images that the format has no place for"
	lostText        = "text beside a tool call, for which the format has no place"
	movedText       = "text beside a tool call that was put between <think> and </think>"
	joinedResults   = "results of several calls of a reply that are one observation"
	fullHistory     = "attempts whose calls were not all sent the whole history that the row has"
	learnsRefused   = "replies of which the user refused a part, which are learned all the same"
	learnsInherited = "replies of the attempt that this one goes on from, which are learned all the same"
	learnsRest      = "completions that hold observations too: a trainer without masks learns them"
)

// writer makes the rows of one attempt, or of the attempts on one instance.
type writer struct {
	o      Options
	format format
	lost   losses
	// unpaired are the attempts that are in no row, by their reason.
	unpaired map[*Item]Refusal
}

// row begins a row: the format's lists of messages, and what tools were offered.
func (w *writer) row(it *Item, lists ...[]turn) (object, error) {
	var r object
	for i, turns := range lists {
		messages := []any{}
		for k := range turns {
			m, err := w.message(&turns[k])
			if err != nil {
				return nil, err
			}
			messages = append(messages, m)
		}
		r = append(r, member{w.format.lists[i], messages})
	}
	if len(it.Header.Tools) == 0 {
		return r, nil
	}
	tools, err := toolList(it.Header.Tools)
	return append(r, member{"tools", tools}), err
}

// message is a turn in OpenAI's form.
func (w *writer) message(t *turn) (object, error) {
	m := object{{"role", string(t.Role)}, {"content", w.content(t)}}
	if t.Reasoning != "" {
		m = append(m, member{"reasoning_content", t.Reasoning})
	}
	if len(t.Calls) > 0 {
		calls, err := w.calls(t.Calls)
		if err != nil {
			return nil, err
		}
		m = append(m, member{"tool_calls", calls})
	}
	if t.Role == model.Tool {
		m = append(m, member{"tool_call_id", t.CallID}, member{"name", t.name})
	}
	if w.format.name == Axolotl {
		m = append(m, member{"train", t.learn})
	}
	return m, nil
}

// content is the text of a turn, or a list of parts where it has images and
// there is a place for them.
func (w *writer) content(t *turn) any {
	if len(t.Images) == 0 {
		return t.Content
	}
	if w.o.Parquet || w.format.name == Axolotl {
		w.lost[lostImages] += len(t.Images)
		return t.Content
	}
	parts := []any{}
	if t.Content != "" {
		parts = append(parts, object{{"type", "text"}, {"text", t.Content}})
	}
	for _, img := range t.Images {
		address := "data:" + img.MediaType + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
		parts = append(parts, object{{"type", "image_url"}, {"image_url", object{{"url", address}}}})
	}
	return parts
}

func (w *writer) calls(calls []model.Call) ([]any, error) {
	var list []any
	for _, c := range calls {
		var args any = c.Arguments
		written, ok := compactObject(c.Arguments)
		switch {
		case w.o.Arguments == Text && !ok && w.format.name == Axolotl:
			return nil, Refusal("arguments of a tool call that are no object of JSON, at which Axolotl stops")
		case w.o.Arguments == Text:
		case !ok:
			return nil, Refusal("arguments of a tool call that are no object of JSON: take --tool-arguments text, or drop format errors")
		default:
			args = written
		}
		function := object{{"name", c.Name}, {"arguments", args}}
		list = append(list, object{{"id", c.ID}, {"type", "function"}, {"function", function}})
	}
	return list, nil
}

// Tools are definitions in the form in which rows have them.
func Tools(defs []model.Definition) (json.RawMessage, error) {
	list, err := toolList(defs)
	if err != nil {
		return nil, err
	}
	return encode(list)
}

// toolList is what was offered to the model, where calls are native.
func toolList(defs []model.Definition) ([]any, error) {
	functions, err := definitions(defs)
	if err != nil {
		return nil, err
	}
	for i, f := range functions {
		functions[i] = object{{"type", "function"}, {"function", f}}
	}
	return functions, nil
}

func definitions(defs []model.Definition) ([]any, error) {
	var list []any
	for _, d := range defs {
		parameters, ok := compact(d.Parameters)
		if !ok {
			return nil, refuse("the parameters of the tool %.40q are no JSON", d.Name)
		}
		list = append(list, object{{"name", d.Name}, {"description", d.Description}, {"parameters", parameters}})
	}
	return list, nil
}

// whole is the conversation of an attempt as one row.
func (w *writer) whole(it *Item) ([]turn, error) {
	turns, err := conversation(turnsOf(it.Transcript, w.o))
	if err != nil {
		return nil, err
	}
	for _, e := range it.Entries {
		if e.Context != nil {
			w.lost[fullHistory]++
			break
		}
	}
	if w.format.masks {
		return turns, nil
	}
	for _, t := range turns {
		switch {
		case t.Role != model.Assistant || t.learn:
		case !t.reply:
			return nil, refuse("replies in its prompt, which the model did not write, and %s has no way to say so; axolotl and prompt-completion have", w.format.name)
		case it.Header.Inherited(t.record):
			w.lost[learnsInherited]++
		default:
			w.lost[learnsRefused]++
		}
	}
	return turns, nil
}

// chat is a row of messages, for OpenAI and Axolotl.
func (w *writer) chat(items []*Item) ([]object, error) {
	turns, err := w.whole(items[0])
	if err != nil {
		return nil, err
	}
	r, err := w.row(items[0], turns)
	return []object{append(r, aboutItem(items[0], "")...)}, err
}

// steps are a row for each reply that is learned; for KTO with a label, which is
// the verdict on the attempt, and if so wanted one row of all that follows the
// first prompt.
func (w *writer) steps(items []*Item) ([]object, error) {
	it := items[0]
	label, judged := good(it.Verdict)
	if w.format.name == KTO && !judged {
		return nil, Refusal(noVerdict)
	}
	completion := func(number int, prompt, rest []turn) (object, error) {
		r, err := w.row(it, prompt, rest)
		if w.format.name == KTO {
			r = append(r, member{"label", label})
		}
		r = append(r, aboutItem(it, "")...)
		if number > 0 {
			r = append(r, member{"step", int64(number)})
		}
		return r, err
	}
	if w.o.Completion == Rest {
		turns, err := w.whole(it)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(turns, func(t turn) bool { return t.learn })
		w.lost[learnsRest]++
		r, err := completion(0, turns[:at], turns[at:])
		return []object{r}, err
	}
	all, err := stepsOf(it, w.o)
	if err != nil {
		return nil, err
	}
	var rows []object
	for _, s := range all {
		r, err := completion(s.number, s.prompt, []turn{s.reply})
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// good says whether a verdict speaks for an attempt, and whether it speaks.
func good(verdict string) (label, judged bool) {
	switch verdict {
	case "resolved":
		return true, true
	case "unresolved", "empty", "apply_failed", "timed_out":
		return false, true
	}
	return false, false // none, unstable, or of the machine
}

const (
	noVerdict = "no verdict that says whether it is resolved"
	noPair    = "no attempt with the other verdict to pair it with"
	unfit     = "no two attempts that can be paired"
)

// candidate is an attempt that may be one half of a pair.
type candidate struct {
	item  *Item
	turns []turn
}

// pairs are rows of the attempts on one instance: each resolved attempt with one
// that is not, in their order, until each of them has been in a pair. What both
// were sent up to their first different reply is the prompt. Attempts that are in
// no pair are left in w.unpaired.
func (w *writer) pairs(items []*Item) ([]object, error) {
	w.unpaired = map[*Item]Refusal{}
	var chosen, rejected []candidate
	for _, it := range items {
		label, judged := good(it.Verdict)
		if !judged {
			w.unpaired[it] = noVerdict
			continue
		}
		turns, err := w.whole(it)
		if refused, ok := errors.AsType[Refusal](err); ok {
			w.unpaired[it] = refused
			continue
		}
		w.unpaired[it] = noPair
		if label {
			chosen = append(chosen, candidate{it, turns})
		} else {
			rejected = append(rejected, candidate{it, turns})
		}
	}
	if len(chosen) == 0 || len(rejected) == 0 {
		return nil, nil
	}
	var rows []object
	paired := map[*Item]bool{}
	for i := range max(len(chosen), len(rejected)) {
		better, worse := chosen[i%len(chosen)], rejected[i%len(rejected)]
		r, err := w.pair(better, worse)
		if refused, ok := errors.AsType[Refusal](err); ok {
			w.lost[fmt.Sprintf("pairs left out: %s", refused)]++
			w.unpaired[better.item], w.unpaired[worse.item] = unfit, unfit
			continue
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
		paired[better.item], paired[worse.item] = true, true
	}
	for it := range paired {
		delete(w.unpaired, it)
	}
	return rows, nil
}

func (w *writer) pair(a, b candidate) (object, error) {
	at := 0
	for at < len(a.turns) && at < len(b.turns) && same(a.turns[at], b.turns[at]) {
		at++
	}
	switch {
	case at == len(a.turns) || at == len(b.turns):
		return nil, Refusal("one attempt is the beginning of the other")
	case a.turns[at].Role != model.Assistant || b.turns[at].Role != model.Assistant:
		return nil, Refusal("the prompts differ before any reply does")
	case !a.turns[at].learn || !b.turns[at].learn:
		return nil, Refusal("the first replies that differ are not both to be learned from")
	case !slices.EqualFunc(a.item.Header.Tools, b.item.Header.Tools, func(x, y model.Definition) bool {
		return x.Name == y.Name && string(x.Parameters) == string(y.Parameters)
	}):
		return nil, Refusal("the tools that were offered differ")
	}
	better, worse := a.turns[at:at+1], b.turns[at:at+1]
	if w.o.Completion == Rest {
		better, worse = a.turns[at:], b.turns[at:]
		w.lost[learnsRest] += 2
	}
	r, err := w.row(a.item, a.turns[:at], better, worse)
	return append(append(r, aboutItem(a.item, "")...), aboutItem(b.item, rejectedPrefix)...), err
}

// same says that two turns are one to a model. The ids of calls are not: a
// server makes them up anew each time.
func same(a, b turn) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning &&
		slices.EqualFunc(a.Calls, b.Calls, func(x, y model.Call) bool { return x.Name == y.Name && x.Arguments == y.Arguments }) &&
		slices.EqualFunc(a.Images, b.Images, func(x, y model.Image) bool {
			return x.MediaType == y.MediaType && string(x.Data) == string(y.Data)
		})
}
