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

// Put unpacks a tar stream below dir; see env.Files. It takes turns with
// commands. The user's files are as reachable as for any command.
func (l *Local) Put(ctx context.Context, dir string, tree io.Reader) error {
	return l.runner.Put(ctx, l.path(dir), tree)
}

// Get writes what is at path as a tar stream; see env.Files. It takes turns with
// commands.
func (l *Local) Get(ctx context.Context, path string, tree io.Writer) error {
	return l.runner.Get(ctx, l.path(path), tree)
}

func (l *Local) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.config.Dir, path)
}

// Put unpacks in this process.
func (d *direct) Put(ctx context.Context, dir string, tree io.Reader) error {
	ctx, _, end, err := d.begin(ctx)
	if err == nil {
		defer end()
		err = files.Unpack(reader{ctx, tree}, dir, files.Limits{OuterLinks: true})
	}
	if err != nil {
		return fmt.Errorf("put files into %q: %w", dir, err)
	}
	return nil
}

// Get packs in this process.
func (d *direct) Get(ctx context.Context, path string, tree io.Writer) error {
	ctx, _, end, err := d.begin(ctx)
	if err == nil {
		defer end()
		err = files.Pack(writer{ctx, tree}, path)
	}
	if err != nil {
		return fmt.Errorf("get files from %q: %w", path, err)
	}
	return nil
}

// reader and writer end a transfer with its context.
type reader struct {
	ctx context.Context //nolint:containedctx // a reader has no other way to learn of it
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

type writer struct {
	ctx context.Context //nolint:containedctx // likewise
	io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.Writer.Write(p)
}
