package cli

import (
	"context"

	"github.com/minibench/mini/configs"
)

// newMCPTools makes servers of the Model Context Protocol; nil where they are off.
func newMCPTools(context.Context, *configs.Resolved) (ability, error) {
	return nil, nil //nolint:nilnil // not yet
}
