package agent

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
)

// Config is how an agent talks and when it stops. The yaml names are those
// mini-swe-agent's users know.
type Config struct {
	// The prompts, as text/template with sprig's hermetic functions; see
	// Variables for what they can use.
	SystemTemplate      string `yaml:"system_template" json:"system_template"`
	InstanceTemplate    string `yaml:"instance_template" json:"instance_template"`
	ObservationTemplate string `yaml:"observation_template" json:"observation_template"`
	FormatErrorTemplate string `yaml:"format_error_template" json:"format_error_template"`
	// Protocol is how the model writes its commands: "text" (a fenced block, the
	// default), "xml" (a tag) or "tools" (calls of a native tool).
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
	// ActionRegex finds commands in a reply of the protocol text; its only group
	// is the command. "." matches line ends too. Empty means
	// protocol.DefaultRegex.
	ActionRegex string `yaml:"action_regex" json:"action_regex"`
	// ActionTag is the tag of the protocol xml; empty means protocol.DefaultTag.
	ActionTag string `yaml:"action_tag" json:"action_tag,omitempty"`
	// ToolCalls says how many calls a reply of the protocol tools may have:
	// "all" (the default) runs them in their order, "one" refuses several.
	ToolCalls string `yaml:"tool_calls" json:"tool_calls,omitempty"`

	// PlainReply says what becomes of a reply that speaks and asks for no
	// command: PlainError, or empty, makes it a format error; PlainEnd ends the
	// attempt, as handing in nothing does. Replies that say nothing, that were
	// cut off or ask for something wrong are format errors in any case.
	PlainReply string `yaml:"plain_reply" json:"plain_reply,omitempty"`

	// StepLimit bounds model calls, CostLimit US dollars, WallTimeLimit
	// seconds of an attempt, those not counted that it waits for the provider
	// of its model. Zero means no limit.
	StepLimit     int     `yaml:"step_limit" json:"step_limit"`
	CostLimit     float64 `yaml:"cost_limit" json:"cost_limit"`
	WallTimeLimit float64 `yaml:"wall_time_limit_seconds" json:"wall_time_limit_seconds"`
	// MaxFormatErrors in a row end the attempt; zero means no limit.
	MaxFormatErrors int `yaml:"max_consecutive_format_errors" json:"max_consecutive_format_errors"`

	Observation Observation `yaml:"observation" json:"observation"`
	// JournalOutput bounds what records keep of a command's output, in bytes: its
	// beginning and its end, and how much there was. Zero keeps all that the
	// sandbox kept, which is what an observation needs, and a submission whole.
	JournalOutput int    `yaml:"journal_output" json:"journal_output,omitempty"`
	Images        Images `yaml:"images" json:"images,omitzero"`

	// Autosubmit turns the working diff into the submission when a limit ends
	// the attempt.
	Autosubmit bool `yaml:"autosubmit" json:"autosubmit"`
	// Submission says what the text after the submit line is: SubmissionPatch
	// holds it against the files of the start and, where it is empty or does not apply,
	// takes the working diff; SubmissionText, or empty, keeps it as it is.
	Submission string `yaml:"submission" json:"submission,omitempty"`
	// NoTree says that the repository is somebody else's affair: it is not looked
	// at, and no diff is taken of it.
	NoTree bool `yaml:"-" json:"-"`
	// PatchExclude are patterns, as in a .gitignore file, of new files that
	// belong in no working diff.
	PatchExclude []string `yaml:"patch_exclude" json:"patch_exclude,omitempty"`
	// MaxPatch bounds a patch, in bytes; zero means worktree.DefaultMaxPatch.
	MaxPatch int `yaml:"max_patch_bytes" json:"max_patch_bytes,omitempty"`
	// Scrub removes from the repository, before the agent starts, everything
	// that is not in the history of HEAD. It is heeded where the files are the
	// sandbox's own (env.Info.Disposable), and nowhere else.
	Scrub bool `yaml:"scrub" json:"scrub,omitempty"`
	// Mode and ConfirmExit are about the person of an interactive session:
	// whoever puts the questions heeds them, the agent does not. Mode is
	// "confirm" (the default), "yolo" or "human"; ConfirmExit asks for a new task
	// when the work is handed in.
	Mode        string `yaml:"mode" json:"-"`
	ConfirmExit bool   `yaml:"confirm_exit" json:"-"`
	// StartupCommand is run in the sandbox before the agent starts; a
	// template over the instance's fields. Failing, it fails the attempt.
	// It is configured as run.env_startup_command.
	StartupCommand string `yaml:"-" json:"-"`
	// Compaction says what becomes of a conversation whose next prompt would have
	// more than CompactionTokens: CompactOff, or empty, leaves it as it is;
	// CompactElide puts a line in place of old outputs, and where that is not enough
	// of the oldest steps; CompactSummarize has steps summed up by a model. What is
	// taken out stays in the journal. See docs/compaction.md.
	Compaction string `yaml:"compaction" json:"compaction,omitempty"`
	// CompactionTokens is the limit; 0 means DefaultCompactionTokens.
	CompactionTokens int64 `yaml:"compaction_tokens" json:"compaction_tokens,omitempty"`
	// CompactionKeep is how many of the last messages stay as they are; one more
	// where a reply would be parted from its answers. 0 means DefaultCompactionKeep.
	CompactionKeep int `yaml:"compaction_keep" json:"compaction_keep,omitempty"`
	// SummaryTemplate is the prompt for summaries; its variables are the session's,
	// .parts (each with .number, .first_step, .last_step and .text) and .max_chars.
	SummaryTemplate string `yaml:"summary_template" json:"summary_template,omitempty"`
	// SummaryMaxChars bounds each summary; 0 means DefaultSummaryMaxChars.
	SummaryMaxChars int `yaml:"summary_max_chars" json:"summary_max_chars,omitempty"`
	// TailTemplate is put at the end of each prompt, and never becomes history:
	// its variables are the session's, .errors (the last commands that failed, each
	// with .step, .command, .returncode and .line) and what a Tailer has, as .goals.
	// Empty, or a rendering of nothing but white space, puts nothing there.
	TailTemplate string `yaml:"tail_template" json:"tail_template,omitempty"`
	// Estimate is about how many tokens messages have that nobody counted yet; nil
	// goes by their length.
	Estimate func([]model.Message) int64 `yaml:"-" json:"-"`
	// Context is asked before each call of the model; nil sends everything.
	Context ContextPolicy `yaml:"-" json:"-"`
	// Timeout bounds each command; zero leaves it to the environment.
	Timeout time.Duration `yaml:"-" json:"-"`
}

// The values of Config.PlainReply.
const (
	PlainError = "error"
	PlainEnd   = "end"
)

// The values of Config.Submission.
const (
	SubmissionPatch = "patch"
	SubmissionText  = "text"
)

// Observation bounds what the model is shown of a command's output, in
// characters.
type Observation struct {
	// MaxChars is where eliding begins: an output of so many characters or
	// more is shown as its first HeadChars and last TailChars.
	MaxChars  int `yaml:"max_chars" json:"max_chars"`
	HeadChars int `yaml:"head_chars" json:"head_chars"`
	TailChars int `yaml:"tail_chars" json:"tail_chars"`
	// Keep says what is shown of a long output: KeepEnds, or empty, its head and
	// tail as above; KeepTail its last lines alone, at most MaxLines of them with
	// at most MaxBytes bytes, which of a line that is longer are its last ones. Zero
	// means DefaultMaxLines and DefaultMaxBytes.
	Keep     string `yaml:"keep" json:"keep,omitempty"`
	MaxLines int    `yaml:"max_lines" json:"max_lines,omitempty"`
	MaxBytes int    `yaml:"max_bytes" json:"max_bytes,omitempty"`
}

// The values of Observation.Keep, and what KeepTail keeps unless told otherwise.
const (
	KeepEnds        = "ends"
	KeepTail        = "tail"
	DefaultMaxLines = 2000
	DefaultMaxBytes = 50 << 10
)

// DefaultObservation is used for an Observation without numbers of characters.
var DefaultObservation = Observation{MaxChars: 10000, HeadChars: 5000, TailChars: 5000}

// FieldError is a mistake in one field of the configuration.
type FieldError struct {
	Field string // the yaml name, within "agent"
	// Line is where in the text of a template, from 1; 0 where there is none.
	Line int
	Err  error
}

func (e *FieldError) Error() string { return fmt.Sprintf("agent.%s: %v", e.Field, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

// New checks the configuration: the templates are parsed and rendered with
// sample values, so that a mistake is found before a model is called. The
// error is a *FieldError.
func New(cfg Config) (*Agent, error) {
	cfg.Observation = cfg.Observation.orDefault()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p, err := cfg.protocol()
	if err != nil {
		return nil, err
	}
	templates, err := parseTemplates(cfg, p)
	if err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, templates: templates, protocol: p}, nil
}

// Check renders the prompts of a task as far as they can be without a sandbox
// and a model, to find what templates ask of an instance that has no such
// column. The error is a *FieldError.
func (a *Agent) Check(t Task) error {
	vars := sampleVariables(a.cfg)
	vars["task"] = t.Text
	vars["instance"] = orEmpty(t.Instance)
	// First, since rendering would say less clearly what is missing.
	if err := a.templates.checkColumns(t.Instance); err != nil {
		return err
	}
	return a.templates.check(vars)
}

func (c Config) validate() error {
	for _, n := range []struct {
		field string
		value float64
	}{
		{"step_limit", float64(c.StepLimit)},
		{"cost_limit", c.CostLimit},
		{"wall_time_limit_seconds", c.WallTimeLimit},
		{"max_consecutive_format_errors", float64(c.MaxFormatErrors)},
	} {
		if n.value < 0 {
			return &FieldError{Field: n.field, Err: fmt.Errorf("%v is negative; 0 means no limit", n.value)}
		}
	}
	if c.JournalOutput < 0 || c.JournalOutput > env.SubmissionLimit {
		return &FieldError{Field: "journal_output", Err: fmt.Errorf(
			"%d is not a number of bytes up to %d; 0 means all that the sandbox kept", c.JournalOutput, env.SubmissionLimit)}
	}
	if c.PlainReply != "" && c.PlainReply != PlainError && c.PlainReply != PlainEnd {
		return &FieldError{Field: "plain_reply", Err: fmt.Errorf("%.60q is neither %q nor %q", c.PlainReply, PlainError, PlainEnd)}
	}
	if err := firstOf([]error{c.validatePatch(), c.validateImages(), c.validateCompaction()}); err != nil {
		return err
	}
	return c.Observation.validate()
}

func (o Observation) validate() error {
	if o.MaxChars < 1 || o.HeadChars < 0 || o.TailChars < 0 || o.HeadChars+o.TailChars > o.MaxChars {
		return &FieldError{Field: "observation", Err: fmt.Errorf(
			"max_chars %d, head_chars %d, tail_chars %d: head and tail together must not exceed max_chars, which must be positive",
			o.MaxChars, o.HeadChars, o.TailChars)}
	}
	if o.MaxChars > maxObservation {
		return &FieldError{Field: "observation", Err: fmt.Errorf("max_chars %d is above %d", o.MaxChars, maxObservation)}
	}
	switch {
	case o.Keep != "" && o.Keep != KeepEnds && o.Keep != KeepTail:
		return &FieldError{Field: "observation", Err: fmt.Errorf("keep %.60q is neither %q nor %q", o.Keep, KeepEnds, KeepTail)}
	case o.Keep != KeepTail && (o.MaxLines != 0 || o.MaxBytes != 0):
		return &FieldError{Field: "observation", Err: fmt.Errorf("max_lines and max_bytes are for keep: %s", KeepTail)}
	case o.MaxLines < 0 || o.MaxBytes < 0 || o.MaxBytes > maxObservation:
		return &FieldError{Field: "observation", Err: fmt.Errorf(
			"max_lines %d, max_bytes %d: neither may be negative, and max_bytes is at most %d", o.MaxLines, o.MaxBytes, maxObservation)}
	}
	return nil
}

func (c Config) validatePatch() error {
	if c.Submission != "" && c.Submission != SubmissionPatch && c.Submission != SubmissionText {
		return &FieldError{Field: "submission", Err: fmt.Errorf("%.60q is neither %q nor %q", c.Submission, SubmissionPatch, SubmissionText)}
	}
	if c.MaxPatch < 0 || c.MaxPatch > env.SubmissionLimit {
		return &FieldError{Field: "max_patch_bytes", Err: fmt.Errorf(
			"%d is not a number of bytes up to %d; 0 means %d", c.MaxPatch, env.SubmissionLimit, worktree.DefaultMaxPatch)}
	}
	for _, pattern := range c.PatchExclude {
		if pattern == "" || len(pattern) > maxPattern || strings.ContainsAny(pattern, "\n\r\x00") {
			return &FieldError{Field: "patch_exclude", Err: fmt.Errorf("%.60q is no pattern as a line of .gitignore has it", pattern)}
		}
	}
	if len(c.PatchExclude) > maxPatterns {
		return &FieldError{Field: "patch_exclude", Err: fmt.Errorf("more than %d patterns", maxPatterns)}
	}
	return nil
}

// maxPattern is the length of one pattern in bytes.
const maxPattern, maxPatterns = 1000, 1000

// maxObservation keeps head and tail of an observation inside the bytes the
// sandbox keeps of an output, even at four bytes a character.
const maxObservation = 1_000_000

// limitReached compares totals with the limits.
func limitReached(l Limits, steps int, cost model.Cost) bool {
	return l.Steps > 0 && steps >= l.Steps || l.Cost > 0 && float64(cost) >= l.Cost
}
