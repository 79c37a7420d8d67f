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
	system, instance, observation, formatError, startup, summary, tail promptTemplate
}

// promptTemplate is a template with the name of its configuration field.
type promptTemplate struct {
	field string
	renderer
}

// renderer is a template of one engine. Errors are *FieldErrors.
type renderer interface {
	render(vars map[string]any) (string, error)
	// source returns the text, in which checkColumns looks for columns.
	source() string
}

func parseTemplates(cfg Config, p protocol.Protocol) (templates, error) {
	functions := templateFunctions(p)
	var t templates
	var errs []error
	for _, f := range []struct {
		into  *promptTemplate
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
		f.into.field = f.field
		if cfg.TemplateEngine[f.field] == EngineJinja {
			f.into.renderer, err = parseJinja(f.field, f.text)
		} else {
			f.into.renderer, err = parseGo(f.field, f.text, f.vars, functions)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return t, err
	}
	return t, t.check(sampleVariables(cfg))
}

// check renders all templates with vars, once without and once with
// capabilities, and looks for unknown variables in Jinja's.
func (t templates) check(vars map[string]any) error {
	if err := t.checkNames(vars); err != nil {
		return err
	}
	for _, caps := range sampleCapabilities {
		if err := t.checkWith(merge(vars, caps.variables())); err != nil {
			return err
		}
	}
	return nil
}

func (t templates) checkWith(vars map[string]any) error {
	noSamples := []map[string]any{nil}
	for _, f := range []struct {
		prompt  promptTemplate
		samples []map[string]any
	}{
		{t.system, noSamples},
		{t.instance, noSamples},
		{t.startup, noSamples},
		{t.observation, sampleObservations},
		{t.summary, sampleSummaries},
		{t.tail, sampleTails},
		{t.formatError, sampleFormatErrors},
	} {
		for _, sample := range f.samples {
			if _, err := f.prompt.render(merge(vars, sample)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkColumns returns an error if a template uses a column that a row lacks,
// even in a branch that is not rendered. It ignores a template that uses
// hasKey.
func (t templates) checkColumns(columns map[string]any) error {
	for _, p := range []promptTemplate{t.system, t.instance, t.observation, t.formatError, t.startup, t.summary, t.tail} {
		text := p.source()
		if strings.Contains(text, "hasKey") {
			continue
		}
		for _, m := range columnRef.FindAllStringSubmatch(text, -1) {
			if _, ok := columns[m[1]]; !ok {
				return fieldErrorf(p.field,
					"the row has no column %s; test for it with {{if hasKey .instance %q}}", m[1], m[1])
			}
		}
	}
	return nil
}

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

func parseGo(field, text string, known []string, functions template.FuncMap) (renderer, error) {
	tmpl, err := template.New(field).Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, templateError(field, err)
	}
	for _, t := range tmpl.Templates() {
		if t.Tree == nil {
			continue
		}
		if err := checkVariables(t.Tree, t.Root, known, t.Name() == field); err != nil {
			return nil, templateError(field, err)
		}
	}
	return goTemplate{tmpl}, nil
}

func (t goTemplate) source() string { return t.tmpl.Root.String() }

func (t goTemplate) render(vars map[string]any) (string, error) {
	var s strings.Builder
	if err := t.tmpl.Execute(&s, vars); err != nil {
		return "", templateError(t.tmpl.Name(), err)
	}
	return s.String(), nil
}

// checkVariables returns an error for an unknown variable, even in a branch
// that is not rendered. Inside range, with and define (atTop is false) the dot
// is another value, whose fields only rendering checks. $ holds the variables
// everywhere except in a define.
func checkVariables(t *parse.Tree, n parse.Node, known []string, atTop bool) error {
	check := func(n parse.Node, atTop bool) error { return checkVariables(t, n, known, atTop) }
	unknown := func(n parse.Node, name string) error {
		if slices.Contains(known, name) {
			return nil
		}
		location, _ := t.ErrorContext(n)
		return fmt.Errorf("template: %s: unknown variable .%s; known variables: %s", location, name, dottedNames(known))
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
		return firstError([]error{check(n.Pipe, atTop), check(n.List, atTop), check(n.ElseList, atTop)})
	case *parse.RangeNode:
		return firstError([]error{check(n.Pipe, atTop), check(n.List, false), check(n.ElseList, atTop)})
	case *parse.WithNode:
		return firstError([]error{check(n.Pipe, atTop), check(n.List, false), check(n.ElseList, atTop)})
	}
	return nil
}

func dottedNames(names []string) string {
	dotted := make([]string, len(names))
	for i, n := range names {
		dotted[i] = "." + n
	}
	return strings.Join(dotted, " ")
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// errorPosition matches the start of text/template's messages: "template:
// NAME:LINE:COL:".
var errorPosition = lazyregexp.New(`^template: [^:]+:(\d+):(?:\d+:)? ?(?:executing "[^"]*" at (<.*?>): )?`)

// templateError converts an error of text/template into a FieldError with the
// line.
func templateError(field string, err error) error {
	msg, line := err.Error(), 0
	if m := errorPosition.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1]) // matched by \d+
		msg = strings.TrimSpace(m[2] + " " + msg[len(m[0]):])
	}
	return &FieldError{Field: field, Line: line, Err: errors.New(msg)}
}
