package export

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// format describes an export format.
type format struct {
	name string
	// rows returns the rows of an attempt, or for DPO of all attempts on an instance.
	// It is nil for formats without rows.
	rows func(*writer, []*Item) ([]any, error)
	// columns are those columns of conversationRow in a parquet file that not every format has.
	columns []string
	// canMask is set if the format can exclude replies from training.
	canMask bool
	// needsVerdict is set if rows depend on verdicts.
	needsVerdict bool
	// toolArguments is the default of Options.ToolArguments. If it is ArgumentsText, it
	// is the only valid value.
	toolArguments ToolArguments
}

func formats() []format {
	return []format{
		{name: OpenAI, rows: (*writer).chat, columns: []string{"messages"}, toolArguments: ArgumentsObject},
		{name: ShareGPT, rows: (*writer).sharegpt, toolArguments: ArgumentsObject},
		{name: Axolotl, rows: (*writer).chat, columns: []string{"messages", "train"}, canMask: true, toolArguments: ArgumentsText},
		{name: PromptCompletion, rows: (*writer).steps, columns: []string{"prompt", "completion", "step"}, canMask: true, toolArguments: ArgumentsObject},
		{name: KTO, rows: (*writer).steps, columns: []string{"prompt", "completion", "step", "label"}, canMask: true, needsVerdict: true, toolArguments: ArgumentsObject},
		{name: DPO, rows: (*writer).pairs, columns: []string{"prompt", "chosen", "rejected"}, canMask: true, needsVerdict: true, toolArguments: ArgumentsObject},
		{name: Tokens, rows: (*writer).tokens, canMask: true, toolArguments: ArgumentsObject},
		{name: ATIF, toolArguments: ArgumentsObject},
		{name: Traj, toolArguments: ArgumentsObject},
		{name: Preds, toolArguments: ArgumentsObject},
		{name: Table, toolArguments: ArgumentsObject},
	}
}

func formatByName(name string) (format, bool) {
	list := formats()
	i := slices.IndexFunc(list, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}, false
	}
	return list[i], true
}

// schema returns the columns of a parquet file. tools and args are as toolColumns returns them.
func (f format) schema(tools parquet.Node, args []string) parquet.Node {
	if f.name == ShareGPT {
		return rowNode(reflect.TypeFor[sharegptRow](), nil)
	}
	if f.name == Tokens {
		return tokenColumns()
	}
	known := map[string]parquet.Node{"tools": tools}
	if args != nil {
		nodes := slices.Repeat([]parquet.Node{parquet.String()}, len(args))
		known["arguments"] = groupOf(args, nodes)
	}
	for _, name := range []string{"messages", "train", "prompt", "completion", "chosen", "rejected", "step", "label"} {
		if !slices.Contains(f.columns, name) {
			known[name] = nil
		}
	}
	if f.name == DPO {
		return rowNode(reflect.TypeFor[pairRow](), known)
	}
	return rowNode(reflect.TypeFor[conversationRow](), known)
}

// conversationRow is a row of the formats with messages in OpenAI's form. A row of DPO is a
// pairRow.
type conversationRow struct {
	Messages   []message       `json:"messages,omitempty"`
	Prompt     []message       `json:"prompt,omitempty"`
	Completion []message       `json:"completion,omitempty"`
	Chosen     []message       `json:"chosen,omitempty"`
	Rejected   []message       `json:"rejected,omitempty"`
	Tools      json.RawMessage `json:"tools,omitempty"`
	Label      *bool           `json:"label,omitempty"`
	metadata
	Step int64 `json:"step,omitempty"` // number of the reply, from 1
}

// pairRow is a row with the metadata of the rejected attempt.
type pairRow struct {
	conversationRow
	RejectedAttempt       int64    `json:"rejected_attempt"`
	RejectedModel         string   `json:"rejected_model"`
	RejectedVerdict       *string  `json:"rejected_verdict"`
	RejectedReward        *float64 `json:"rejected_reward"`
	RejectedSteps         int64    `json:"rejected_steps"`
	RejectedTokens        *int64   `json:"rejected_tokens"`
	RejectedAutosubmitted bool     `json:"rejected_autosubmitted"`
	RejectedSHA256        string   `json:"rejected_journal_sha256"`
}

// message is a message in OpenAI's form.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // a string, or a list of contentPart
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID *string    `json:"tool_call_id,omitempty"` // of a tool message, like Name
	Name       *string    `json:"name,omitempty"`
	Train      *bool      `json:"train,omitempty"` // for Axolotl
}

type contentPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type toolCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function calledFunction `json:"function"`
}

type calledFunction struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"` // a string, or an object as json.RawMessage
}

// function is the definition of a tool.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// metadata is about the attempt of a row.
type metadata struct {
	InstanceID    string   `json:"instance_id"`
	Attempt       int64    `json:"attempt"`
	Sample        int64    `json:"sample"`
	Model         string   `json:"model"`
	Verdict       *string  `json:"verdict"`
	Reward        *float64 `json:"reward"`
	Steps         int64    `json:"steps"`
	Tokens        *int64   `json:"tokens"`
	Autosubmitted bool     `json:"autosubmitted"`
	SHA256        string   `json:"journal_sha256"`
}

func metadataOf(item *Item) metadata {
	return metadata{
		InstanceID: item.InstanceID, Attempt: int64(item.Number), Sample: int64(item.Repetition), Model: item.Header.ModelName,
		Verdict: orNull(item.Verdict), Reward: item.Reward, Steps: int64(item.Steps()), Tokens: orNull(item.Tokens),
		Autosubmitted: item.autosubmitted(), SHA256: item.SHA256,
	}
}

// orNull returns nil for the zero value, which means unknown.
func orNull[T comparable](v T) *T {
	var unknown T
	if v == unknown {
		return nil
	}
	return &v
}
