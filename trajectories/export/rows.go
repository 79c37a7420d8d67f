package export

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	// arguments are the columns of a parquet file for the arguments of a tool call, see
	// toolColumns.
	arguments []string
	// unpaired has the attempts that are in no pair, with the reason.
	unpaired map[*Item]SkipReason
}

// newRow returns a row with the metadata and the tools of an attempt.
func (w *writer) newRow(item *Item) (conversationRow, error) {
	r := conversationRow{metadata: metadataOf(item)}
	var err error
	if len(item.Header.Tools) > 0 {
		r.Tools, err = EncodeTools(item.Header.Tools)
	}
	return r, err
}

// messages converts turns to OpenAI's form.
func (w *writer) messages(turns []turn) ([]message, error) {
	var list []message
	for i := range turns {
		t := &turns[i]
		m := message{Role: string(t.Role), Content: w.content(t), Reasoning: t.Reasoning}
		var err error
		if m.ToolCalls, err = w.calls(t.ToolCalls); err != nil {
			return nil, err
		}
		if t.Role == model.Tool {
			m.ToolCallID, m.Name = &t.ToolCallID, &t.toolName
		}
		if w.format.name == Axolotl {
			m.Train = &t.trained
		}
		list = append(list, m)
	}
	return list, nil
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
	var parts []contentPart
	if t.Content != "" {
		parts = append(parts, contentPart{Type: "text", Text: t.Content})
	}
	for _, img := range t.Images {
		address := "data:" + img.MediaType + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
		parts = append(parts, contentPart{Type: "image_url", ImageURL: &imageURL{address}})
	}
	return parts
}

// calls converts tool calls to OpenAI's form.
func (w *writer) calls(calls []model.ToolCall) ([]toolCall, error) {
	var list []toolCall
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
			if err := checkArguments(argsObject, w.arguments); err != nil {
				return nil, err
			}
		}
		list = append(list, toolCall{c.ID, "function", calledFunction{c.Name, args}})
	}
	return list, nil
}

// checkArguments returns an error if a parquet file with columns for these arguments would lose
// one. columns is nil if there are no such columns.
func checkArguments(arguments json.RawMessage, columns []string) error {
	var values map[string]any
	if columns == nil || json.Unmarshal(arguments, &values) != nil {
		return nil //nolint:nilerr // no object
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(columns, name) {
			return skipf("parquet: no column for %.40q", name)
		}
		if _, isText := values[name].(string); !isText && values[name] != nil {
			return skipf("parquet: wrong type of value for %.40q", name)
		}
	}
	return nil
}

// EncodeTools encodes tool definitions in the same way as in rows: in OpenAI's form.
func EncodeTools(defs []model.ToolDefinition) (json.RawMessage, error) {
	functions, err := functionList(defs)
	if err != nil {
		return nil, err
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var tools []tool
	for _, f := range functions {
		tools = append(tools, tool{"function", f})
	}
	return encode(tools)
}

// functionList converts tool definitions to the "function" objects of OpenAI's form.
func functionList(defs []model.ToolDefinition) ([]function, error) {
	var list []function
	for _, d := range defs {
		parameters, ok := compact(d.Parameters)
		if !ok {
			return nil, skipf("the parameters of the tool %.40q are not valid JSON", d.Name)
		}
		list = append(list, function{d.Name, d.Description, parameters})
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
func (w *writer) chat(items []*Item) ([]any, error) {
	turns, err := w.wholeConversation(items[0])
	if err != nil {
		return nil, err
	}
	r, err := w.newRow(items[0])
	if err == nil {
		r.Messages, err = w.messages(turns)
	}
	return []any{r}, err
}

// steps returns a row per trained reply, for PromptCompletion and KTO. With
// CompletionRest it returns only one row. For KTO, rows have a label.
func (w *writer) steps(items []*Item) ([]any, error) {
	item := items[0]
	r, err := w.newRow(item)
	if err != nil {
		return nil, err
	}
	if w.format.name == KTO {
		label, valid := verdictLabel(item.Verdict)
		if !valid {
			return nil, SkipReason(skipNoVerdict)
		}
		r.Label = &label
	}
	var steps []step
	if w.opts.Completion == CompletionRest {
		turns, err := w.wholeConversation(item)
		if err != nil {
			return nil, err
		}
		firstTrained := slices.IndexFunc(turns, func(t turn) bool { return t.trained })
		w.losses[noteTrainsObservations]++
		steps = []step{{prompt: turns[:firstTrained], completion: turns[firstTrained:]}}
	} else if steps, err = trainedSteps(item, w.opts); err != nil {
		return nil, err
	}
	var rows []any
	for _, s := range steps {
		r.Step = int64(s.number)
		if r.Prompt, err = w.messages(s.prompt); err == nil {
			r.Completion, err = w.messages(s.completion)
		}
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
func (w *writer) pairs(items []*Item) ([]any, error) {
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
	var rows []any
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
func (w *writer) pair(a, b candidate) (pairRow, error) {
	split := 0
	for split < len(a.turns) && split < len(b.turns) && isEquivalent(a.turns[split], b.turns[split]) {
		split++
	}
	switch {
	case split == len(a.turns) || split == len(b.turns):
		return pairRow{}, SkipReason("one attempt is a prefix of the other")
	case a.turns[split].Role != model.Assistant || b.turns[split].Role != model.Assistant:
		return pairRow{}, SkipReason("the prompts differ")
	case !a.turns[split].trained || !b.turns[split].trained:
		return pairRow{}, SkipReason("one of the first different replies is not trained on")
	case !slices.EqualFunc(a.item.Header.Tools, b.item.Header.Tools, func(x, y model.ToolDefinition) bool {
		return x.Name == y.Name && string(x.Parameters) == string(y.Parameters)
	}):
		return pairRow{}, SkipReason("the tools differ")
	}
	chosen, rejected := a.turns[split:split+1], b.turns[split:split+1]
	if w.opts.Completion == CompletionRest {
		chosen, rejected = a.turns[split:], b.turns[split:]
		w.losses[noteTrainsObservations] += 2
	}
	r, err := w.newRow(a.item)
	for _, part := range []struct {
		to    *[]message
		turns []turn
	}{{&r.Prompt, a.turns[:split]}, {&r.Chosen, chosen}, {&r.Rejected, rejected}} {
		if err == nil {
			*part.to, err = w.messages(part.turns)
		}
	}
	m := metadataOf(b.item)
	return pairRow{r, m.Attempt, m.Model, m.Verdict, m.Reward, m.Steps, m.Tokens, m.Autosubmitted, m.SHA256}, err
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
