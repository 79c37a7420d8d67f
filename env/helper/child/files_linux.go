package child

import (
	"context"
	"io"

	"github.com/minibench/mini/env"
)

var _ env.Files = (*Box)(nil)

// Put carries files in; see env.Files. When the helper is lost the error is as
// in Execute.
func (b *Box) Put(ctx context.Context, dir string, tree io.Reader) error {
	return b.client.Outcome(ctx, b.client.Put(ctx, dir, tree), b.lost)
}

// Get carries files out; see env.Files. When the helper is lost the error is as
// in Execute.
func (b *Box) Get(ctx context.Context, path string, tree io.Writer) error {
	return b.client.Outcome(ctx, b.client.Get(ctx, path, tree), b.lost)
}
