package agent

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
)

// Config configures prompts, limits and submission. The YAML keys are those of
// mini-swe-agent where it has the same setting.
type Config struct {
	// Class selects the agent of a batch: "" is this agent. Callers read it; the agent does
	// not.
	Class string `yaml:"agent_class" json:"agent_class,omitempty"`
	// The prompts are text/template texts with sprig's hermetic functions, unless
	// TemplateEngine says otherwise. See variables.go for the variables of each.
	SystemTemplate      string `yaml:"system_template" json:"system_template"`
	InstanceTemplate    string `yaml:"instance_template" json:"instance_template"`
	ObservationTemplate string `yaml:"observation_template" json:"observation_template"`
	FormatErrorTemplate string `yaml:"format_error_template" json:"format_error_template"`
	// TemplateEngine has the engines of the templates, by their keys: EngineGo (the
	// default) or EngineJinja, whose variables are those of mini-swe-agent.
	TemplateEngine map[string]string `yaml:"template_engine" json:"template_engine,omitempty"`
	// JinjaSettings are further variables of templates in Jinja.
	JinjaSettings map[string]any `yaml:"-" json:"-"`
	// Protocol is how the model writes its commands: "text" (a fenced block,
	// the default), "xml" (a tag) or "tools" (native tool calls).
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
	// ActionRegex matches the command in a reply of the text protocol. Its only
	// group is the command, and "." also matches newlines. Empty means
	// protocol.DefaultRegex.
	ActionRegex string `yaml:"action_regex" json:"action_regex"`
	// ActionTag is the tag of the xml protocol; empty means
	// protocol.DefaultTag.
	ActionTag string `yaml:"action_tag" json:"action_tag,omitempty"`
	// ToolCalls is how many calls a reply of the tools protocol may have:
	// ToolCallsAll (the default) runs them in order, ToolCallsOne rejects a reply with
	// several.
	ToolCalls string `yaml:"tool_calls" json:"tool_calls,omitempty"`

	// PlainReply is how a reply with text but no command is handled:
	// PlainReplyError (the default) treats it as a format error, PlainReplyEnd
	// ends the attempt and submits the working diff if Submission is
	// SubmissionPatch and there is a repository, else nothing. A reply that is
	// empty, cut off or has an invalid command is always a format error.
	PlainReply string `yaml:"plain_reply" json:"plain_reply,omitempty"`

	// StepLimit bounds model calls, without those for summaries, CostLimit US
	// dollars, and WallTimeLimit seconds. Steps and cost include those of
	// subagents. Time spent waiting for the model's provider or the user does
	// not count. Zero means no limit.
	StepLimit     int     `yaml:"step_limit" json:"step_limit"`
	CostLimit     float64 `yaml:"cost_limit" json:"cost_limit"`
	WallTimeLimit float64 `yaml:"wall_time_limit_seconds" json:"wall_time_limit_seconds"`
	// MaxFormatErrors consecutive format errors end the attempt; zero means no
	// limit.
	MaxFormatErrors int `yaml:"max_consecutive_format_errors" json:"max_consecutive_format_errors"`

	Observation ObservationConfig `yaml:"observation" json:"observation"`
	// JournalOutput bounds the output that the journal keeps of each command,
	// in bytes: half from the start and half from the end. Zero keeps what the
	// sandbox keeps: enough for an observation, and a submission in full.
	JournalOutput int          `yaml:"journal_output" json:"journal_output,omitempty"`
	Images        ImagesConfig `yaml:"images" json:"images,omitzero"`

	// Autosubmit submits the working diff when a limit ends the attempt.
	Autosubmit bool `yaml:"autosubmit" json:"autosubmit"`
	// Submission is how the text after the submit line is used. SubmissionPatch
	// checks that the text applies to the files at the start. If not, the model
	// is told once. A text that is empty or still does not apply is replaced by
	// the working diff. SubmissionText (the default) takes the text unchanged.
	Submission string `yaml:"submission" json:"submission,omitempty"`
	// SkipWorktree does not open the repository: no diff is taken.
	SkipWorktree bool `yaml:"-" json:"-"`
	// PatchExclude are .gitignore patterns of new files to leave out of the
	// working diff.
	PatchExclude []string `yaml:"patch_exclude" json:"patch_exclude,omitempty"`
	// MaxPatch bounds a patch, in bytes; zero means worktree.DefaultMaxPatch.
	MaxPatch int `yaml:"max_patch_bytes" json:"max_patch_bytes,omitempty"`
	// Scrub removes everything outside the history of HEAD from the repository
	// before the agent starts. It applies only where the sandbox owns its files
	// (env.Info.Disposable).
	Scrub bool `yaml:"scrub" json:"scrub,omitempty"`
	// Mode and ConfirmExit configure an interactive session. Its front end
	// reads them; the agent does not. Mode is "confirm" (the default), "yolo"
	// or "human". ConfirmExit asks for a new task after a submission. ProjectDocs
	// adds the AGENTS.md files of the user and the project to the prompt.
	Mode        string `yaml:"mode" json:"-"`
	ConfirmExit bool   `yaml:"confirm_exit" json:"-"`
	ProjectDocs bool   `yaml:"project_docs" json:"-"`
	// StartupCommand is run in the sandbox before the agent starts. It is a
	// template over the instance's columns. If it fails, the attempt fails. Its
	// configuration key is run.env_startup_command.
	StartupCommand string `yaml:"-" json:"-"`
	// Compaction is how a conversation is shortened when its next prompt would
	// exceed CompactionTokens. CompactionOff (the default) never shortens it.
	// CompactionElide replaces old outputs by a line, then, if necessary, the
	// oldest steps. CompactionSummarize lets a model summarize old steps. The
	// journal keeps all messages. See docs/compaction.md.
	Compaction string `yaml:"compaction" json:"compaction,omitempty"`
	// CompactionTokens is the limit; 0 means DefaultCompactionTokens.
	CompactionTokens int64 `yaml:"compaction_tokens" json:"compaction_tokens,omitempty"`
	// CompactionKeep is how many of the last messages stay unchanged. If the
	// first of them answers a reply, the reply and all its results stay too. 0
	// means DefaultCompactionKeep.
	CompactionKeep int `yaml:"compaction_keep" json:"compaction_keep,omitempty"`
	// SummaryTemplate is the prompt for summaries. Its variables are the
	// session's, .parts (each with .number, .first_step, .last_step and .text)
	// and .max_chars.
	SummaryTemplate string `yaml:"summary_template" json:"summary_template,omitempty"`
	// SummaryMaxChars bounds each summary, in characters; 0 means
	// DefaultSummaryMaxChars.
	SummaryMaxChars int `yaml:"summary_max_chars" json:"summary_max_chars,omitempty"`
	// TailTemplate is appended to each prompt and never becomes history. Its
	// variables are the session's, .errors (the last failed commands, each with
	// .step, .command, .returncode and .line) and those of a TailProvider, such
	// as .goals. An empty template or a blank rendering appends nothing.
	TailTemplate string `yaml:"tail_template" json:"tail_template,omitempty"`
	// Window is the model's context window; zero means no check before the
	// call.
	Window ContextWindow `yaml:"-" json:"-"`
	// Timeout bounds each command; zero means the environment's default.
	Timeout time.Duration `yaml:"-" json:"-"`
}

// Values of Config.PlainReply.
const (
	PlainReplyError = "error"
	PlainReplyEnd   = "end"
)

// Values of Config.Submission.
const (
	SubmissionPatch = "patch"
	SubmissionText  = "text"
)

// ObservationConfig bounds how much of a command's output the model is shown.
type ObservationConfig struct {
	// MaxChars is the length, in characters, from which an output is shortened
	// to its first HeadChars and last TailChars.
	MaxChars  int `yaml:"max_chars" json:"max_chars"`
	HeadChars int `yaml:"head_chars" json:"head_chars"`
	TailChars int `yaml:"tail_chars" json:"tail_chars"`
	// Keep selects what is shown of a long output. KeepEnds (the default) shows
	// head and tail as above. KeepTail shows only the last lines, at most
	// MaxLines lines and MaxBytes bytes. If the last line alone is longer than
	// MaxBytes, it shows that line's last bytes. A zero MaxLines or MaxBytes
	// means DefaultMaxLines or DefaultMaxBytes.
	Keep     string `yaml:"keep" json:"keep,omitempty"`
	MaxLines int    `yaml:"max_lines" json:"max_lines,omitempty"`
	MaxBytes int    `yaml:"max_bytes" json:"max_bytes,omitempty"`
}

// Values of ObservationConfig.Keep, and the default limits of KeepTail.
const (
	KeepEnds        = "ends"
	KeepTail        = "tail"
	DefaultMaxLines = 2000
	DefaultMaxBytes = 50 << 10
)

// DefaultObservation applies where an ObservationConfig has no character limits.
var DefaultObservation = ObservationConfig{MaxChars: 10000, HeadChars: 5000, TailChars: 5000}

// FieldError is an invalid field of the configuration.
type FieldError struct {
	Field string // the YAML key, within "agent"
	// Line is the line in the text of a template, from 1; 0 if there is none.
	Line int
	Err  error
}

func fieldErrorf(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

func (e *FieldError) Error() string { return fmt.Sprintf("agent.%s: %v", e.Field, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

// New validates the configuration. It parses the templates and renders them
// with sample values, so that a mistake is found before a model is called. The
// error is a *FieldError or several joined.
func New(cfg Config) (*Agent, error) {
	cfg.Observation = cfg.Observation.orDefault()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p, err := cfg.ParseProtocol()
	if err != nil {
		return nil, err
	}
	templates, err := parseTemplates(cfg, p)
	if err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, templates: templates, protocol: p}, nil
}

// CheckTask renders the prompts of a task without a sandbox or a model, to find
// columns that the templates use and the instance lacks. The error is a
// *FieldError.
func (a *Agent) CheckTask(t Task) error {
	vars := sampleVariables(a.cfg)
	vars["task"] = t.Text
	vars["instance"] = orEmpty(t.Instance)
	// Checked first because its error says more clearly which column is
	// missing.
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
			return fieldErrorf(n.field, "%v is negative; 0 means no limit", n.value)
		}
	}
	if c.JournalOutput < 0 || c.JournalOutput > env.SubmissionLimit {
		return fieldErrorf("journal_output",
			"%d is not a number of bytes up to %d; 0 means all that the sandbox keeps",
			c.JournalOutput, env.SubmissionLimit)
	}
	if c.PlainReply != "" && c.PlainReply != PlainReplyError && c.PlainReply != PlainReplyEnd {
		return fieldErrorf("plain_reply", "%.60q is neither %q nor %q", c.PlainReply, PlainReplyError, PlainReplyEnd)
	}
	if err := firstError([]error{c.validatePatch(), c.validateImages(), c.validateCompaction()}); err != nil {
		return err
	}
	return c.Observation.validate()
}

func (o ObservationConfig) validate() error {
	if o.MaxChars < 1 || o.HeadChars < 0 || o.TailChars < 0 || o.HeadChars+o.TailChars > o.MaxChars {
		return fieldErrorf("observation", "max_chars %d, head_chars %d, tail_chars %d: head and tail together must not exceed max_chars, which must be positive",
			o.MaxChars, o.HeadChars, o.TailChars)
	}
	if o.MaxChars > maxObservation {
		return fieldErrorf("observation", "max_chars %d is above %d", o.MaxChars, maxObservation)
	}
	switch {
	case o.Keep != "" && o.Keep != KeepEnds && o.Keep != KeepTail:
		return fieldErrorf("observation", "keep %.60q is neither %q nor %q", o.Keep, KeepEnds, KeepTail)
	case o.Keep != KeepTail && (o.MaxLines != 0 || o.MaxBytes != 0):
		return fieldErrorf("observation", "max_lines and max_bytes are for keep: %s", KeepTail)
	case o.MaxLines < 0 || o.MaxBytes < 0 || o.MaxBytes > maxObservation:
		return fieldErrorf("observation",
			"max_lines %d, max_bytes %d: neither may be negative, and max_bytes is at most %d",
			o.MaxLines, o.MaxBytes, maxObservation)
	}
	return nil
}

func (c Config) validatePatch() error {
	if c.Submission != "" && c.Submission != SubmissionPatch && c.Submission != SubmissionText {
		return fieldErrorf("submission", "%.60q is neither %q nor %q", c.Submission, SubmissionPatch, SubmissionText)
	}
	if c.MaxPatch < 0 || c.MaxPatch > env.SubmissionLimit {
		return fieldErrorf("max_patch_bytes",
			"%d is not a number of bytes up to %d; 0 means %d",
			c.MaxPatch, env.SubmissionLimit, worktree.DefaultMaxPatch)
	}
	for _, pattern := range c.PatchExclude {
		if pattern == "" || len(pattern) > maxPattern || strings.ContainsAny(pattern, "\n\r\x00") {
			return fieldErrorf("patch_exclude", "%.60q is not a .gitignore pattern", pattern)
		}
	}
	if len(c.PatchExclude) > maxPatterns {
		return fieldErrorf("patch_exclude", "more than %d patterns", maxPatterns)
	}
	return nil
}

// maxPattern bounds the length of a PatchExclude pattern in bytes, maxPatterns
// the number of patterns.
const maxPattern, maxPatterns = 1000, 1000

// maxObservation bounds MaxChars and MaxBytes, so that the sandbox can keep
// head and tail of an observation at four bytes per character.
const maxObservation = 1_000_000

// limitReached reports whether the totals have reached a limit.
func limitReached(l Limits, steps int, cost model.Cost) bool {
	return l.Steps > 0 && steps >= l.Steps || l.Cost > 0 && float64(cost) >= l.Cost
}
