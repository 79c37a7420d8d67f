package child

import (
	"context"
	"io"

	"github.com/minibench/mini/env"
)

var _ env.Files = (*Environment)(nil)

// Put copies files in (see env.Files). If the helper is lost the error is as in
// Execute.
func (b *Environment) Put(ctx context.Context, dir string, tree io.Reader) error {
	return b.client.MapError(ctx, b.client.Put(ctx, dir, tree), b.lost)
}

// Get copies files out (see env.Files). If the helper is lost the error is as in
// Execute.
func (b *Environment) Get(ctx context.Context, path string, tree io.Writer) error {
	return b.client.MapError(ctx, b.client.Get(ctx, path, tree), b.lost)
}
