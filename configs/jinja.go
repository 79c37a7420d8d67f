package configs

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// foreignTemplates finds prompts in Jinja, the templates of mini-swe-agent.
// To text/template a {% if %} is plain text, which the model would be shown.
func (r *Resolved) foreignTemplates() []error {
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
		errs = append(errs, &mistake{fmt.Sprintf("%s%s: %s is Jinja; in mini's Go templates it is %s (see %s)",
			r.place(p.key, line), p.key, found, instead, ComingFrom)})
	}
	return errs
}

var (
	// literal is how a Go template writes what only looks like Jinja: {{"{%"}}.
	literal    = lazyregexp.New("(?s)\\{\\{-?\\s*(?:\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`)\\s*-?\\}\\}")
	statement  = lazyregexp.New(`(?s)\{%[-+]?\s*(if|elif|else|endif|for|endfor|set|endset|raw|endraw|macro|endmacro|include|import|from|block|endblock|filter|endfilter|call|with|endwith|do)\b(.*?)[-+]?%\}`)
	comment    = lazyregexp.New(`(?s)\{#.*?#\}`)
	expression = lazyregexp.New(`(?s)\{\{[-+]?\s*([A-Za-z_]\w*)(.*?)[-+]?\}\}`)
)

// findJinja returns the first thing in a text that only Jinja has, what it is
// in a Go template, and its line, from 1; found is "" where there is none.
func findJinja(text string) (found, instead string, line int) {
	text = literal.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	first := len(text)
	note := func(at []int, goForm string) {
		if at[0] < first {
			first = at[0]
			found, instead = brief(text[at[0]:at[1]]), goForm
			line = 1 + strings.Count(text[:at[0]], "\n")
		}
	}
	if m := statement.FindStringSubmatchIndex(text); m != nil {
		note(m, goStatement(text[m[2]:m[3]], strings.TrimSpace(text[m[4]:m[5]])))
	}
	if m := comment.FindStringIndex(text); m != nil {
		note(m, "{{/* ... */}}")
	}
	for _, m := range expression.FindAllStringSubmatchIndex(text, -1) {
		if name := text[m[2]:m[3]]; jinjaNames[name] != "" {
			note(m, "{{"+goExpression(name+text[m[4]:m[5]])+"}}")
			break
		}
	}
	return found, instead, line
}

// brief is a piece of a template on one line, bounded.
func brief(s string) string {
	const most = 50
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most-10]) + " ... " + string(runes[len(runes)-5:])
	}
	return s
}

// jinjaNames are the variables of mini-swe-agent's templates, and what they
// are called here.
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

// goStatement is {% word rest %} in a Go template.
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

// goCondition is a condition of Jinja, where it is a simple one.
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

// goExpression is {{ s }} in a Go template, without the braces.
func goExpression(s string) string {
	value, filter, _ := strings.Cut(s, "|")
	value, filter = strings.TrimSpace(value), strings.TrimSpace(filter)
	name, rest := value, ""
	if i := strings.IndexAny(value, ".["); i >= 0 {
		name, rest = value[:i], value[i:]
	}
	form := goName(name, rest)
	switch {
	case filter == "":
		return form
	case strings.HasPrefix(filter, "length"):
		switch form {
		case ".output":
			return ".output_chars"
		case ".n_actions":
			return form
		}
		return "len " + form
	case strings.HasPrefix(filter, "tojson"):
		return "toJson " + form
	}
	return form + " | ..."
}

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
	if form, ok := jinjaNames[name]; ok {
		return form
	}
	return "." + name + rest
}
