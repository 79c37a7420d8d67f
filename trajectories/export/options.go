package export

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The formats.
const (
	OpenAI           = "openai"            // messages and tools, as TRL and verl read them
	ShareGPT         = "sharegpt"          // conversations, as LLaMA-Factory reads them
	Axolotl          = "axolotl"           // messages that say which of them are learned
	PromptCompletion = "prompt-completion" // a row a step: what was sent, and the reply
	KTO              = "kto"               // the same, with whether it led to a resolved instance
	DPO              = "dpo"               // two replies to one prompt, of which one led there
	ATIF             = "atif"              // a file an attempt
	Traj             = "traj"              // a file an attempt, as mini-swe-agent's tools read it
	Preds            = "preds"             // one preds.json
)

// Formats are the names of all formats, those for trainers first.
func Formats() []string { return formatsThat(func(format) bool { return true }) }

func formatsThat(fit func(format) bool) []string {
	var names []string
	for _, f := range formats() {
		if fit(f) {
			names = append(names, f.name)
		}
	}
	return names
}

// Reasoning says where a model's thinking goes.
type Reasoning string

// The places for thinking.
const (
	Keep   Reasoning = "keep"   // in reasoning_content; where a format has no field, inline
	Drop   Reasoning = "drop"   // nowhere
	Inline Reasoning = "inline" // before the content, between <think> and </think>
)

// Faults says what becomes of replies that nobody wants again: those with a
// format error and those that the user refused, and of the answers to them.
type Faults string

// What may become of faults.
const (
	DropFaults Faults = "drop" // reply and answer are left out
	KeepFaults Faults = "keep" // as any other reply: it is learned
	MaskFaults Faults = "mask" // they stand there, and are not learned
)

// Arguments says how those of a tool call are written.
type Arguments string

// The ways to write arguments.
const (
	Object Arguments = "object" // as JSON, which is what chat templates write out
	Text   Arguments = "text"   // as a string of JSON, which is OpenAI's own form
)

// Completion says how much of an attempt is one completion.
type Completion string

// The extents of a completion.
const (
	Reply Completion = "reply" // one reply: nothing is learned but what the model wrote
	Rest  Completion = "rest"  // all that follows the prompt, observations too
)

// Options say what is written, and how. The zero value of a field is its
// default, the first of the values above.
type Options struct {
	Format     string     `json:"format"`
	Parquet    bool       `json:"parquet,omitempty"`
	Reasoning  Reasoning  `json:"reasoning"`
	Faults     Faults     `json:"format_errors"`
	Arguments  Arguments  `json:"tool_arguments"`
	Completion Completion `json:"completion,omitempty"` // of KTO and DPO
	// ShardRows and ShardBytes bound a file; 0 is no bound.
	ShardRows  int   `json:"shard_rows,omitempty"`
	ShardBytes int64 `json:"shard_bytes,omitempty"`
}

// ErrOptions is wrapped by what is wrong with options.
var ErrOptions = errors.New("options")

// Checked fills in what was left out, or says what does not fit together. The
// words are those of the command line.
func (o Options) Checked() (Options, error) {
	f, ok := formatOf(o.Format)
	if !ok {
		return o, wrong("--format: %.60q is not one of %s", o.Format, strings.Join(Formats(), ", "))
	}
	o.Arguments = cmp.Or(o.Arguments, f.arguments)
	err := errors.Join(
		oneOf("--reasoning", &o.Reasoning, Keep, Drop, Inline),
		oneOf("--format-errors", &o.Faults, DropFaults, KeepFaults, MaskFaults),
		oneOf("--tool-arguments", &o.Arguments, Object, Text),
		oneOf("--completion", &o.Completion, Reply, Rest),
	)
	if !f.paired {
		o.Completion = ""
	}
	switch {
	case err != nil:
		return o, err
	case o.Faults == MaskFaults && !f.masks:
		return o, wrong("--format-errors mask: %s cannot say that a reply is not learned; take drop, or one of %s",
			f.name, strings.Join(formatsThat(func(f format) bool { return f.masks }), ", "))
	case o.Parquet && f.rows == nil:
		return o, wrong("--parquet: %s has files of its own", f.name)
	case o.ShardRows < 0 || o.ShardBytes < 0:
		return o, wrong("--shard-rows and --shard-size: at least 1")
	case (o.ShardRows > 0 || o.ShardBytes > 0) && f.rows == nil:
		return o, wrong("--shard-rows and --shard-size are for rows; %s has files of its own", f.name)
	case f.arguments == Text && o.Arguments == Object:
		return o, wrong("--tool-arguments object: %s takes them as text", f.name)
	}
	return o, nil
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrOptions, fmt.Errorf(format, args...))
}

func oneOf[T ~string](flag string, value *T, known ...T) error {
	if *value == "" {
		*value = known[0]
	}
	if slices.Contains(known, *value) {
		return nil
	}
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	return wrong("%s: %.60q is not one of %s", flag, string(*value), strings.Join(names, ", "))
}
