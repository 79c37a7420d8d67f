package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
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
	// group is the command, and "." also matches newlines. Empty means a
	// fenced block marked bash.
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
	// SubmissionPatch and there is a repository, else nothing. PlainReplyAsk
	// lets the user answer it, if there is a user. A reply that is
	// empty, cut off or has an invalid command is always a format error.
	PlainReply string `yaml:"plain_reply" json:"plain_reply,omitempty"`

	// StepLimit bounds model calls, without those for summaries, CostLimit US
	// dollars, and WallTimeLimit seconds. Steps and cost include those of
	// subagents. Time spent waiting for the model's provider or the user does
	// not count. Zero means no limit.
	StepLimit     int     `yaml:"step_limit" json:"step_limit"`
	CostLimit     float64 `yaml:"cost_limit" json:"cost_limit"`
	WallTimeLimit float64 `yaml:"wall_time_limit_seconds" json:"wall_time_limit_seconds" check:"max=315360000" hint:"0 means no limit"`
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
	Mode        string `yaml:"mode" json:"-" check:"oneof=|confirm|yolo|human"`
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
	PlainReplyAsk   = "ask"
)

// Values of Config.Submission.
const (
	SubmissionPatch = "patch"
	SubmissionText  = "text"
)

// Values of Config.ToolCalls.
const (
	ToolCallsAll = "all"
	ToolCallsOne = "one"
)

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
	vars := a.templates.sampleVariables(a.cfg)
	vars["task"] = t.Text
	vars["instance"] = orEmpty(t.Instance)
	// Checked first because its error says more clearly which column is
	// missing.
	if err := a.templates.checkColumns(t.Instance); err != nil {
		return err
	}
	return cmp.Or(a.templates.check(vars, []map[string]any{nil})...)
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
	if !slices.Contains([]string{"", PlainReplyError, PlainReplyEnd, PlainReplyAsk}, c.PlainReply) {
		return fieldErrorf("plain_reply", "%.60q is not one of %s, %s, %s", c.PlainReply, PlainReplyError, PlainReplyEnd, PlainReplyAsk)
	}
	return cmp.Or(c.validatePatch(), c.validateImages(), c.validateCompaction(), c.Observation.validate())
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
