package local

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/files"
)

var _ env.Files = (*Local)(nil)

// Put unpacks a tar stream into dir (see env.Files). It can access all files of the
// user, as commands can.
func (l *Local) Put(ctx context.Context, dir string, tree io.Reader) error {
	return l.runner.Put(ctx, l.path(dir), tree)
}

// Get writes path as a tar stream (see env.Files).
func (l *Local) Get(ctx context.Context, path string, tree io.Writer) error {
	return l.runner.Get(ctx, l.path(path), tree)
}

func (l *Local) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.config.Dir, path)
}

// Put unpacks a tar stream into dir.
func (d *directRunner) Put(ctx context.Context, dir string, tree io.Reader) error {
	ctx, _, release, err := d.acquire(ctx)
	if err == nil {
		defer release()
		err = files.Unpack(ctxReader{ctx, tree}, dir, files.Limits{AllowOutsideLinks: true})
	}
	if err != nil {
		return fmt.Errorf("put files into %q: %w", dir, err)
	}
	return nil
}

// Get writes path as a tar stream.
func (d *directRunner) Get(ctx context.Context, path string, tree io.Writer) error {
	ctx, _, release, err := d.acquire(ctx)
	if err == nil {
		defer release()
		err = files.Pack(ctxWriter{ctx, tree}, path)
	}
	if err != nil {
		return fmt.Errorf("get files from %q: %w", path, err)
	}
	return nil
}

// ctxReader and ctxWriter fail after their context has ended.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // Read has no context parameter
	io.Reader
}

func (r ctxReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

type ctxWriter struct {
	ctx context.Context //nolint:containedctx // likewise
	io.Writer
}

func (w ctxWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.Writer.Write(p)
}
