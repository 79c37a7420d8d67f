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
	"github.com/minibench/mini/internal/rootdir"
)

// evalSandbox is a sandbox that evaluates one patch.
type evalSandbox struct {
	env.Environment
	log  *runLog
	root *rootdir.Dir // the run folder
}

// putFile writes a file into the sandbox.
func (s evalSandbox) putFile(ctx context.Context, name string, data []byte) error {
	files, ok := env.AsFiles(s.Environment)
	if !ok {
		return errors.New("copy files into the sandbox: not supported by this environment")
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Base(name), Mode: 0o644, Size: int64(len(data)), ModTime: time.Now(),
		Format: tar.FormatPAX,
	})
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return files.Put(ctx, path.Dir(name), &archive)
}

// runScript runs the evaluation script in the sandbox and writes its output to
// the file out. The error is an infrastructure failure; it wraps env.ErrSink if
// out cannot be written.
func (s evalSandbox) runScript(ctx context.Context, timeout time.Duration, out string) (res env.Result, err error) {
	f, err := s.root.OpenFile(out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return res, fmt.Errorf("%w: %w", env.ErrSink, err)
	}
	defer func() {
		if werr := f.Close(); werr != nil && err == nil {
			err = fmt.Errorf("%w: %w", env.ErrSink, werr)
		}
	}()
	text := &utf8Writer{w: f}
	res, err = s.Execute(ctx, env.Command{
		Interpreter: []string{"/bin/bash"}, Script: scriptPath, Timeout: timeout, Sink: text, OutputLimit: logLimit,
	})
	if errors.Is(err, env.ErrSink) {
		return res, err // the sink may still be in use
	}
	werr := text.Flush()
	if res.TimedOut && werr == nil {
		_, werr = fmt.Fprintf(f, "\n\nTimeout error: %d seconds exceeded.", int64(timeout/time.Second))
	}
	if werr != nil && err == nil {
		err = fmt.Errorf("%w: %w", env.ErrSink, werr)
	}
	return res, err
}
