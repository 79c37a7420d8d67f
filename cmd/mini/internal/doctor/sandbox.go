package doctor

import (
	"context"
	"errors"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/binaries"
)

// sandbox is about what makes sandboxes without a container engine. It tries
// one: whether a user may make namespaces, no setting alone says.
func (e *examination) sandbox(ctx context.Context) []Check {
	if e.Sandbox == nil {
		return nil
	}
	err := e.Sandbox(ctx)
	lost, isLost := errors.AsType[*env.Error](err)
	switch {
	case errors.Is(err, binaries.ErrNotBuilt):
		return nil // the check of the helper says it
	case isLost:
		return []Check{{"sandbox", Fail, lost.Op + ": " + lost.Err.Error(), lost.Hint}}
	case err != nil:
		return []Check{{"sandbox", Fail, err.Error(), ""}}
	}
	return []Check{
		{"sandbox", OK, e.Environment + " works: a sandbox was brought up and closed", ""},
		{"bounds", Warn, bubblewrap.Unbounded, "fewer workers, or --environment-class docker for tasks that are not to be trusted"},
	}
}
