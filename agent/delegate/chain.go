package delegate

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

// link is a step of a chain, as a file has it.
type link struct {
	Name    string   `yaml:"name"`
	Task    string   `yaml:"task"`
	Skill   string   `yaml:"skill"`
	Profile string   `yaml:"profile"`
	JSON    any      `yaml:"json"` // a schema, as text or as it stands
	Pass    []string `yaml:"pass"`
}

// chainTool hands tasks to children, one after the other.
type chainTool struct{ f *Family }

// Spec implements tools.Tool.
func (chainTool) Spec() tools.Spec {
	return tools.Spec{
		Name:  "chain",
		Usage: "chain FILE|-",
		About: "hands tasks to other agents one after the other: a YAML list with task, name, skill, profile, json and pass for each, " +
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
	if len(args.Rest) != 1 {
		return tools.Result{}, tools.Usagef("one file is needed, or - for the standard input")
	}
	text := string(c.Input)
	if name := args.Rest[0]; name != "-" {
		if c.Inside == nil {
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
	orders, err := t.f.parseChain(ctx, c, text)
	if err != nil {
		return tools.Result{}, err
	}
	return t.follow(ctx, c, orders)
}

// follow has the steps done, up to the first that fails.
func (t chainTool) follow(ctx context.Context, c tools.Call, orders []order) (tools.Result, error) {
	var text strings.Builder
	var all made
	t.f.board.recall(c.Attempt)
	mark := t.f.board.mark()
	ended := func() tools.Result {
		all.Changed = t.f.board.since(mark)
		return tools.Result{Output: text.String(), Details: all}
	}
	known := map[string]string{}
	for i, o := range orders {
		if err := o.fill(known); err != nil {
			return ended(), fmt.Errorf("step %q (%d of %d): %w", o.name, i+1, len(orders), err)
		}
		done, err := t.f.run(ctx, c, o)
		if done.child.Child > 0 {
			all.Children = append(all.Children, done.child)
		}
		if done.text != "" {
			fmt.Fprintf(&text, "== %s ==\n%s", o.name, endLine(done.text))
		}
		if err != nil {
			return ended(), fmt.Errorf("step %q (%d of %d): %w", o.name, i+1, len(orders), err)
		}
		known["previous"], known["results."+o.name] = done.text, done.text
	}
	return ended(), nil
}

// parseChain reads and checks all steps before the first of them is done.
func (f *Family) parseChain(ctx context.Context, c tools.Call, text string) ([]order, error) {
	if len(text) > maxChain {
		return nil, tools.Usagef("the chain has more than %d bytes", maxChain)
	}
	var links []link
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&links); err != nil && !errors.Is(err, io.EOF) {
		return nil, tools.Usagef("the chain is no list of steps: %s", tools.Clip(yamlMistake(err), 500))
	}
	switch {
	case len(links) == 0:
		return nil, tools.Usagef("there are no steps in the chain")
	case len(links) > maxSteps:
		return nil, tools.Usagef("the chain has %d steps, and %d are allowed", len(links), maxSteps)
	case len(links) > f.Config.Max:
		return nil, tools.Usagef("the chain has %d steps, and %d children are allowed (agents.max)", len(links), f.Config.Max)
	}
	var orders []order
	known := map[string]string{}
	for i, l := range links {
		o, err := f.orderOf(ctx, c, l, i+1, known)
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
		known["previous"], known["results."+o.name] = "", ""
	}
	return orders, nil
}

// yamlMistake is the first mistake in a chain, without names of Go.
func yamlMistake(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if all, ok := errors.AsType[*yaml.TypeError](err); ok && len(all.Errors) > 0 {
		text = all.Errors[0]
	}
	return strings.NewReplacer(" in type delegate.link", " in a step", "[]delegate.link", "a list of steps", "delegate.link", "a step",
		"[]string", "a list of texts", "into string", "into a text").Replace(text)
}

var stepName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// orderOf checks a step; known are the names that it may use.
func (f *Family) orderOf(ctx context.Context, c tools.Call, l link, n int, known map[string]string) (order, error) {
	o := order{name: l.Name, task: strings.TrimSpace(l.Task), skill: l.Skill, profile: l.Profile}
	if o.name == "" {
		o.name = fmt.Sprint(n)
	}
	bad := func(format string, args ...any) error {
		return tools.Usagef("step %d: %s", n, fmt.Sprintf(format, args...))
	}
	if !stepName().MatchString(o.name) {
		return o, bad("%.80q is no name: letters, digits, - and _ are", o.name)
	}
	if _, twice := known["results."+o.name]; twice {
		return o, bad("two steps are called %q", o.name)
	}
	if o.task == "" {
		return o, bad("the task is missing")
	}
	for _, text := range append([]string{o.task}, l.Pass...) {
		if len(text) > maxTask {
			return o, bad("a text has %d bytes, and %d are allowed", len(text), maxTask)
		}
		if name := unknown(text, known); name != "" {
			return o, bad("{{.%s}} is no report of a step before", name)
		}
		if unclosed(text) {
			return o, bad("a {{ has no }}; {{.previous}} and {{.results.NAME}} stand for reports, and a text that has {{ in it is passed as a file")
		}
	}
	if err := f.suits(c, o); err != nil {
		return o, bad("%v", err)
	}
	if l.JSON != nil {
		text, err := schemaText(l.JSON)
		if err == nil {
			o.schema, err = readSchema(ctx, c, text)
		}
		if err != nil {
			return o, bad("%v", err)
		}
	}
	var err error
	o.passed, err = readPassed(ctx, c, l.Pass)
	return o, err
}

// schemaText is a schema as text, also where the file has it as it stands.
func schemaText(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	data, err := json.Marshal(v)
	return string(data), err
}
