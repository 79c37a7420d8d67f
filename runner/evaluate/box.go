package evaluate

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/rootdir"
)

// box is a sandbox at work on one patch.
type box struct {
	env.Environment
	log  *runLog
	root *rootdir.Dir // of the run
}

// put brings one file into the sandbox, byte for byte.
func (b box) put(ctx context.Context, name string, data []byte) error {
	files, ok := env.FilesOf(b.Environment)
	if !ok {
		return errors.New("the sandbox takes no files")
	}
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Base(name), Mode: 0o644, Size: int64(len(data)), ModTime: time.Now(), Format: tar.FormatPAX,
	})
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return files.Put(ctx, path.Dir(name), &tree)
}

// evaluate runs the script that is in the sandbox, with its output going to
// the file at out. The error is the sandbox's, or that of the file.
func (b box) evaluate(ctx context.Context, timeout time.Duration, out string) (res env.Result, err error) {
	f, err := b.root.OpenFile(out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return res, fmt.Errorf("%w: %w", env.ErrSink, err)
	}
	defer func() {
		if failed := f.Close(); failed != nil && err == nil {
			err = fmt.Errorf("%w: %w", env.ErrSink, failed)
		}
	}()
	text := &validText{w: f}
	res, err = b.Execute(ctx, env.Command{
		Interpreter: []string{"/bin/bash"}, Script: scriptPath, Timeout: timeout, Sink: text, OutputLimit: logLimit,
	})
	if errors.Is(err, env.ErrSink) {
		return res, err // the sink may still be in use
	}
	failed := text.Flush()
	if res.TimedOut && failed == nil {
		_, failed = fmt.Fprintf(f, "\n\nTimeout error: %d seconds exceeded.", int64(timeout/time.Second))
	}
	if failed != nil && err == nil {
		err = fmt.Errorf("%w: %w", env.ErrSink, failed)
	}
	return res, err
}
