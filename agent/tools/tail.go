package tools

import (
	"maps"

	"github.com/minibench/mini/agent"
)

// Tailer is a Tool that has something to say at the end of each prompt, where
// the configuration has a template for that.
type Tailer interface {
	// Tail are variables for the template, by name. It is called between commands,
	// before each call of the model.
	Tail(a *agent.Attempt) map[string]any
}

// Tail is what the tools have to say at the end of a prompt.
func (r *Registry) Tail(a *agent.Attempt) map[string]any {
	all := map[string]any{}
	for _, t := range r.tools {
		if tailer, ok := t.Tool.(Tailer); ok {
			maps.Copy(all, tailer.Tail(a))
		}
	}
	return all
}
