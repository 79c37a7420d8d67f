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

// chainTool is the tool chain. It runs tasks in children, one after the other.
type chainTool struct{ pool *Pool }

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
	tasks, err := t.pool.parseChain(ctx, c, text)
	if err != nil {
		return tools.Result{}, err
	}
	return t.runSteps(ctx, c, tasks)
}

// runSteps runs the steps in order, up to the first that fails.
func (t chainTool) runSteps(ctx context.Context, c tools.Call, tasks []childTask) (tools.Result, error) {
	var output strings.Builder
	var details callDetails
	t.pool.board.restore(c.Attempt)
	result := func() tools.Result {
		details.Changed = t.pool.board.takeChanges(ctx)
		return tools.Result{Output: output.String(), Details: details}
	}
	reports := map[string]string{}
	for i, task := range tasks {
		if err := task.fillTemplates(reports); err != nil {
			return result(), fmt.Errorf("step %q (%d of %d): %w", task.name, i+1, len(tasks), err)
		}
		report, err := t.pool.runChild(ctx, c, task)
		if report.child.Child > 0 {
			details.Children = append(details.Children, report.child)
		}
		if report.text != "" {
			fmt.Fprintf(&output, "== %s ==\n%s", task.name, withNewline(report.text))
		}
		if err != nil {
			return result(), fmt.Errorf("step %q (%d of %d): %w", task.name, i+1, len(tasks), err)
		}
		reports["previous"], reports["results."+task.name] = report.text, report.text
	}
	return result(), nil
}

// parseChain parses and checks all steps before the first one runs.
func (p *Pool) parseChain(ctx context.Context, c tools.Call, text string) ([]childTask, error) {
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
	case len(steps) > p.Config.MaxChildren:
		return nil, tools.Usagef("the chain has %d steps, and %d children are allowed (agents.max)", len(steps), p.Config.MaxChildren)
	}
	var tasks []childTask
	known := map[string]string{}
	for i, step := range steps {
		task, err := p.parseStep(ctx, c, step, i+1, known)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
		known["previous"], known["results."+task.name] = "", ""
	}
	return tasks, nil
}

// yamlError returns the text of the first error in a chain, without the names
// of Go types.
func yamlError(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if all, ok := errors.AsType[*yaml.TypeError](err); ok && len(all.Errors) > 0 {
		text = all.Errors[0]
	}
	return strings.NewReplacer(" in type subagents.chainStep", " in a step", "[]subagents.chainStep", "a list of steps", "subagents.chainStep", "a step",
		"[]string", "a list of texts", "into string", "into a text").Replace(text)
}

var stepName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// parseStep checks a step and reads its files. The keys of known are the names
// of the reports that the step may use.
func (p *Pool) parseStep(ctx context.Context, c tools.Call, step chainStep, number int, known map[string]string) (childTask, error) {
	task := childTask{name: step.Name, text: strings.TrimSpace(step.Task), skill: step.Skill, profile: step.Profile}
	if task.name == "" {
		task.name = fmt.Sprint(number)
	}
	invalid := func(format string, args ...any) error {
		return tools.Usagef("step %d: %s", number, fmt.Sprintf(format, args...))
	}
	if !stepName().MatchString(task.name) {
		return task, invalid("%.80q is no name: letters, digits, - and _ are", task.name)
	}
	if _, exists := known["results."+task.name]; exists {
		return task, invalid("two steps are called %q", task.name)
	}
	if task.text == "" {
		return task, invalid("the task is missing")
	}
	for _, text := range append([]string{task.text}, step.Pass...) {
		if len(text) > maxTask {
			return task, invalid("a text has %d bytes, and %d are allowed", len(text), maxTask)
		}
		if _, err := fillReports(text, known, maxTask); err != nil {
			return task, invalid("%v", err)
		}
	}
	if err := p.resolve(c, &task); err != nil {
		return task, invalid("%v", err)
	}
	if step.JSON != nil {
		text, err := schemaText(step.JSON)
		if err == nil {
			task.schema, err = readSchema(ctx, c, text)
		}
		if err != nil {
			return task, invalid("%v", err)
		}
	}
	var err error
	task.passed, err = readPassedTexts(ctx, c, step.Pass)
	return task, err
}

// schemaText returns the JSON text of a step's schema, which is a string or a
// YAML value.
func schemaText(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	data, err := json.Marshal(v)
	return string(data), err
}
