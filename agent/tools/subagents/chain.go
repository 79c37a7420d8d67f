package subagents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent/tools"
)

// maxSteps bounds the steps of a chain.
const maxSteps = 20

// chainStep is a step of a chain's file.
type chainStep struct {
	Name    string   `yaml:"name"`
	Task    string   `yaml:"task"`
	Skill   string   `yaml:"skill"`
	Profile string   `yaml:"profile"`
	JSON    any      `yaml:"json"` // a schema, as a string or as YAML
	Pass    []string `yaml:"pass"`
}

// chainTool runs tasks in children, one after the other.
type chainTool struct{ f *Pool }

// Spec implements tools.Tool.
func (chainTool) Spec() tools.Spec {
	return tools.Spec{
		Name:  "chain",
		Usage: "chain FILE|-",
		Description: "hands tasks to other agents one after the other: a YAML list with task, name, skill, profile, json and pass for each, " +
			"where {{.previous}} and {{.results.NAME}} stand for reports of steps before",
		Timeout:   -1,
		MaxOutput: maxSteps * (maxReport + 1<<10),
	}
}

// Call implements tools.Tool.
func (t chainTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	if len(args.Positional) != 1 {
		return tools.Result{}, tools.Usagef("one file is needed, or - for the standard input")
	}
	text := string(c.Input)
	if name := args.Positional[0]; name != "-" {
		if c.Environment == nil {
			return tools.Result{}, errors.New("it works for the commands of an agent only")
		}
		var found bool
		if text, found, err = readFile(ctx, c, name, maxChain); err != nil {
			return tools.Result{}, err
		}
		if !found {
			return tools.Result{}, tools.Usagef("there is no file %.200q", name)
		}
	}
	tasks, err := t.f.parseChain(ctx, c, text)
	if err != nil {
		return tools.Result{}, err
	}
	return t.runSteps(ctx, c, tasks)
}

// runSteps runs the steps up to the first that fails.
func (t chainTool) runSteps(ctx context.Context, c tools.Call, tasks []childTask) (tools.Result, error) {
	var text strings.Builder
	var details callDetails
	t.f.board.restore(c.Attempt)
	result := func() tools.Result {
		details.Changed = t.f.board.takeChanges(ctx)
		return tools.Result{Output: text.String(), Details: details}
	}
	reports := map[string]string{}
	for i, o := range tasks {
		if err := o.fillTemplates(reports); err != nil {
			return result(), fmt.Errorf("step %q (%d of %d): %w", o.name, i+1, len(tasks), err)
		}
		done, err := t.f.runChild(ctx, c, o)
		if done.child.Child > 0 {
			details.Children = append(details.Children, done.child)
		}
		if done.text != "" {
			fmt.Fprintf(&text, "== %s ==\n%s", o.name, withNewline(done.text))
		}
		if err != nil {
			return result(), fmt.Errorf("step %q (%d of %d): %w", o.name, i+1, len(tasks), err)
		}
		reports["previous"], reports["results."+o.name] = done.text, done.text
	}
	return result(), nil
}

// parseChain parses and checks all steps before the first one runs.
func (f *Pool) parseChain(ctx context.Context, c tools.Call, text string) ([]childTask, error) {
	if len(text) > maxChain {
		return nil, tools.Usagef("the chain has more than %d bytes", maxChain)
	}
	var steps []chainStep
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&steps); err != nil && !errors.Is(err, io.EOF) {
		return nil, tools.Usagef("the chain is no list of steps: %s", tools.Clip(yamlError(err), 500))
	}
	switch {
	case len(steps) == 0:
		return nil, tools.Usagef("there are no steps in the chain")
	case len(steps) > maxSteps:
		return nil, tools.Usagef("the chain has %d steps, and %d are allowed", len(steps), maxSteps)
	case len(steps) > f.Config.MaxChildren:
		return nil, tools.Usagef("the chain has %d steps, and %d children are allowed (agents.max)", len(steps), f.Config.MaxChildren)
	}
	var tasks []childTask
	known := map[string]string{}
	for i, step := range steps {
		o, err := f.parseStep(ctx, c, step, i+1, known)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, o)
		known["previous"], known["results."+o.name] = "", ""
	}
	return tasks, nil
}

// yamlError returns the first error in a chain, without the names of Go types.
func yamlError(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if all, ok := errors.AsType[*yaml.TypeError](err); ok && len(all.Errors) > 0 {
		text = all.Errors[0]
	}
	return strings.NewReplacer(" in type subagents.chainStep", " in a step", "[]subagents.chainStep", "a list of steps", "subagents.chainStep", "a step",
		"[]string", "a list of texts", "into string", "into a text").Replace(text)
}

var stepName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// parseStep checks a step; known are the names of the reports that it may use.
func (f *Pool) parseStep(ctx context.Context, c tools.Call, l chainStep, n int, known map[string]string) (childTask, error) {
	o := childTask{name: l.Name, task: strings.TrimSpace(l.Task), skill: l.Skill, profile: l.Profile}
	if o.name == "" {
		o.name = fmt.Sprint(n)
	}
	invalid := func(format string, args ...any) error {
		return tools.Usagef("step %d: %s", n, fmt.Sprintf(format, args...))
	}
	if !stepName().MatchString(o.name) {
		return o, invalid("%.80q is no name: letters, digits, - and _ are", o.name)
	}
	if _, exists := known["results."+o.name]; exists {
		return o, invalid("two steps are called %q", o.name)
	}
	if o.task == "" {
		return o, invalid("the task is missing")
	}
	for _, text := range append([]string{o.task}, l.Pass...) {
		if len(text) > maxTask {
			return o, invalid("a text has %d bytes, and %d are allowed", len(text), maxTask)
		}
		if _, err := fillReports(text, known, maxTask); err != nil {
			return o, invalid("%v", err)
		}
	}
	if err := f.resolve(c, &o); err != nil {
		return o, invalid("%v", err)
	}
	if l.JSON != nil {
		text, err := schemaText(l.JSON)
		if err == nil {
			o.schema, err = readSchema(ctx, c, text)
		}
		if err != nil {
			return o, invalid("%v", err)
		}
	}
	var err error
	o.passed, err = readPassedTexts(ctx, c, l.Pass)
	return o, err
}

// schemaText returns a schema as text; the file may contain it as text or as
// YAML.
func schemaText(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	data, err := json.Marshal(v)
	return string(data), err
}
