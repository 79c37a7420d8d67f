package agent

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/lazyregexp"
)

// templates are the prompts of an agent and its start-up command.
type templates struct {
	system, instance, observation, formatError, startup, summary, tail prompt
}

// prompt is a template that knows the field it came from.
type prompt struct {
	field string
	tmpl  *template.Template
}

func parseTemplates(cfg Config, p protocol.Protocol) (templates, error) {
	functions := functions(p)
	var t templates
	var errs []error
	for _, f := range []struct {
		into  *prompt
		field string
		text  string
		vars  []string
	}{
		{&t.system, "system_template", cfg.SystemTemplate, sessionVariables},
		{&t.instance, "instance_template", cfg.InstanceTemplate, sessionVariables},
		{&t.observation, "observation_template", cfg.ObservationTemplate, observationVariables},
		{&t.formatError, "format_error_template", cfg.FormatErrorTemplate, formatErrorVariables},
		{&t.summary, "summary_template", cfg.SummaryTemplate, summaryVariables},
		{&t.tail, "tail_template", cfg.TailTemplate, tailVariables},
		{&t.startup, "env_startup_command", cfg.StartupCommand, sessionVariables},
	} {
		var err error
		*f.into, err = parsePrompt(f.field, f.text, f.vars, functions)
		errs = append(errs, err)
	}
	if err := firstOf(errs); err != nil {
		return t, err
	}
	return t, t.check(sampleVariables(cfg))
}

// check renders everything with vars, in the shapes that templates tell apart:
// with nothing that commands could ask for, and with something.
func (t templates) check(vars map[string]any) error {
	for _, can := range sampleAbilities {
		if err := t.checkWith(merged(vars, can.variables())); err != nil {
			return err
		}
	}
	return nil
}

func (t templates) checkWith(vars map[string]any) error {
	nothing := []map[string]any{nil}
	for _, f := range []struct {
		prompt  prompt
		samples []map[string]any
	}{
		{t.system, nothing},
		{t.instance, nothing},
		{t.startup, nothing},
		{t.observation, sampleObservations},
		{t.summary, sampleParts},
		{t.tail, sampleTails},
		{t.formatError, sampleFormatErrors},
	} {
		for _, sample := range f.samples {
			if _, err := f.prompt.render(merged(vars, sample)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkColumns finds a column that a row lacks also where rendering would not
// come to it. A template that asks with hasKey knows what it does.
func (t templates) checkColumns(columns map[string]any) error {
	for _, p := range []prompt{t.system, t.instance, t.observation, t.formatError, t.startup, t.summary, t.tail} {
		text := p.tmpl.Root.String()
		if strings.Contains(text, "hasKey") {
			continue
		}
		for _, m := range columnRef.FindAllStringSubmatch(text, -1) {
			if _, ok := columns[m[1]]; !ok {
				return &FieldError{Field: p.field, Err: fmt.Errorf("the row has no column %s; a template may ask first: {{if hasKey .instance %q}}", m[1], m[1])}
			}
		}
	}
	return nil
}

// functions are what templates can call. Hermetic: the other functions of sprig
// read the host's environment, and a prompt must not be able to show a key.
// example shows a command in the words of the protocol.
func functions(p protocol.Protocol) template.FuncMap {
	f := sprig.HermeticTxtFuncMap()
	f["example"] = func(command string) string { return protocol.Example(p, command) }
	return f
}

func parsePrompt(field, text string, known []string, functions template.FuncMap) (prompt, error) {
	tmpl, err := template.New(field).Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return prompt{}, templateError(field, err)
	}
	for _, t := range tmpl.Templates() {
		if t.Tree == nil {
			continue
		}
		if err := checkVariables(t.Tree, t.Root, known, t.Name() == field); err != nil {
			return prompt{}, templateError(field, err)
		}
	}
	return prompt{field, tmpl}, nil
}

func (p prompt) render(vars map[string]any) (string, error) {
	var s strings.Builder
	if err := p.tmpl.Execute(&s, vars); err != nil {
		return "", templateError(p.field, err)
	}
	return s.String(), nil
}

// checkVariables looks for variables nobody knows, also in branches that a
// rendering would not reach. Inside range, with and define the dot (atTop says
// that it is the variables) is something else, and is left to the rendering;
// $ is the variables everywhere but in a define.
func checkVariables(t *parse.Tree, n parse.Node, known []string, atTop bool) error {
	check := func(n parse.Node, atTop bool) error { return checkVariables(t, n, known, atTop) }
	unknown := func(n parse.Node, name string) error {
		if slices.Contains(known, name) {
			return nil
		}
		location, _ := t.ErrorContext(n)
		return fmt.Errorf("template: %s: unknown variable .%s; there are %s", location, name, list(known))
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, m := range n.Nodes {
			if err := check(m, atTop); err != nil {
				return err
			}
		}
	case *parse.ActionNode:
		return check(n.Pipe, atTop)
	case *parse.PipeNode:
		if n == nil {
			return nil
		}
		for _, c := range n.Cmds {
			for _, arg := range c.Args {
				if err := check(arg, atTop); err != nil {
					return err
				}
			}
		}
	case *parse.FieldNode:
		if atTop {
			return unknown(n, n.Ident[0])
		}
	case *parse.VariableNode:
		if t.Name == t.ParseName && n.Ident[0] == "$" && len(n.Ident) > 1 {
			return unknown(n, n.Ident[1])
		}
	case *parse.ChainNode:
		return check(n.Node, atTop)
	case *parse.TemplateNode:
		return check(n.Pipe, atTop)
	case *parse.IfNode:
		return firstOf([]error{check(n.Pipe, atTop), check(n.List, atTop), check(n.ElseList, atTop)})
	case *parse.RangeNode:
		return firstOf([]error{check(n.Pipe, atTop), check(n.List, false), check(n.ElseList, atTop)})
	case *parse.WithNode:
		return firstOf([]error{check(n.Pipe, atTop), check(n.List, false), check(n.ElseList, atTop)})
	}
	return nil
}

func list(names []string) string {
	dotted := make([]string, len(names))
	for i, n := range names {
		dotted[i] = "." + n
	}
	return strings.Join(dotted, " ")
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// position is how text/template begins its messages: "template: NAME:LINE:COL:".
var position = lazyregexp.New(`^template: [^:]+:(\d+):(?:\d+:)? ?(?:executing "[^"]*" at (<.*?>): )?`)

// templateError turns an error of text/template into one that names our field
// and the line in it.
func templateError(field string, err error) error {
	msg, line := err.Error(), 0
	if m := position.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1]) // the pattern matched digits
		msg = strings.TrimSpace(m[2] + " " + msg[len(m[0]):])
	}
	return &FieldError{Field: field, Line: line, Err: errors.New(msg)}
}
