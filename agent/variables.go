package agent

import (
	"cmp"
	"maps"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/jinja"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Template variables. The system and instance prompts and the start-up command
// have the session's variables. The observation and format error templates have
// these and their own.
var (
	sessionVariables = []string{
		"task", "instance",
		"system", "node", "release", "version", "machine", // uname of the sandbox
		"cwd", "network",
		"tools", "skills", // lists, each item with name, usage and about
		"protocol", "action_tag", "tool_calls", "image_marker",
		"step_limit", "cost_limit", "wall_time_limit_seconds", "timeout_seconds",
		"n_model_calls", "model_cost", "elapsed_seconds",
	}
	observationVariables = append([]string{
		"output", "output_head", "output_tail", "elided", "elided_chars", "output_chars",
		"returncode", "exception", "timed_out", "background", "duration_seconds",
	}, sessionVariables...)
	formatErrorVariables = append([]string{
		"error", "n_actions", "finish_reason", "truncated",
	}, sessionVariables...)
)

// The summary prompt and the tail have the session's variables and their own.
var (
	summaryVariables = append([]string{"parts", "max_chars"}, sessionVariables...)
	tailVariables    = append([]string{"goals", "errors"}, sessionVariables...)
)

func summaryValues(parts []map[string]any, maxChars int) map[string]any {
	return map[string]any{"parts": parts, "max_chars": maxChars}
}

func summaryPart(number, first, last int, text string) map[string]any {
	return map[string]any{"number": number, "first_step": first, "last_step": last, "text": text}
}

// tailValues returns the tail's own variables. A TailProvider adds the goals.
func tailValues(errors []map[string]any) map[string]any {
	return map[string]any{"errors": errors, "goals": []map[string]any{}}
}

var (
	sampleSummaries = []map[string]any{
		summaryValues([]map[string]any{summaryPart(1, 1, 9, "text")}, DefaultSummaryMaxChars),
		summaryValues([]map[string]any{summaryPart(1, 1, 9, "text"), summaryPart(2, 10, 10, "text")}, DefaultSummaryMaxChars),
	}
	sampleTails = []map[string]any{
		tailValues([]map[string]any{}),
		merge(tailValues([]map[string]any{{"step": 3, "command": "make", "returncode": 2, "line": "Error 1"}}),
			map[string]any{"goals": []map[string]any{{"id": 1, "text": "goal", "state": "open"}}}),
	}
)

// variables returns the current variables of a session.
func (c Config) variables(t Task, info env.Info, caps Capabilities, steps int, cost, elapsed float64) map[string]any {
	return merge(caps.variables(), map[string]any{
		"task": t.Text, "instance": orEmpty(t.Instance),
		"system": info.System, "node": info.Node, "release": info.Release, "version": info.Version, "machine": info.Machine,
		"cwd": info.Dir, "network": info.Network,
		"protocol": c.protocolName(), "action_tag": cmp.Or(c.ActionTag, protocol.DefaultTag), "tool_calls": cmp.Or(c.ToolCalls, ToolCallsAll),
		"image_marker": c.imageMarker(),
		"step_limit":   c.StepLimit, "cost_limit": c.CostLimit, "wall_time_limit_seconds": c.WallTimeLimit,
		"timeout_seconds": c.Timeout.Seconds(),
		"n_model_calls":   steps, "model_cost": cost, "elapsed_seconds": elapsed,
		settingsVariable: c.JinjaSettings,
	})
}

// variables returns the variables that describe the capabilities.
func (caps Capabilities) variables() map[string]any {
	return map[string]any{"tools": capabilityValues(caps.Tools), "skills": capabilityValues(caps.Skills)}
}

func observationValues(v shownOutput, r env.Result, exception string) map[string]any {
	return map[string]any{
		"output": v.text, "output_head": v.head, "output_tail": v.tail,
		"elided": v.isElided, "elided_chars": v.elidedChars, "output_chars": r.Chars,
		"returncode": r.ExitCode, "exception": exception, "timed_out": r.TimedOut,
		"background": processList(r.Background), "duration_seconds": r.Duration.Seconds(),
		outputVariable: r,
	}
}

func formatErrorValues(parsed protocol.ParsedReply, finish string) map[string]any {
	return map[string]any{
		"error": parsed.Problem, "n_actions": len(parsed.Actions), "finish_reason": finish, "truncated": parsed.Truncated,
		commandsVariable: parsed.Commands(),
	}
}

// sampleVariables returns values to check templates with. The instance has
// every column that a template uses, because columns differ between rows;
// CheckTask uses the real columns.
func sampleVariables(c Config) map[string]any {
	vars := c.variables(Task{Text: "task"}, env.Info{System: "Linux", Machine: "x86_64", Dir: "/"}, Capabilities{}, 0, 0, 0)
	columns := map[string]any{}
	for _, text := range []string{
		c.SystemTemplate, c.InstanceTemplate, c.ObservationTemplate, c.FormatErrorTemplate, c.StartupCommand,
		c.SummaryTemplate, c.TailTemplate,
	} {
		for _, m := range anyColumnRef.FindAllStringSubmatch(text, -1) {
			columns[m[1]] = ""
		}
	}
	if c.TemplateEngine["env_startup_command"] == EngineJinja { // there columns have no prefix
		if t, err := jinja.Parse(c.StartupCommand); err == nil {
			for name := range t.Names() {
				columns[name] = ""
			}
		}
	}
	vars["instance"] = columns
	return vars
}

var (
	columnRef    = lazyregexp.New(`\.instance\.([\pL_][\pL\pN_]*)`)
	anyColumnRef = lazyregexp.New(`\binstance\.([\pL_][\pL\pN_]*)`) // also in Jinja
)

var (
	sampleCapabilities = []Capabilities{{}, {
		Tools:  []Capability{{"note", "note add TEXT\nnotes", "keeps a note"}, {"skill", "skill NAME", "prints a skill"}},
		Skills: []Capability{{"reproduce", "skill reproduce", "write a minimal reproduction"}},
	}}
	sampleObservations = []map[string]any{
		observationValues(shownOutput{text: "output\n"}, env.Result{}, ""),
		observationValues(shownOutput{text: "h\nt", head: "h", tail: "t", isElided: true}, env.Result{ExitCode: -1, TimedOut: true}, "killed"),
	}
	sampleFormatErrors = []map[string]any{
		formatErrorValues(protocol.ParsedReply{Problem: "no command"}, "stop"),
		formatErrorValues(protocol.ParsedReply{Problem: "two commands", Actions: make([]protocol.Action, 2), Truncated: true}, "length"),
	}
)

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func merge(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}
