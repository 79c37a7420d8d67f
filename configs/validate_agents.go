package configs

import (
	"errors"

	"github.com/minibench/mini/agent/delegate"
)

// validateAgents is about children of agents.
func (r *Resolved) validateAgents() []error {
	err := r.Agents.Validate()
	if e, ok := errors.AsType[*delegate.FieldError](err); ok {
		return []error{r.errorf("agents."+e.Field, "%v", e.Err)}
	}
	return nil
}
