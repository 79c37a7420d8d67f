package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/process"
	"github.com/minibench/mini/env/sink"
)

// closing bounds the end of a direct.
const closing = 5 * time.Second

// direct runs commands as children of this program.
type direct struct {
	config  Config
	environ []string
	runner  *process.Runner
	turn    chan struct{} // holds a token while a command runs

	mu     sync.Mutex
	closed bool
	cancel context.CancelCauseFunc // ends the running command; nil between commands
}

func newDirect(c Config) (*direct, error) {
	runner, err := process.NewShared()
	if err != nil {
		return nil, err
	}
	d := &direct{config: c, environ: c.environ(), runner: runner, turn: make(chan struct{}, 1)}
	if tag := runner.Tag(); tag != "" {
		d.environ = append(d.environ, tag)
	}
	return d, nil
}

// Execute runs one command, after the one that runs now.
func (d *direct) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	res := env.Result{ExitCode: -1, OOMKilled: -1}
	err := d.inTurn(ctx, func(ctx context.Context) (err error) {
		if c.Sink != nil {
			res, err = d.pass(ctx, c)
			return err
		}
		var out bytes.Buffer
		res, err = d.runner.Run(ctx, d.command(c), watched(&out, c.Watch))
		res.Output = out.Bytes()
		return err
	})
	return res, err
}

// pass runs a command whose output goes to its sink. One that fails ends the
// command.
func (d *direct) pass(ctx context.Context, c env.Command) (env.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := sink.New(c.Sink, cancel)
	res, err := d.runner.Run(ctx, d.command(c), watched(out, c.Watch))
	if failed := out.Close(); failed != nil && !errors.Is(err, env.ErrSink) {
		err = errors.Join(err, failed)
	}
	return res, err
}

// watched is a writer whose pieces are shown to whoever watches.
func watched(w io.Writer, show func([]byte)) io.Writer {
	if show == nil {
		return w
	}
	return watcher{w, show}
}

type watcher struct {
	io.Writer
	show func([]byte)
}

// Write implements io.Writer.
func (w watcher) Write(p []byte) (int, error) {
	w.show(p)
	return w.Writer.Write(p)
}

// inTurn waits for what runs now and then does work, which Close can cancel.
func (d *direct) inTurn(ctx context.Context, work func(context.Context) error) error {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !d.begin(cancel) {
		return env.ErrClosed
	}
	defer d.begin(nil)
	return work(ctx)
}

// begin notes how to end the command that is about to run, nil when none is.
// It is false once the environment is closed.
func (d *direct) begin(cancel context.CancelCauseFunc) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel = cancel
	return !d.closed
}

func (d *direct) command(c env.Command) process.Command {
	shell := d.config.Interpreter
	if len(c.Interpreter) > 0 {
		shell = c.Interpreter
	}
	p := process.Command{
		Shell:       shell,
		Script:      c.Script,
		Dir:         d.config.Dir,
		Env:         process.Merge(d.environ, c.Env),
		Timeout:     c.Timeout,
		OutputLimit: c.OutputLimit,
		Markers:     c.Markers,
	}
	if c.Dir != "" {
		p.Dir = c.Dir
		if !filepath.IsAbs(p.Dir) {
			p.Dir = filepath.Join(d.config.Dir, p.Dir)
		}
	}
	if p.Timeout <= 0 {
		p.Timeout = d.config.Timeout
	}
	if p.OutputLimit == 0 {
		p.OutputLimit = d.config.OutputLimit
	}
	return p
}

// Close ends the running command and kills what earlier ones left running.
func (d *direct) Close(ctx context.Context) error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	if d.cancel != nil {
		d.cancel(env.ErrClosed)
	}
	d.mu.Unlock()
	if again {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer stop()
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
	}
	return d.runner.Close(ctx)
}
