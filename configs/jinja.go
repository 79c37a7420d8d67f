package configs

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// checkJinja finds prompts in Jinja, the template language of mini-swe-agent.
// text/template would treat {% if %} as plain text and show it to the model.
func (r *Resolved) checkJinja() []error {
	var errs []error
	for _, p := range []struct{ key, text string }{
		{"agent.system_template", r.Agent.SystemTemplate},
		{"agent.instance_template", r.Agent.InstanceTemplate},
		{"agent.observation_template", r.Agent.ObservationTemplate},
		{"agent.format_error_template", r.Agent.FormatErrorTemplate},
		{"agent.summary_template", r.Agent.SummaryTemplate},
		{"agent.tail_template", r.Agent.TailTemplate},
		{startupKey, r.Run.StartupCommand},
	} {
		found, instead, line := findJinja(p.text)
		if found == "" {
			continue
		}
		errs = append(errs, &configError{fmt.Sprintf("%s%s: %s is Jinja; in mini's Go templates it is %s (see %s)",
			r.location(p.key, line), p.key, found, instead, MigrationGuide)})
	}
	return errs
}

var (
	// goLiteral matches Go template strings that look like Jinja: {{"{%"}}.
	goLiteral       = lazyregexp.New("(?s)\\{\\{-?\\s*(?:\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`)\\s*-?\\}\\}")
	jinjaStatement  = lazyregexp.New(`(?s)\{%[-+]?\s*(if|elif|else|endif|for|endfor|set|endset|raw|endraw|macro|endmacro|include|import|from|block|endblock|filter|endfilter|call|with|endwith|do)\b(.*?)[-+]?%\}`)
	jinjaComment    = lazyregexp.New(`(?s)\{#.*?#\}`)
	jinjaExpression = lazyregexp.New(`(?s)\{\{[-+]?\s*([A-Za-z_]\w*)(.*?)[-+]?\}\}`)
)

// findJinja returns the first Jinja construct in a text, its equivalent in a Go template,
// and its line, from 1; found is "" if there is none.
func findJinja(text string) (found, instead string, line int) {
	text = goLiteral.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	first := len(text)
	consider := func(match []int, goForm string) {
		if match[0] < first {
			first = match[0]
			found, instead = shorten(text[match[0]:match[1]]), goForm
			line = 1 + strings.Count(text[:match[0]], "\n")
		}
	}
	if m := jinjaStatement.FindStringSubmatchIndex(text); m != nil {
		consider(m, goStatement(text[m[2]:m[3]], strings.TrimSpace(text[m[4]:m[5]])))
	}
	if m := jinjaComment.FindStringIndex(text); m != nil {
		consider(m, "{{/* ... */}}")
	}
	for _, m := range jinjaExpression.FindAllStringSubmatchIndex(text, -1) {
		if name := text[m[2]:m[3]]; jinjaNames[name] != "" {
			consider(m, "{{"+goExpression(name+text[m[4]:m[5]])+"}}")
			break
		}
	}
	return found, instead, line
}

// shorten puts a part of a template on one line and limits its length.
func shorten(s string) string {
	const maxLen = 50
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxLen {
		s = string(runes[:maxLen-10]) + " ... " + string(runes[len(runes)-5:])
	}
	return s
}

// jinjaNames maps variables of mini-swe-agent's templates to mini's.
var jinjaNames = map[string]string{
	"task": ".task", "cwd": ".cwd", "timeout": ".timeout_seconds",
	"system": ".system", "node": ".node", "release": ".release", "version": ".version", "machine": ".machine",
	"step_limit": ".step_limit", "cost_limit": ".cost_limit", "wall_time_limit_seconds": ".wall_time_limit_seconds",
	"n_model_calls": ".n_model_calls", "model_cost": ".model_cost", "elapsed_seconds": ".elapsed_seconds",
	"output": ".output", "elided_chars": ".elided_chars",
	"error": ".error", "actions": ".n_actions", "finish_reason": ".finish_reason",
	"instance_id": ".instance.instance_id", "problem_statement": ".instance.problem_statement",
	"repo": ".instance.repo", "base_commit": ".instance.base_commit", "hints_text": ".instance.hints_text",
}

// goStatement translates {% word rest %} to a Go template.
func goStatement(word, rest string) string {
	switch word {
	case "if":
		return "{{if " + goCondition(rest) + "}}...{{end}}"
	case "elif":
		return "{{else if " + goCondition(rest) + "}}"
	case "else":
		return "{{else}}"
	case "for":
		return "{{range .list}}...{{end}}"
	case "set":
		return "{{$name := ...}}"
	case "raw":
		return `{{"{{"}} for each pair of braces`
	}
	if strings.HasPrefix(word, "end") {
		return "{{end}}"
	}
	return "{{define}} and {{template}}"
}

var (
	lengthLimit = lazyregexp.New(`^output(?:\.output)?\s*\|\s*length\s*<`)
	comparison  = lazyregexp.New(`^(\S+)\s*(==|!=)\s*(\S+)$`)
	operand     = lazyregexp.New(`^\w+(?:\.\w+)*$`)
)

// goCondition translates a simple condition to a Go template; it returns "..." for others.
func goCondition(s string) string {
	if lengthLimit.MatchString(s) {
		return "not .elided"
	}
	if rest, ok := strings.CutPrefix(s, "not "); ok && operand.MatchString(rest) {
		return "not " + goExpression(rest)
	}
	if m := comparison.FindStringSubmatch(s); m != nil {
		op := map[string]string{"==": "eq", "!=": "ne"}[m[2]]
		return op + " " + goOperand(m[1]) + " " + goOperand(m[3])
	}
	if operand.MatchString(s) {
		return goExpression(s)
	}
	return "..."
}

func goOperand(s string) string {
	if s[0] == '\'' {
		return `"` + strings.Trim(s, "'") + `"`
	}
	if operand.MatchString(s) && (s[0] < '0' || s[0] > '9') {
		return goExpression(s)
	}
	return s
}

// goExpression translates {{ s }} to a Go template, without the braces.
func goExpression(s string) string {
	value, filter, _ := strings.Cut(s, "|")
	value, filter = strings.TrimSpace(value), strings.TrimSpace(filter)
	name, rest := value, ""
	if i := strings.IndexAny(value, ".["); i >= 0 {
		name, rest = value[:i], value[i:]
	}
	field := goName(name, rest)
	switch {
	case filter == "":
		return field
	case strings.HasPrefix(filter, "length"):
		switch field {
		case ".output":
			return ".output_chars"
		case ".n_actions":
			return field
		}
		return "len " + field
	case strings.HasPrefix(filter, "tojson"):
		return "toJson " + field
	}
	return field + " | ..."
}

// goName translates a variable and the attributes or indexes that follow it.
func goName(name, rest string) string {
	rest = strings.ReplaceAll(rest, " ", "")
	switch {
	case name == "output" && strings.Contains(rest, "[:"):
		return ".output_head"
	case name == "output" && strings.Contains(rest, "[-"):
		return ".output_tail"
	case name == "output" && strings.HasPrefix(rest, ".exception"):
		return ".exception"
	case name == "output" && strings.HasPrefix(rest, ".returncode"):
		return ".returncode"
	case name == "output":
		return ".output"
	}
	if field, ok := jinjaNames[name]; ok {
		return field
	}
	return "." + name + rest
}
