package child

import (
	"context"
	"errors"
	"io"

	"github.com/minibench/mini/env"
)

var _ env.Files = (*Box)(nil)

// Put carries files in; see env.Files. When the helper is lost the error is as
// in Execute.
func (b *Box) Put(ctx context.Context, dir string, tree io.Reader) error {
	return b.carried(ctx, b.client.Put(ctx, dir, tree))
}

// Get carries files out; see env.Files. When the helper is lost the error is as
// in Execute.
func (b *Box) Get(ctx context.Context, path string, tree io.Writer) error {
	return b.carried(ctx, b.client.Get(ctx, path, tree))
}

// carried tells a lost helper from a transfer that failed.
func (b *Box) carried(ctx context.Context, err error) error {
	over := b.client.Err()
	switch {
	case err == nil || over == nil:
		return err
	case errors.Is(over, env.ErrClosed):
		return errors.Join(cause(ctx), env.ErrClosed)
	}
	return errors.Join(cause(ctx), b.lost(over))
}
