package export

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/minibench/mini/model"
)

// losses has the counts of Report.Losses.
type losses map[string]int

// The descriptions in losses: of information that a format cannot represent, and of
// other notes about rows.
const (
	lossImages             = "images, which the format cannot represent"
	lossText               = "text besides a tool call, which the format cannot represent"
	lossMovedText          = "text besides a tool call, moved into <think>"
	lossJoinedResults      = "results of several calls of a reply, joined to one observation"
	noteFullHistory        = "attempts in which not every call had the full history that the row has"
	noteTrainsRejected     = "replies that the user rejected in part, which are trained on"
	noteTrainsInherited    = "replies inherited from another attempt, which are trained on"
	noteTrainsObservations = "completions with observations, which a trainer without masks trains on"
)

// writer makes the rows of an attempt, or for DPO of all attempts on an instance.
type writer struct {
	opts   Options
	format format
	losses losses
	// unpaired has the attempts that are in no pair, with the reason.
	unpaired map[*Item]SkipReason
}

// newRow returns the beginning of a row: the message lists of the format and the tools.
// lists are in the order of format.messageLists.
func (w *writer) newRow(item *Item, lists ...[]turn) (object, error) {
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
		r = append(r, member{w.format.messageLists[i], messages})
	}
	if len(item.Header.Tools) == 0 {
		return r, nil
	}
	tools, err := toolList(item.Header.Tools)
	return append(r, member{"tools", tools}), err
}

// message converts a turn to OpenAI's format.
func (w *writer) message(t *turn) (object, error) {
	m := object{{"role", string(t.Role)}, {"content", w.content(t)}}
	if t.Reasoning != "" {
		m = append(m, member{"reasoning_content", t.Reasoning})
	}
	if len(t.ToolCalls) > 0 {
		calls, err := w.calls(t.ToolCalls)
		if err != nil {
			return nil, err
		}
		m = append(m, member{"tool_calls", calls})
	}
	if t.Role == model.Tool {
		m = append(m, member{"tool_call_id", t.ToolCallID}, member{"name", t.toolName})
	}
	if w.format.name == Axolotl {
		m = append(m, member{"train", t.trained})
	}
	return m, nil
}

// content returns the text of a turn. If the turn has images and the format can contain
// them, it returns a list of parts.
func (w *writer) content(t *turn) any {
	if len(t.Images) == 0 {
		return t.Content
	}
	if w.opts.Parquet || w.format.name == Axolotl {
		w.losses[lossImages] += len(t.Images)
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

// calls converts tool calls to OpenAI's format.
func (w *writer) calls(calls []model.ToolCall) ([]any, error) {
	var list []any
	for _, c := range calls {
		var args any = c.Arguments
		argsObject, ok := compactObject(c.Arguments)
		switch {
		case w.opts.ToolArguments == ArgumentsText && !ok && w.format.name == Axolotl:
			return nil, SkipReason("tool call arguments that are not a JSON object, which Axolotl does not accept")
		case w.opts.ToolArguments == ArgumentsText:
		case !ok:
			return nil, SkipReason("tool call arguments that are not a JSON object: use --tool-arguments text, or drop format errors")
		default:
			args = argsObject
		}
		function := object{{"name", c.Name}, {"arguments", args}}
		list = append(list, object{{"id", c.ID}, {"type", "function"}, {"function", function}})
	}
	return list, nil
}

// EncodeTools encodes tool definitions in the same way as in rows.
func EncodeTools(defs []model.ToolDefinition) (json.RawMessage, error) {
	list, err := toolList(defs)
	if err != nil {
		return nil, err
	}
	return encode(list)
}

// toolList converts tool definitions to OpenAI's format.
func toolList(defs []model.ToolDefinition) ([]any, error) {
	functions, err := functionList(defs)
	if err != nil {
		return nil, err
	}
	for i, f := range functions {
		functions[i] = object{{"type", "function"}, {"function", f}}
	}
	return functions, nil
}

// functionList converts tool definitions to the "function" objects of OpenAI's format.
func functionList(defs []model.ToolDefinition) ([]any, error) {
	var list []any
	for _, d := range defs {
		parameters, ok := compact(d.Parameters)
		if !ok {
			return nil, skipf("the parameters of the tool %.40q are not valid JSON", d.Name)
		}
		list = append(list, object{{"name", d.Name}, {"description", d.Description}, {"parameters", parameters}})
	}
	return list, nil
}

// wholeConversation returns the turns of an attempt for one row, and counts notes.
func (w *writer) wholeConversation(item *Item) ([]turn, error) {
	turns, err := conversation(markedTurns(item.Attempt, w.opts))
	if err != nil {
		return nil, err
	}
	for _, e := range item.Entries {
		if e.Context != nil {
			w.losses[noteFullHistory]++
			break
		}
	}
	if w.format.canMask {
		return turns, nil
	}
	for _, t := range turns {
		switch {
		case t.Role != model.Assistant || t.trained:
		case !t.isReply:
			return nil, skipf("replies in the prompt that the model did not write, which %s cannot exclude from training; use axolotl or prompt-completion", w.format.name)
		case item.Header.IsInherited(t.record):
			w.losses[noteTrainsInherited]++
		default:
			w.losses[noteTrainsRejected]++
		}
	}
	return turns, nil
}

// chat returns one row with all messages of an attempt, for OpenAI and Axolotl.
func (w *writer) chat(items []*Item) ([]object, error) {
	turns, err := w.wholeConversation(items[0])
	if err != nil {
		return nil, err
	}
	r, err := w.newRow(items[0], turns)
	return []object{append(r, metadata(items[0], "")...)}, err
}

// steps returns a row per trained reply, for PromptCompletion and KTO. With
// CompletionRest it returns only one row. For KTO, rows have a label.
func (w *writer) steps(items []*Item) ([]object, error) {
	item := items[0]
	label, valid := verdictLabel(item.Verdict)
	if w.format.name == KTO && !valid {
		return nil, SkipReason(skipNoVerdict)
	}
	newRow := func(number int, prompt, rest []turn) (object, error) {
		r, err := w.newRow(item, prompt, rest)
		if w.format.name == KTO {
			r = append(r, member{"label", label})
		}
		r = append(r, metadata(item, "")...)
		if number > 0 {
			r = append(r, member{"step", int64(number)})
		}
		return r, err
	}
	if w.opts.Completion == CompletionRest {
		turns, err := w.wholeConversation(item)
		if err != nil {
			return nil, err
		}
		firstTrained := slices.IndexFunc(turns, func(t turn) bool { return t.trained })
		w.losses[noteTrainsObservations]++
		r, err := newRow(0, turns[:firstTrained], turns[firstTrained:])
		return []object{r}, err
	}
	steps, err := trainedSteps(item, w.opts)
	if err != nil {
		return nil, err
	}
	var rows []object
	for _, s := range steps {
		r, err := newRow(s.number, s.prompt, []turn{s.reply})
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// verdictLabel returns the KTO label of a verdict. valid is false if the verdict shows
// neither success nor failure of the attempt.
func verdictLabel(verdict string) (label, valid bool) {
	switch verdict {
	case "resolved":
		return true, true
	case "unresolved", "empty", "apply_failed", "timed_out":
		return false, true
	}
	return false, false // no verdict, unstable, or an infrastructure error
}

const (
	skipNoVerdict  = "no verdict resolved or unresolved"
	skipNoPair     = "no attempt with the opposite verdict"
	skipUnpairable = "no attempt that it can be paired with"
)

// candidate is an attempt that may be part of a pair.
type candidate struct {
	item  *Item
	turns []turn
}

// pairs returns rows for pairs of a resolved and an unresolved attempt on an instance. It
// pairs the attempts in order, and uses those of the shorter list repeatedly, so that it
// tries each attempt in at least one pair. Attempts in no row are stored in w.unpaired.
func (w *writer) pairs(items []*Item) ([]object, error) {
	w.unpaired = map[*Item]SkipReason{}
	var chosen, rejected []candidate
	for _, item := range items {
		isResolved, valid := verdictLabel(item.Verdict)
		if !valid {
			w.unpaired[item] = skipNoVerdict
			continue
		}
		turns, err := w.wholeConversation(item)
		if skipped, ok := errors.AsType[SkipReason](err); ok {
			w.unpaired[item] = skipped
			continue
		}
		w.unpaired[item] = skipNoPair
		if isResolved {
			chosen = append(chosen, candidate{item, turns})
		} else {
			rejected = append(rejected, candidate{item, turns})
		}
	}
	if len(chosen) == 0 || len(rejected) == 0 {
		return nil, nil
	}
	var rows []object
	paired := map[*Item]bool{}
	for i := range max(len(chosen), len(rejected)) {
		resolved, unresolved := chosen[i%len(chosen)], rejected[i%len(rejected)]
		r, err := w.pair(resolved, unresolved)
		if skipped, ok := errors.AsType[SkipReason](err); ok {
			w.losses[fmt.Sprintf("pairs skipped: %s", skipped)]++
			w.unpaired[resolved.item], w.unpaired[unresolved.item] = skipUnpairable, skipUnpairable
			continue
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
		paired[resolved.item], paired[unresolved.item] = true, true
	}
	for item := range paired {
		delete(w.unpaired, item)
	}
	return rows, nil
}

// pair returns the row for the pair of a resolved attempt a and an unresolved attempt b.
// The prompt is the conversation before the first reply that differs.
func (w *writer) pair(a, b candidate) (object, error) {
	split := 0
	for split < len(a.turns) && split < len(b.turns) && isEquivalent(a.turns[split], b.turns[split]) {
		split++
	}
	switch {
	case split == len(a.turns) || split == len(b.turns):
		return nil, SkipReason("one attempt is a prefix of the other")
	case a.turns[split].Role != model.Assistant || b.turns[split].Role != model.Assistant:
		return nil, SkipReason("the prompts differ")
	case !a.turns[split].trained || !b.turns[split].trained:
		return nil, SkipReason("one of the first different replies is not trained on")
	case !slices.EqualFunc(a.item.Header.Tools, b.item.Header.Tools, func(x, y model.ToolDefinition) bool {
		return x.Name == y.Name && string(x.Parameters) == string(y.Parameters)
	}):
		return nil, SkipReason("the tools differ")
	}
	chosen, rejected := a.turns[split:split+1], b.turns[split:split+1]
	if w.opts.Completion == CompletionRest {
		chosen, rejected = a.turns[split:], b.turns[split:]
		w.losses[noteTrainsObservations] += 2
	}
	r, err := w.newRow(a.item, a.turns[:split], chosen, rejected)
	return append(append(r, metadata(a.item, "")...), metadata(b.item, rejectedPrefix)...), err
}

// isEquivalent reports whether two turns are the same for a model. It ignores tool call
// IDs, since servers generate them.
func isEquivalent(a, b turn) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(x, y model.ToolCall) bool { return x.Name == y.Name && x.Arguments == y.Arguments }) &&
		slices.EqualFunc(a.Images, b.Images, func(x, y model.Image) bool {
			return x.MediaType == y.MediaType && string(x.Data) == string(y.Data)
		})
}
