package export_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/formats"
)

// The readers in this file follow the code of trainers, not that of mini. They return an
// error if a trainer would fail or skip a row.

// TestConsumers checks the rows of every format and option with the reader that follows
// the trainer.
func TestConsumers(t *testing.T) {
	readers := map[string]func(map[string]any, export.Options) error{
		export.OpenAI:           readTRL,
		export.ShareGPT:         readLLaMAFactory,
		export.Axolotl:          readAxolotl,
		export.PromptCompletion: readCompletion,
		export.KTO:              readKTO,
		export.DPO:              readDPO,
	}
	for format, read := range readers {
		for _, o := range allOptions(format) {
			t.Run(fmt.Sprintf("%s %s %s %s %s", format, o.Reasoning, o.FormatErrors, o.ToolArguments, o.Completion), func(t *testing.T) {
				dir, r := run(t, o, allAttempts()...)
				all := rows(t, filepath.Join(dir, "train.jsonl"))
				if len(all) == 0 || len(all) != r.Rows {
					t.Fatalf("%d rows in the file, %d reported", len(all), r.Rows)
				}
				for i, row := range all {
					if err := errors.Join(read(row, o), readMetadata(row)); err != nil {
						t.Errorf("row %d: %v\n%v", i+1, err, row)
					}
				}
			})
		}
	}
}

// allOptions returns all combinations of options that are valid for a format.
func allOptions(format string) []export.Options {
	var all []export.Options
	for _, reasoning := range []export.Reasoning{export.ReasoningKeep, export.ReasoningDrop, export.ReasoningInline} {
		for _, formatErrors := range []export.FormatErrors{export.FormatErrorsDrop, export.FormatErrorsKeep, export.FormatErrorsMask} {
			for _, args := range []export.ToolArguments{export.ArgumentsObject, export.ArgumentsText} {
				for _, completion := range []export.Completion{export.CompletionReply, export.CompletionRest} {
					o, err := export.Options{Format: format, Reasoning: reasoning, FormatErrors: formatErrors, ToolArguments: args, Completion: completion}.Validate()
					if err == nil && !slices.Contains(all, o) {
						all = append(all, o)
					}
				}
			}
		}
	}
	return all
}

func readMetadata(row map[string]any) error {
	for _, name := range []string{"instance_id", "attempt", "sample", "model", "verdict", "steps", "tokens", "journal_sha256"} {
		if row[name] == nil {
			return fmt.Errorf("missing %s", name)
		}
	}
	if sum, _ := row["journal_sha256"].(string); len(sum) != 64 {
		return fmt.Errorf("journal_sha256 %q", sum)
	}
	return nil
}

// readMessages checks a list of messages like a strict chat template: an optional system
// message, then user and assistant messages alternately, and results only for open calls.
func readMessages(value any, o export.Options) ([]map[string]any, error) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("no list of messages: %v", value)
	}
	var all []map[string]any
	open := map[string]any{} // tool names of calls without a result, by ID
	previousRole := ""
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("message %d is not an object", i)
		}
		if _, ok := m["content"].(string); !ok {
			return nil, fmt.Errorf("message %d: content %v", i, m["content"])
		}
		role, _ := m["role"].(string)
		switch {
		case role == "system" && i > 0:
			return nil, fmt.Errorf("message %d is the system's", i)
		case role == previousRole && role != "tool":
			return nil, fmt.Errorf("message %d: %s again", i, role)
		case role == "assistant":
			clear(open)
			if err := readCalls(m, open, o); err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
		case role == "tool":
			id, _ := m["tool_call_id"].(string)
			if open[id] == nil || m["name"] != open[id] {
				return nil, fmt.Errorf("message %d answers %q of %v", i, id, m["name"])
			}
			delete(open, id)
		case role != "user" && role != "system":
			return nil, fmt.Errorf("message %d: role %q", i, role)
		}
		previousRole = role
		all = append(all, m)
	}
	return all, nil
}

// readCalls checks the tool calls of a message and adds them to open.
func readCalls(m map[string]any, open map[string]any, o export.Options) error {
	calls, _ := m["tool_calls"].([]any)
	for _, v := range calls {
		c, _ := v.(map[string]any)
		f, _ := c["function"].(map[string]any)
		id, _ := c["id"].(string)
		if name, _ := f["name"].(string); c["type"] != "function" || name == "" || id == "" {
			return fmt.Errorf("call %v", c)
		}
		switch args := f["arguments"].(type) {
		case map[string]any:
			if o.ToolArguments != export.ArgumentsObject {
				return fmt.Errorf("arguments %v are an object", args)
			}
		case string:
			if o.ToolArguments != export.ArgumentsText || !json.Valid([]byte(args)) {
				return fmt.Errorf("arguments %q are text", args)
			}
		default:
			return fmt.Errorf("arguments %v", args)
		}
		open[id] = f["name"]
	}
	return nil
}

// checkTrained checks the place of reasoning, and that the conversation ends with a reply,
// since trainers do not train on messages after the last reply.
func checkTrained(all []map[string]any, o export.Options) error {
	if all[len(all)-1]["role"] != "assistant" {
		return fmt.Errorf("the last message is the %v's", all[len(all)-1]["role"])
	}
	field, inline := 0, 0
	for _, m := range all {
		text, _ := m["content"].(string)
		if m["reasoning_content"] != nil {
			field++
		}
		if strings.HasPrefix(text, "<think>\n") {
			inline++
		}
	}
	if field > 0 && o.Reasoning != export.ReasoningKeep || inline > 0 && o.Reasoning != export.ReasoningInline {
		return fmt.Errorf("thinking: %d in the field, %d inline, and %s was asked for", field, inline, o.Reasoning)
	}
	return nil
}

// readTRL reads rows like SFTTrainer with assistant_only_loss, and verl's multi-turn
// dataset.
func readTRL(row map[string]any, o export.Options) error {
	all, err := readMessages(row["messages"], o)
	if err != nil {
		return err
	}
	return errors.Join(checkTrained(all, o), checkFormatErrors(all, o), readTools(row, all))
}

// checkFormatErrors checks that there are no replies with format errors if the options
// drop them.
func checkFormatErrors(all []map[string]any, o export.Options) error {
	for _, m := range all {
		if text, _ := m["content"].(string); o.FormatErrors == export.FormatErrorsDrop && (strings.Contains(text, "bad") || text == "Exactly one block." || text == "No JSON.") {
			return fmt.Errorf("%q was to be dropped", text)
		}
	}
	return nil
}

// readTools checks that there are tools if and only if there are tool calls. Without tools,
// a template renders nothing about them.
func readTools(row map[string]any, all []map[string]any) error {
	hasCalls := slices.ContainsFunc(all, func(m map[string]any) bool { return m["tool_calls"] != nil })
	tools, _ := row["tools"].([]any)
	if hasCalls != (len(tools) == 1) {
		return fmt.Errorf("calls are native: %v, and the tools are %v", hasCalls, row["tools"])
	}
	return nil
}

// readAxolotl reads rows like Axolotl's chat_template with message_field_training: train.
// Axolotl parses the arguments of tool calls, and warns if it does not train on the last
// message.
func readAxolotl(row map[string]any, o export.Options) error {
	all, err := readMessages(row["messages"], o)
	if err != nil {
		return err
	}
	for i, m := range all {
		train, ok := m["train"].(bool)
		text, _ := m["content"].(string)
		calls, _ := m["tool_calls"].([]any)
		bad := strings.Contains(text, "bad") || len(calls) > 0 && strings.Contains(fmt.Sprint(calls[0]), "c3")
		want := m["role"] == "assistant" && (!bad || o.FormatErrors == export.FormatErrorsKeep)
		if !ok || train != want {
			return fmt.Errorf("message %d: train %v, want %v", i, m["train"], want)
		}
	}
	if all[len(all)-1]["train"] != true {
		return errors.New("the last turn is not learned")
	}
	return errors.Join(checkTrained(all, o), checkFormatErrors(all, o), readTools(row, all))
}

// readLLaMAFactory reads rows like LLaMA-Factory with the formatting "sharegpt".
// LLaMA-Factory skips rows whose turns do not alternate or that do not end with a reply. A
// function call is JSON after an optional block of reasoning.
func readLLaMAFactory(row map[string]any, o export.Options) error {
	if err := readTurns(row, o); err != nil {
		return err
	}
	system, ok := row["system"].(string)
	tools, toolsOK := row["tools"].(string)
	if !ok || !toolsOK || system == "" {
		return fmt.Errorf("system %v, tools %v", row["system"], row["tools"])
	}
	if tools == "" {
		return nil
	}
	var defs []struct {
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters"`
	}
	if err := json.Unmarshal([]byte(tools), &defs); err != nil || len(defs) != 1 || defs[0].Name != "bash" || defs[0].Parameters == nil {
		return fmt.Errorf("tools %q: %w", tools, err)
	}
	return nil
}

// readTurns checks that human or observation alternate with gpt or function_call.
func readTurns(row map[string]any, o export.Options) error {
	list, _ := row["conversations"].([]any)
	if len(list) == 0 || len(list)%2 != 0 {
		return fmt.Errorf("%d turns", len(list))
	}
	odd, even := []string{"human", "observation"}, []string{"gpt", "function_call"}
	for i, v := range list {
		m, _ := v.(map[string]any)
		from, _ := m["from"].(string)
		value, ok := m["value"].(string)
		if want := [][]string{odd, even}[i%2]; !ok || !slices.Contains(want, from) {
			return fmt.Errorf("turn %d is by %q, and %v may be", i, from, want)
		}
		if o.Reasoning == export.ReasoningDrop && strings.Contains(value, "<think>") {
			return fmt.Errorf("turn %d thinks", i)
		}
		if from == "function_call" {
			if err := readFunctionCall(value); err != nil {
				return fmt.Errorf("turn %d: %w", i, err)
			}
		}
	}
	return nil
}

func readFunctionCall(value string) error {
	if before, rest, ok := strings.Cut(value, "\n</think>\n\n"); ok {
		if !strings.HasPrefix(before, "<think>\n") {
			return fmt.Errorf("thinking in the midst: %q", value)
		}
		value = rest
	}
	var calls []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	}
	if !strings.HasPrefix(value, "[") {
		value = "[" + value + "]"
	}
	if err := json.Unmarshal([]byte(value), &calls); err != nil {
		return fmt.Errorf("%q: %w", value, err)
	}
	for _, c := range calls {
		if c.Name == "" || c.Arguments == nil {
			return fmt.Errorf("call %+v", c)
		}
	}
	return nil
}

// readCompletion checks that prompt and completion are one conversation, like TRL, which
// trains on the completion.
func readCompletion(row map[string]any, o export.Options) error {
	return readParts(row, o, "prompt", "completion")
}

func readParts(row map[string]any, o export.Options, prompt, completion string) error {
	before, _ := row[prompt].([]any)
	after, _ := row[completion].([]any)
	all, err := readMessages(append(slices.Clone(before), after...), o)
	if err != nil {
		return err
	}
	if len(before) == 0 || all[len(before)]["role"] != "assistant" {
		return errors.New("the completion does not begin with a reply")
	}
	if o.Completion != export.CompletionRest && len(after) != 1 {
		return fmt.Errorf("%d messages are learned, and one is the model's", len(after))
	}
	return checkTrained(all, o)
}

func readKTO(row map[string]any, o export.Options) error {
	label, ok := row["label"].(bool)
	if !ok || label != (row["verdict"] == "resolved") {
		return fmt.Errorf("label %v of %v", row["label"], row["verdict"])
	}
	return readParts(row, o, "prompt", "completion")
}

func readDPO(row map[string]any, o export.Options) error {
	if row["verdict"] != "resolved" || row["rejected_verdict"] == "resolved" || row["journal_sha256"] == row["rejected_journal_sha256"] {
		return fmt.Errorf("%v over %v", row["verdict"], row["rejected_verdict"])
	}
	if fmt.Sprint(row["chosen"]) == fmt.Sprint(row["rejected"]) {
		return errors.New("chosen and rejected are the same")
	}
	return errors.Join(readParts(row, o, "prompt", "chosen"), readParts(row, o, "prompt", "rejected"))
}

// realItems returns attempts of other agents, each twice: one resolved, and one
// unresolved with a different last reply.
func realItems(t *testing.T) []*export.Item {
	t.Helper()
	dir := corpustest.RealData(t, "trajectories")
	var items []*export.Item
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".traj") {
			return err
		}
		for attempt, verdict := range []string{"resolved", "unresolved"} {
			for f, err := range formats.OpenAll(path) {
				if err != nil || d.Name() == "dup-tool-call-id.json" {
					continue // package formats tests such files; trainers refuse duplicate IDs
				}
				tr, err := trajectories.Fold(f.Records)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				it := &export.Item{
					Attempt: tr, InstanceID: fmt.Sprintf("%s-%d", strings.TrimPrefix(path, dir), f.Row), Journal: path,
					SHA256: fmt.Sprintf("%.63s%d", f.SHA256, attempt), Number: attempt + 1, Repetition: 1, Verdict: verdict,
				}
				for i := len(tr.Entries) - 1; i >= 0 && attempt > 0; i-- {
					if e := &tr.Entries[i]; e.Cause == trajectories.CauseReply {
						e.Content += " Or not."
						break
					}
				}
				items = append(items, it)
			}
		}
		return nil
	})
	require.NoError(t, err)
	slices.SortStableFunc(items, func(a, b *export.Item) int { return strings.Compare(a.InstanceID, b.InstanceID) })
	return items
}

// TestRealAttempts checks the rows of every format for attempts of other agents, with the
// readers that follow trainers.
func TestRealAttempts(t *testing.T) {
	items := realItems(t)
	if len(items) < 100 {
		t.Fatalf("%d attempts", len(items))
	}
	readList := func(name string) func(map[string]any, export.Options) error {
		return func(row map[string]any, o export.Options) error {
			all, err := readMessages(row[name], o)
			if err != nil {
				return err
			}
			if last := all[len(all)-1]; last["role"] != "assistant" || o.Format == export.Axolotl && last["train"] != true {
				return fmt.Errorf("the last message is %v", last)
			}
			for _, m := range all {
				if m["train"] == true && m["role"] != "assistant" {
					return fmt.Errorf("learned: %v", m)
				}
			}
			return nil
		}
	}
	readCompletions := func(names ...string) func(map[string]any, export.Options) error {
		return func(row map[string]any, o export.Options) error {
			var errs []error
			for _, name := range names {
				before, _ := row["prompt"].([]any)
				after, _ := row[name].([]any)
				all, err := readMessages(append(append([]any{}, before...), after...), o)
				if err == nil && (len(after) != 1 || all[len(all)-1]["role"] != "assistant") {
					err = fmt.Errorf("%s: %v", name, after)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}
	}
	for _, tt := range []struct {
		format string
		rows   int // minimum
		read   func(map[string]any, export.Options) error
	}{
		{export.OpenAI, 130, readList("messages")},
		{export.Axolotl, 130, readList("messages")},
		{export.ShareGPT, 130, readTurns},
		{export.PromptCompletion, 700, readCompletions("completion")},
		{export.KTO, 700, readCompletions("completion")},
		{export.DPO, 65, readCompletions("chosen", "rejected")},
	} {
		t.Run(tt.format, func(t *testing.T) {
			o, err := export.Options{Format: tt.format}.Validate()
			require.NoError(t, err)
			dir, r := run(t, o, items...)
			t.Logf("%d of %d exported; left out %v, losses %v", r.Exported, r.Attempts, r.Dropped, r.Losses)
			all := rows(t, filepath.Join(dir, "train.jsonl"))
			if len(all) < tt.rows {
				t.Errorf("%d rows", len(all))
			}
			for i, row := range all {
				if err := tt.read(row, o); err != nil {
					t.Errorf("row %d, of %v: %v", i+1, row["instance_id"], err)
				}
			}
		})
	}
}
