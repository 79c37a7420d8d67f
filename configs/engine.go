package configs

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent"
)

// engineKey says which templates are in Jinja. In a file it may be one word for all
// templates of the file; without it, those of a file with keys of mini-swe-agent are in Jinja.
const engineKey = "template_engine"

// takeEngine removes the word of a file for all of its templates, and returns it.
func (l *Layer) takeEngine() (*yaml.Node, error) {
	a := child(l.root, "agent")
	engine := child(a, engineKey)
	if engine == nil || engine.Kind != yaml.ScalarNode || engine.Tag == "!!null" {
		return nil, nil //nolint:nilnil // no word
	}
	remove(a, []string{engineKey})
	if engine.Value != agent.EngineGo && engine.Value != agent.EngineJinja {
		return nil, l.errorf(engine, "agent.%s: %.60q is neither %s nor %s", engineKey, engine.Value, agent.EngineGo, agent.EngineJinja)
	}
	if len(l.prompts()) == 0 {
		return nil, l.errorf(engine, "agent.%s: it is about the templates of its own file, and there are none; name them: {instance_template: %s}", engineKey, engine.Value)
	}
	return engine, nil
}

// prompts returns the templates of a layer, by their names in agent.Config.
func (l *Layer) prompts() map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	if a := l.node("agent"); a != nil && a.Kind == yaml.MappingNode {
		for i := 0; i < len(a.Content); i += 2 {
			if key := a.Content[i].Value; isTemplate(key) {
				found[key] = a.Content[i+1]
			}
		}
	}
	if startup := l.node(startupKey); startup != nil {
		found["env_startup_command"] = startup
	}
	return found
}

// setEngine records the engine of each template of a layer, so that a template keeps
// it when layers are merged. word is the engine of the whole file, if it has one.
func (l *Layer) setEngine(word *yaml.Node) {
	prompts := l.prompts()
	engine, given := agent.EngineGo, l.node("agent."+engineKey)
	switch {
	case word != nil:
		engine = word.Value
	case given == nil && l.isPeer: // else given names those in Jinja
		engine = agent.EngineJinja
	}
	for _, name := range slices.Sorted(maps.Keys(prompts)) {
		if child(given, name) != nil {
			continue
		}
		if given == nil {
			given = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: prompts[name].Line}
			setNode(l.root, []string{"agent", engineKey}, given)
			given = l.node("agent." + engineKey)
		}
		given.Content = append(given.Content, scalar("!!str", name, prompts[name].Line), scalar("!!str", engine, prompts[name].Line))
	}
}

// finishEngines removes the engine of Go's templates, which is the default, and gives
// those in Jinja the settings that mini-swe-agent's templates can name.
func (r *Resolved) finishEngines() []error {
	var errs []error
	for name, engine := range r.Agent.TemplateEngine {
		if engine != agent.EngineGo && engine != agent.EngineJinja {
			errs = append(errs, r.errorf("agent."+engineKey+"."+name, "%.60q is neither %s nor %s", engine, agent.EngineGo, agent.EngineJinja))
		}
	}
	maps.DeleteFunc(r.Agent.TemplateEngine, func(name, engine string) bool {
		if engine == agent.EngineGo {
			delete(r.origins, "agent."+engineKey+"."+name)
		}
		return engine == agent.EngineGo
	})
	if len(r.Agent.TemplateEngine) == 0 {
		r.Agent.TemplateEngine = nil
		return errs
	}
	e, m := r.Redacted().Environment, r.Model
	r.Agent.JinjaSettings = map[string]any{
		"image": e.Image, "env": e.Env, "forward_env": e.ForwardEnv, "interpreter": e.Interpreter, "timeout": int64(e.Timeout),
		"pull_timeout": int64(e.PullTimeout), "environment_class": e.Class,
		"model_name": m.Name, "model_class": m.Class, "model_kwargs": m.Kwargs,
		"mode": r.Agent.Mode, "confirm_exit": r.Agent.ConfirmExit, "max_consecutive_format_errors": r.Agent.MaxFormatErrors,
		"action_regex": r.Agent.ActionRegex,
	}
	return errs
}

// Notes returns a sentence for each file with settings that have no effect.
func (r *Resolved) Notes() []string {
	var notes []string
	for _, l := range r.layers {
		if note := l.unusedNote(); note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}
