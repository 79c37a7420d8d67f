package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/jinja"
)

// Values of Config.TemplateEngine.
const (
	EngineGo    = "go"
	EngineJinja = "jinja"
)

// jinjaTemplate is a template in Jinja. Its variables are those of mini-swe-agent.
type jinjaTemplate struct {
	field, text string
	tmpl        *jinja.Template
}

func parseJinja(field, text string) (renderer, error) {
	tmpl, err := jinja.Parse(text)
	if err != nil {
		return nil, jinjaError(field, err)
	}
	return jinjaTemplate{field, text, tmpl}, nil
}

// source returns nothing, because checkNames finds missing columns.
func (jinjaTemplate) source() string { return "" }

func (t jinjaTemplate) render(vars map[string]any) (string, error) {
	text, err := t.tmpl.Render(t.variables(vars))
	if err != nil {
		return "", jinjaError(t.field, err)
	}
	return text, nil
}

// jinjaError converts an error of package jinja into a FieldError with the line.
func jinjaError(field string, err error) error {
	if e, ok := errors.AsType[*jinja.Error](err); ok {
		return &FieldError{Field: field, Line: e.Line, Err: errors.New(e.Msg)}
	}
	return &FieldError{Field: field, Err: err}
}

// Variables that only templates in Jinja use. Templates in Go cannot name them, because
// they are not in the lists of variables.
const (
	settingsVariable = "jinja_settings" // settings by mini-swe-agent's names
	outputVariable   = "jinja_output"   // the env.Result, see wholeOutput
	commandsVariable = "jinja_commands" // the commands of an invalid reply
)

// variables returns the variables of mini-swe-agent. Unlike there, the environment
// variables of this machine are not among them, because some are keys.
func (t jinjaTemplate) variables(vars map[string]any) map[string]any {
	j := map[string]any{}
	if t.field == "env_startup_command" { // there the columns are variables
		columns, _ := vars["instance"].(map[string]any)
		maps.Copy(j, columns)
	}
	settings, _ := vars[settingsVariable].(map[string]any)
	maps.Copy(j, settings)
	for _, name := range sessionVariables {
		j[name] = vars[name]
	}
	for _, name := range []string{"wall_time_limit_seconds", "elapsed_seconds"} { // whole numbers there
		if seconds, ok := vars[name].(float64); ok {
			j[name] = int64(seconds)
		}
	}
	if r, ok := vars[outputVariable].(env.Result); ok {
		j["output"] = map[string]any{"output": wholeOutput(r), "returncode": vars["returncode"], "exception_info": vars["exception"]}
	}
	if commands, ok := vars[commandsVariable]; ok {
		n, _ := vars["n_actions"].(int)
		j["error"], j["finish_reason"] = sentence(fmt.Sprint(vars["error"])), vars["finish_reason"]
		j["actions"], j["has_tool_calls"] = commands, vars["protocol"] == protocol.Tools && n > 0
	}
	for _, name := range []string{"goals", "errors", "parts", "max_chars"} { // of mini's own templates
		if v, ok := vars[name]; ok {
			j[name] = v
		}
	}
	return j
}

func sentence(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:] + "."
}

// checkNames returns an error for an unknown variable of a template in Jinja, even in a
// branch that is not rendered.
func (t templates) checkNames(vars map[string]any) error {
	for _, p := range []struct {
		promptTemplate
		own map[string]any
	}{
		{t.system, nil},
		{t.instance, nil},
		{t.startup, nil},
		{t.observation, sampleObservations[0]},
		{t.formatError, sampleFormatErrors[0]},
		{t.summary, sampleSummaries[0]},
		{t.tail, sampleTails[0]},
	} {
		j, ok := p.renderer.(jinjaTemplate)
		if !ok {
			continue
		}
		known := j.variables(merge(vars, p.own))
		names := j.tmpl.Names()
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if _, ok := known[name]; !ok {
				return &FieldError{Field: p.field, Line: names[name], Err: fmt.Errorf(
					"unknown variable %s; known variables: %s (environment variables are not passed on, because some are keys)",
					name, strings.Join(slices.Sorted(maps.Keys(known)), " "))}
			}
		}
	}
	return nil
}

// wholeOutput returns an output for templates that shorten it themselves.
func wholeOutput(r env.Result) any {
	if !r.Truncated {
		return toValidUTF8(r.Output)
	}
	return jinja.Text{Head: toValidUTF8(r.Output[:r.Head]), Tail: toValidUTF8(r.Output[r.Head:]), Chars: r.Chars}
}
