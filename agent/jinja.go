package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
)

// Values of Config.TemplateEngine.
const (
	EngineGo    = "go"
	EngineJinja = "jinja"
)

// Variables that only templates in Jinja use.
const (
	jinjaPrefix      = "jinja_"
	settingsVariable = jinjaPrefix + "settings" // settings by mini-swe-agent's names
	outputVariable   = jinjaPrefix + "output"   // the env.Result, see wholeOutput
	commandsVariable = jinjaPrefix + "commands" // the commands of an invalid reply
)

// sessionVariables are the names that templates of both engines have.
var sessionVariables = variableNames(Config{}.variables(Task{}, env.Info{}, Capabilities{}, 0, 0, 0))

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
		j[lengthVariable] = r.Chars
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

// checkNames returns an error for a variable that is not among the known ones, even in a
// branch that is not rendered.
func (t jinjaTemplate) checkNames(known map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(t.names)) {
		if _, ok := known[name]; !ok {
			all := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return name == lengthVariable })
			return &FieldError{Field: t.field, Line: t.names[name], Err: fmt.Errorf(
				"unknown variable %s; known variables: %s (environment variables are not passed on, because some are keys)", name, strings.Join(all, " "))}
		}
	}
	return nil
}

// wholeOutput returns an output for templates that shorten it themselves.
func wholeOutput(r env.Result) any {
	if !r.Truncated {
		return toValidUTF8(r.Output)
	}
	head, tail := toValidUTF8(r.Output[:r.Head]), toValidUTF8(r.Output[r.Head:])
	left := r.Chars - int64(utf8.RuneCountInString(head)+utf8.RuneCountInString(tail))
	return longText(fmt.Sprintf("%s\n[... %d characters left out ...]\n%s", head, left, tail))
}
