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
	OpenAI           = "openai"            // messages and tools, for TRL and verl
	ShareGPT         = "sharegpt"          // conversations, for LLaMA-Factory
	Axolotl          = "axolotl"           // messages with a flag: whether to train on them
	PromptCompletion = "prompt-completion" // one row per step, with its prompt and reply
	KTO              = "kto"               // prompt-completion with a label: whether the attempt is resolved
	DPO              = "dpo"               // two replies to the same prompt; the chosen one is from a resolved attempt
	Tokens           = "tokens"            // the tokens of each reply, for reinforcement learning
	ATIF             = "atif"              // one file per attempt
	Traj             = "traj"              // one file per attempt, for tools of mini-swe-agent
	Preds            = "preds"             // one preds.json for all attempts
	Table            = "table"             // instances, attempts and steps as CSV or parquet files
)

// Formats returns the names of all formats. Formats for trainers come first.
func Formats() []string { return formatNames(func(format) bool { return true }) }

func formatNames(include func(format) bool) []string {
	var names []string
	for _, f := range formats() {
		if include(f) {
			names = append(names, f.name)
		}
	}
	return names
}

// Reasoning determines where rows contain the reasoning of the model.
type Reasoning string

// The values of Reasoning.
const (
	ReasoningKeep   Reasoning = "keep"   // in reasoning_content, or in the content if the format has no such field
	ReasoningDrop   Reasoning = "drop"   // nowhere
	ReasoningInline Reasoning = "inline" // before the content, between <think> and </think>
)

// FormatErrors determines how rows contain rejected replies, which have a format error or
// were rejected by the user, and the messages that reject them. For rejected replies with
// a command that ran, see markReply.
type FormatErrors string

// The values of FormatErrors.
const (
	FormatErrorsDrop FormatErrors = "drop" // omit both
	FormatErrorsKeep FormatErrors = "keep" // include both, and train on the reply
	FormatErrorsMask FormatErrors = "mask" // include both, but do not train on the reply
)

// ToolArguments determines how rows contain the arguments of tool calls.
type ToolArguments string

// The values of ToolArguments.
const (
	ArgumentsObject ToolArguments = "object" // as a JSON object, which chat templates can print
	ArgumentsText   ToolArguments = "text"   // as a string of JSON, as in OpenAI's API
)

// Completion determines which part of an attempt is a completion.
type Completion string

// The values of Completion.
const (
	CompletionReply Completion = "reply" // one reply
	CompletionRest  Completion = "rest"  // everything after the prompt, including observations
)

// Options select the format. Format is required. The default of Reasoning, FormatErrors and
// Completion is the first constant of the type, but FormatErrorsKeep for Tokens; that of
// ToolArguments depends on the format.
type Options struct {
	Format        string        `json:"format"`
	Parquet       bool          `json:"parquet,omitempty"`
	Reasoning     Reasoning     `json:"reasoning"`
	FormatErrors  FormatErrors  `json:"format_errors"`
	ToolArguments ToolArguments `json:"tool_arguments"`
	Completion    Completion    `json:"completion,omitempty"` // for KTO and DPO
	// Segments makes one row of the replies whose prompts continue the tokens before, for Tokens.
	Segments bool `json:"segments,omitempty"`
	// ShardRows bounds the rows of a file, ShardBytes their size in bytes of JSON; 0
	// means no limit. A single row may exceed ShardBytes.
	ShardRows  int   `json:"shard_rows,omitempty"`
	ShardBytes int64 `json:"shard_bytes,omitempty"`
}

// ErrOptions is what errors about invalid options are, besides their own text.
var ErrOptions = errors.New("invalid options")

// optionsError is an ErrOptions whose text names the flag.
type optionsError struct{ error }

// Is implements the interface of errors.Is.
func (optionsError) Is(target error) bool { return target == ErrOptions }

// Validate checks the options and returns them with defaults. Errors contain the names of
// command line flags.
func (o Options) Validate() (Options, error) {
	f, ok := formatByName(o.Format)
	if !ok {
		return o, optionError("--format: %.60q is not one of %s", o.Format, strings.Join(Formats(), ", "))
	}
	o.ToolArguments = cmp.Or(o.ToolArguments, f.toolArguments)
	if f.name == Tokens { // a rollout has the replies that the model must learn to avoid
		o.FormatErrors = cmp.Or(o.FormatErrors, FormatErrorsKeep)
	}
	err := errors.Join(
		checkValue("--reasoning", &o.Reasoning, ReasoningKeep, ReasoningDrop, ReasoningInline),
		checkValue("--format-errors", &o.FormatErrors, FormatErrorsDrop, FormatErrorsKeep, FormatErrorsMask),
		checkValue("--tool-arguments", &o.ToolArguments, ArgumentsObject, ArgumentsText),
		checkValue("--completion", &o.Completion, CompletionReply, CompletionRest),
	)
	if !f.needsVerdict {
		o.Completion = ""
	}
	switch {
	case err != nil:
		return o, err
	case o.FormatErrors == FormatErrorsMask && !f.canMask:
		return o, optionError("--format-errors mask: %s cannot exclude replies from training; use drop, or one of %s",
			f.name, strings.Join(formatNames(func(f format) bool { return f.canMask }), ", "))
	case o.Parquet && f.rows == nil && f.name != Table:
		return o, optionError("--parquet: not available for %s", f.name)
	case o.Segments && f.name != Tokens:
		return o, optionError("--segments: only the format tokens has segments; leave the flag out")
	case o.ShardRows < 0 || o.ShardBytes < 0:
		return o, optionError("--shard-rows and --shard-size must be at least 1")
	case (o.ShardRows > 0 || o.ShardBytes > 0) && f.rows == nil:
		return o, optionError("--shard-rows and --shard-size: not available for %s", f.name)
	case f.toolArguments == ArgumentsText && o.ToolArguments == ArgumentsObject:
		return o, optionError("--tool-arguments object: not available for %s, which requires text", f.name)
	}
	return o, nil
}

func optionError(format string, args ...any) error {
	return optionsError{fmt.Errorf(format, args...)}
}

// checkValue sets an empty value to its default, known[0], and checks that known contains
// the value.
func checkValue[T ~string](flag string, value *T, known ...T) error {
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
	return optionError("%s: %.60q is not one of %s", flag, string(*value), strings.Join(names, ", "))
}
