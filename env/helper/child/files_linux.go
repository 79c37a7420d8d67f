package child

import (
	"context"
	"io"

	"github.com/minibench/mini/env"
)

var _ env.Files = (*Environment)(nil)

// Put copies files in (see env.Files). If the helper is lost the error is as in
// Execute.
func (e *Environment) Put(ctx context.Context, dir string, tree io.Reader) error {
	return e.client.MapError(ctx, e.client.Put(ctx, dir, tree), e.lost)
}

// Get copies files out (see env.Files). If the helper is lost the error is as in
// Execute.
func (e *Environment) Get(ctx context.Context, path string, tree io.Writer) error {
	return e.client.MapError(ctx, e.client.Get(ctx, path, tree), e.lost)
}
