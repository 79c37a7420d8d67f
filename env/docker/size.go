package docker

import (
	"context"
	"errors"

	"github.com/minibench/mini/env"
)

// LocalSize is how much room an image takes in the engine, in bytes; here is
// false when it would have to be pulled, or has a name that no image can have.
// Images share layers, so the sum over several is an upper bound.
func (e *Engine) LocalSize(ctx context.Context, name, platform string) (bytes int64, here bool, err error) {
	found, err := e.inspect(ctx, Config{Image: name, Platform: platform})
	if bad, ok := errors.AsType[*env.Error](err); ok && bad.Status == env.ImageNotFound {
		return 0, false, nil // its own instances will find out
	}
	if err != nil || found == nil {
		return 0, false, err
	}
	return found.Size, true, nil
}
