package tools

import (
	"maps"

	"github.com/minibench/mini/agent"
)

// TailProvider is a Tool that provides variables for the template of the text
// at the end of each prompt (tail_template).
type TailProvider interface {
	// TailVariables returns template variables by name. It is called before
	// each model call.
	TailVariables(a *agent.Attempt) map[string]any
}

// TailVariables returns the variables of all tools.
func (r *Registry) TailVariables(a *agent.Attempt) map[string]any {
	all := map[string]any{}
	for _, t := range r.tools {
		if provider, ok := t.Tool.(TailProvider); ok {
			maps.Copy(all, provider.TailVariables(a))
		}
	}
	return all
}
