package cli

import (
	"context"

	"github.com/minibench/mini/configs"
)

// newDelegateTools makes children, chains of them and their board; nil where they are off.
func newDelegateTools(context.Context, *configs.Resolved) (ability, error) {
	return nil, nil //nolint:nilnil // not yet
}
