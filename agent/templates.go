package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Indices of templates.
const (
	systemPrompt = iota
	instancePrompt
	observationPrompt
	formatErrorPrompt
	summaryPrompt
	tailPrompt
	startupCommand
	templateCount
)

// templates are the prompts of an agent and its start-up command.
type templates [templateCount]promptTemplate

// promptTemplate is a template with the name of its configuration field.
type promptTemplate struct {
	field, text string
	// samples are values of the variables that only this template has, to check it with.
	samples []map[string]any
	renderer
}

// renderer is a template of one engine. Errors are *FieldErrors.
type renderer interface {
	render(vars map[string]any) (string, error)
}

func parseTemplates(cfg Config, p protocol.Protocol) (templates, error) {
	noSamples := []map[string]any{nil}
	t := templates{
		systemPrompt:      {field: "system_template", text: cfg.SystemTemplate, samples: noSamples},
		instancePrompt:    {field: "instance_template", text: cfg.InstanceTemplate, samples: noSamples},
		observationPrompt: {field: "observation_template", text: cfg.ObservationTemplate, samples: sampleObservations},
		formatErrorPrompt: {field: "format_error_template", text: cfg.FormatErrorTemplate, samples: sampleFormatErrors},
		summaryPrompt:     {field: "summary_template", text: cfg.SummaryTemplate, samples: sampleSummaries},
		tailPrompt:        {field: "tail_template", text: cfg.TailTemplate, samples: sampleTails},
		startupCommand:    {field: "env_startup_command", text: cfg.StartupCommand, samples: noSamples},
	}
	functions := templateFunctions(p)
	var errs []error
	for i := range t {
		var err error
		if cfg.TemplateEngine[t[i].field] == EngineJinja {
			t[i].renderer, err = parseJinja(t[i].field, t[i].text)
		} else {
			t[i].renderer, err = parseGo(t[i].field, t[i].text, functions)
		}
		errs = append(errs, err)
	}
	return t, errors.Join(append(errs, t.check(t.sampleVariables(cfg), sampleSessions())...)...)
}

// check checks all templates and returns an error or nil for each.
func (t templates) check(vars map[string]any, sessions []map[string]any) []error {
	errs := make([]error, len(t))
	for i, p := range t {
		if p.renderer != nil { // else it was not parsed
			errs[i] = p.check(vars, sessions)
		}
	}
	return errs
}

// check renders a template with vars, in each of the sessions and with each of its samples,
// and looks for unknown variables in a template in Jinja.
func (p promptTemplate) check(vars map[string]any, sessions []map[string]any) error {
	if j, ok := p.renderer.(jinjaTemplate); ok {
		if err := j.checkNames(j.variables(merge(vars, p.samples[0]))); err != nil {
			return err
		}
	}
	for _, session := range sessions {
		for _, sample := range p.samples {
			if _, err := p.render(merge(merge(vars, session), sample)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkColumns returns an error if a template uses a column that a row lacks,
// even in a branch that is not rendered. It ignores a template that uses
// hasKey, and those in Jinja, in which checkNames finds missing columns.
func (t templates) checkColumns(columns map[string]any) error {
	for _, p := range t {
		g, ok := p.renderer.(goTemplate)
		if !ok || strings.Contains(p.text, "hasKey") {
			continue
		}
		for _, m := range columnRef.FindAllStringSubmatch(g.tmpl.Root.String(), -1) {
			if _, ok := columns[m[1]]; !ok {
				return fieldErrorf(p.field,
					"the row has no column %s; test for it with {{if hasKey .instance %q}}", m[1], m[1])
			}
		}
	}
	return nil
}

var (
	columnRef    = lazyregexp.New(`\.instance\.([\pL_][\pL\pN_]*)`)
	anyColumnRef = lazyregexp.New(`\binstance\.([\pL_][\pL\pN_]*)`) // also in Jinja
)

// renderPrompts renders the first prompts.
func (t templates) renderPrompts(vars map[string]any) (system, instance string, err error) {
	if system, err = t[systemPrompt].render(vars); err != nil {
		return "", "", err
	}
	instance, err = t[instancePrompt].render(vars)
	return system, instance, err
}

// RenderPrompts renders the first prompts of a session without a model or a
// sandbox. info describes the sandbox, caps the tools and skills that commands
// can use.
func (a *Agent) RenderPrompts(t Task, info env.Info, caps Capabilities) (system, instance string, err error) {
	return a.templates.renderPrompts(a.cfg.variables(t, info, caps, 0, 0, 0))
}

// UnmentionedCapabilities returns the capabilities that the prompts do not
// mention, so that the model could not know of them: "tools", "skills" or both.
// A prompt mentions tools with .tools or "mini-tool", and skills with .skills
// or "mini-tool skill".
func (a *Agent) UnmentionedCapabilities(caps Capabilities) (names []string) {
	prompts := a.cfg.SystemTemplate + "\n" + a.cfg.InstanceTemplate
	if len(caps.Tools) > 0 && !mentionsTools.MatchString(prompts) {
		names = append(names, "tools")
	}
	if len(caps.Skills) > 0 && !mentionsSkills.MatchString(prompts) {
		names = append(names, "skills")
	}
	return names
}

var (
	mentionsTools  = lazyregexp.New(`\.tools\b|\b` + env.ToolProgram + `\b`)
	mentionsSkills = lazyregexp.New(`\.skills\b|\b` + env.ToolProgram + ` skill\b`)
)

// templateFunctions returns the functions of templates. Of sprig's functions
// only the hermetic ones are included, because the others can read secrets from
// the host's environment variables. The function example formats a command as
// the protocol requires it.
func templateFunctions(p protocol.Protocol) template.FuncMap {
	f := sprig.HermeticTxtFuncMap()
	f["example"] = func(command string) string { return protocol.FormatExample(p, command) }
	return f
}

// goTemplate is a template of text/template.
type goTemplate struct{ tmpl *template.Template }

func parseGo(field, text string, functions template.FuncMap) (renderer, error) {
	tmpl, err := template.New(field).Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, templateError(field, err)
	}
	return goTemplate{tmpl}, nil
}

func (t goTemplate) render(vars map[string]any) (string, error) {
	var s strings.Builder
	if err := t.tmpl.Execute(&s, vars); err != nil {
		e := templateError(t.tmpl.Name(), err)
		if m := noEntry.FindStringSubmatch(err.Error()); m != nil {
			e.Err = fmt.Errorf("unknown variable .%s; known variables: .%s", m[1], strings.Join(variableNames(vars), " ."))
		}
		return "", e
	}
	return s.String(), nil
}

// variableNames returns the names of the variables of Go templates.
func variableNames(vars map[string]any) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(vars)), func(name string) bool { return strings.HasPrefix(name, jinjaPrefix) })
}

// noEntry matches text/template's message about a name that is not in a map.
var noEntry = lazyregexp.New(`map has no entry for key "(.*)"$`)

// errorPosition matches the start of text/template's messages: "template:
// NAME:LINE:COL:".
var errorPosition = lazyregexp.New(`^template: [^:]+:(\d+):(?:\d+:)? ?(?:executing "[^"]*" at (<.*?>): )?`)

// templateError converts an error of text/template into a FieldError with the
// line.
func templateError(field string, err error) *FieldError {
	msg, line := err.Error(), 0
	if m := errorPosition.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1]) // matched by \d+
		msg = strings.TrimSpace(m[2] + " " + msg[len(m[0]):])
	}
	return &FieldError{Field: field, Line: line, Err: errors.New(msg)}
}

// Templates get their variables as a map, because their names begin with small letters;
// text/template reports names that are not in it. All templates have the variables of the
// session. Those of observations, format errors, summaries and the tail have others, too.

// variables returns the current variables of a session.
func (c Config) variables(t Task, info env.Info, caps Capabilities, steps int, cost, elapsed float64) map[string]any {
	return merge(caps.variables(), map[string]any{
		"task": t.Text, "instance": orEmpty(t.Instance),
		"system": info.System, "node": info.Node, "release": info.Release, "version": info.Version, "machine": info.Machine,
		"cwd": info.Dir, "network": info.Network,
		"protocol": c.protocolName(), "action_tag": cmp.Or(c.ActionTag, protocol.DefaultTag), "tool_calls": cmp.Or(c.ToolCalls, ToolCallsAll),
		"image_marker": c.imageMarker(), "plain_reply": cmp.Or(c.PlainReply, PlainReplyError),
		"step_limit": c.StepLimit, "cost_limit": c.CostLimit, "wall_time_limit_seconds": c.WallTimeLimit,
		"timeout_seconds": c.Timeout.Seconds(),
		"n_model_calls":   steps, "model_cost": cost, "elapsed_seconds": elapsed,
		settingsVariable: c.JinjaSettings,
	})
}

// variables returns the variables that describe the capabilities.
func (caps Capabilities) variables() map[string]any {
	return map[string]any{"tools": capabilityValues(caps.Tools), "skills": capabilityValues(caps.Skills)}
}

// capabilityValues returns capabilities as template values. It puts each
// description on one line, with one space between words.
func capabilityValues(all []Capability) []map[string]any {
	list := make([]map[string]any, len(all))
	for i, a := range all {
		list[i] = map[string]any{"name": a.Name, "usage": a.Usage, "about": strings.Join(strings.Fields(a.Description), " ")}
	}
	return list
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

// summaryValues returns the own variables of the summary prompt.
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

// sampleVariables returns values to check templates with. The instance has
// every column that a template uses, because columns differ between rows;
// CheckTask uses the real columns.
func (t templates) sampleVariables(c Config) map[string]any {
	vars := c.variables(Task{Text: "task"}, env.Info{System: "Linux", Machine: "x86_64", Dir: "/"}, Capabilities{}, 0, 0, 0)
	columns := map[string]any{}
	for _, p := range t {
		for _, m := range anyColumnRef.FindAllStringSubmatch(p.text, -1) {
			columns[m[1]] = ""
		}
	}
	if j, ok := t[startupCommand].renderer.(jinjaTemplate); ok { // there columns have no prefix
		for name := range j.names {
			columns[name] = ""
		}
	}
	vars["instance"] = columns
	return vars
}

// sampleSessions returns variables of sessions to check templates with: the branches for
// each protocol, for capabilities and for late steps are rendered.
func sampleSessions() (all []map[string]any) {
	caps := Capabilities{
		Tools:  []Capability{{"note", "note add TEXT\nnotes", "keeps a note"}, {"skill", "skill NAME", "prints a skill"}},
		Skills: []Capability{{"reproduce", "skill reproduce", "write a minimal reproduction"}},
	}
	for i, name := range protocol.Names {
		late := 1003 * i
		vars := map[string]any{"protocol": name, "n_model_calls": late, "model_cost": float64(late), "elapsed_seconds": float64(1000 * late)}
		all = append(all, merge(vars, Capabilities{}.variables()), merge(vars, caps.variables()))
	}
	return all
}

var (
	sampleObservations = []map[string]any{
		observationValues(shownOutput{text: "output\n"}, env.Result{}, ""),
		observationValues(shownOutput{text: "h\nt", head: "h", tail: "t", isElided: true}, env.Result{ExitCode: -1, TimedOut: true}, "killed"),
	}
	sampleFormatErrors = []map[string]any{
		formatErrorValues(protocol.ParsedReply{Problem: "no command"}, "stop"),
		formatErrorValues(protocol.ParsedReply{Problem: "two commands", Actions: make([]protocol.Action, 2), Truncated: true}, "length"),
	}
)

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
