package cli

import (
	"context"

	"github.com/minibench/mini/configs"
)

// newSkillTools makes the texts of skills; nil where they are off.
func newSkillTools(context.Context, *configs.Resolved) (ability, error) {
	return nil, nil //nolint:nilnil // not yet
}
