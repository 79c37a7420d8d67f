package agent

import (
	"cmp"
	"maps"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// What templates can use. The system and instance prompts and the start-up
// command have the session's variables; the observation and the format error
// have those and their own.
var (
	sessionVariables = []string{
		"task", "instance",
		"system", "node", "release", "version", "machine", // uname of the sandbox
		"cwd", "network",
		"tools", "skills", // lists of what the commands of this run can ask for, each with name, usage and about
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

// The prompt for a summary and the tail of a prompt have the session's variables
// and their own.
var (
	summaryVariables = append([]string{"parts", "max_chars"}, sessionVariables...)
	tailVariables    = append([]string{"goals", "errors"}, sessionVariables...)
)

func summaryValues(parts []map[string]any, most int) map[string]any {
	return map[string]any{"parts": parts, "max_chars": most}
}

func summaryPart(number, first, last int, text string) map[string]any {
	return map[string]any{"number": number, "first_step": first, "last_step": last, "text": text}
}

// tailValues has no goals: who keeps them puts them in.
func tailValues(errors []map[string]any) map[string]any {
	return map[string]any{"errors": errors, "goals": []map[string]any{}}
}

var (
	sampleParts = []map[string]any{
		summaryValues([]map[string]any{summaryPart(1, 1, 9, "text")}, DefaultSummaryMaxChars),
		summaryValues([]map[string]any{summaryPart(1, 1, 9, "text"), summaryPart(2, 10, 10, "text")}, DefaultSummaryMaxChars),
	}
	sampleTails = []map[string]any{
		tailValues([]map[string]any{}),
		merged(tailValues([]map[string]any{{"step": 3, "command": "make", "returncode": 2, "line": "Error 1"}}),
			map[string]any{"goals": []map[string]any{{"id": 1, "text": "goal", "state": "open"}}}),
	}
)

// variables are those of a session at this moment.
func (c Config) variables(t Task, info env.Info, can Abilities, steps int, cost, elapsed float64) map[string]any {
	return merged(can.variables(), map[string]any{
		"task": t.Text, "instance": orEmpty(t.Instance),
		"system": info.System, "node": info.Node, "release": info.Release, "version": info.Version, "machine": info.Machine,
		"cwd": info.Dir, "network": info.Network,
		"protocol": c.protocolName(), "action_tag": cmp.Or(c.ActionTag, protocol.DefaultTag), "tool_calls": cmp.Or(c.ToolCalls, CallsAll),
		"image_marker": c.imageMarker(),
		"step_limit":   c.StepLimit, "cost_limit": c.CostLimit, "wall_time_limit_seconds": c.WallTimeLimit,
		"timeout_seconds": c.Timeout.Seconds(),
		"n_model_calls":   steps, "model_cost": cost, "elapsed_seconds": elapsed,
	})
}

// variables are those that tell of abilities.
func (can Abilities) variables() map[string]any {
	return map[string]any{"tools": described(can.Tools), "skills": described(can.Skills)}
}

func observed(v view, r env.Result, exception string) map[string]any {
	return map[string]any{
		"output": v.text, "output_head": v.head, "output_tail": v.tail,
		"elided": v.isElided, "elided_chars": v.elided, "output_chars": r.Chars,
		"returncode": r.ExitCode, "exception": exception, "timed_out": r.TimedOut,
		"background": processes(r.Background), "duration_seconds": r.Duration.Seconds(),
	}
}

func formatErrorValues(message string, actions int, finish string, truncated bool) map[string]any {
	return map[string]any{"error": message, "n_actions": actions, "finish_reason": finish, "truncated": truncated}
}

// sampleVariables are values to check templates with before anything runs.
// Columns differ from row to row, so every column a template asks for is
// there; Check has the real ones.
func sampleVariables(c Config) map[string]any {
	vars := c.variables(Task{Text: "task"}, env.Info{System: "Linux", Machine: "x86_64", Dir: "/"}, Abilities{}, 0, 0, 0)
	columns := map[string]any{}
	for _, text := range []string{
		c.SystemTemplate, c.InstanceTemplate, c.ObservationTemplate, c.FormatErrorTemplate, c.StartupCommand,
		c.SummaryTemplate, c.TailTemplate,
	} {
		for _, m := range columnRef.FindAllStringSubmatch(text, -1) {
			columns[m[1]] = ""
		}
	}
	vars["instance"] = columns
	return vars
}

var columnRef = lazyregexp.New(`\.instance\.([\pL_][\pL\pN_]*)`)

var (
	sampleAbilities = []Abilities{{}, {
		Tools:  []Ability{{"note", "note add TEXT\nnotes", "keeps a note"}, {"skill", "skill NAME", "prints a skill"}},
		Skills: []Ability{{"reproduce", "skill reproduce", "write a minimal reproduction"}},
	}}
	sampleObservations = []map[string]any{
		observed(view{text: "output\n"}, env.Result{}, ""),
		observed(view{text: "h\nt", head: "h", tail: "t", isElided: true}, env.Result{ExitCode: -1, TimedOut: true}, "killed"),
	}
	sampleFormatErrors = []map[string]any{
		formatErrorValues("no command", 0, "stop", false),
		formatErrorValues("two commands", 2, "length", true),
	}
)

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func merged(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}
