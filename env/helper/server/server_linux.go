package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/process"
)

// The reasons why the connection or a command ends.
var (
	// ErrLeaseExpired means that no frame arrived within the client's lease.
	ErrLeaseExpired = errors.New("lease expired")
	// errCancel is the cause when a Cancel frame ends a command.
	errCancel = errors.New("cancelled by the client")
	// errDisconnected is the cause when the end of the connection ends a command.
	errDisconnected = errors.New("connection ended")
)

// closeTimeout limits the kill at the end of the connection.
const closeTimeout = 5 * time.Second

// Config configures Serve.
type Config struct {
	In   io.Reader
	Out  io.Writer // gets one frame per Write
	Hash string    // SHA-256 of the helper's binary, in hex
	// Environ is the environment that commands inherit, as NAME=value.
	Environ []string
}

// Serve serves the client until the connection ends, and kills all started processes
// before it returns. It returns nil at the end of the input, unless processes cannot be
// killed. After Serve has returned, a reader goroutine may still be blocked in
// Config.In or the socket; the program is expected to exit.
func Serve(ctx context.Context, c Config) (err error) {
	runner, err := process.NewRunner()
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	out := &frameWriter{w: c.Out}
	s := &server{out: out, runner: runner, hash: c.Hash, environ: withoutTools(c.Environ), done: make(chan error, 1)}
	s.tools = &toolServer{out: out, commands: map[uint32]*command{}}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, s.close(ctx))
	}()
	go s.receive(ctx, c.In)
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type server struct {
	out     *frameWriter
	runner  *process.Runner
	hash    string
	environ []string
	done    chan error // the reason for the end of the connection; capacity 1
	setup   helper.Setup
	tools   *toolServer

	mu    sync.Mutex // held while a frame is handled
	ready bool
	ended bool
	lease *time.Timer // nil without a lease
	job   *job        // the running or the last job that is not nested

	bridge *bridge // of the running command, or the last one that had a bridge
}

// job is one command or file transfer.
type job struct {
	id     uint32
	cancel context.CancelCauseFunc
	cause  func() error // the cause of the cancellation, nil if not cancelled
	done   chan struct{}
	in     chan []byte   // the data of a Put; capacity helper.Window
	credit helper.Credit // for the data of a Get
	nested bool          // whether this is the job of a nested command
}

// readBufferSize is large enough for the frame of a usual command, so that one read
// gets it.
const readBufferSize = 4 << 10

// receive reads and handles frames. It does not wait for the jobs that they start, so
// that the end of the input is noticed while a command runs. It returns when the
// connection ends; if in stays open, receive may stay blocked forever.
func (s *server) receive(ctx context.Context, in io.Reader) {
	buffered := bufio.NewReaderSize(in, readBufferSize)
	for {
		f, err := helper.ReadFrame(buffered, helper.MaxClientFrame)
		if !s.accept(ctx, f, err) {
			return
		}
	}
}

// accept handles one frame or read error, and reports whether the connection is still
// open.
func (s *server) accept(ctx context.Context, f helper.Frame, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	if err == nil {
		err = s.handle(ctx, f)
	}
	switch {
	case errors.Is(err, io.EOF):
		s.end(nil)
	case err != nil:
		s.end(errors.Join(err, s.sendError(err)))
	case s.lease != nil:
		s.lease.Reset(s.leaseTime())
	}
	return !s.ended
}

// end ends the connection. The caller holds the lock.
func (s *server) end(reason error) {
	if !s.ended {
		s.ended = true
		s.done <- reason
	}
}

func (s *server) leaseTime() time.Duration { return time.Duration(s.setup.LeaseSeconds) * time.Second }

func (s *server) handle(ctx context.Context, f helper.Frame) error {
	if s.ready == (f.Kind == helper.KindSetup) {
		return fmt.Errorf("%w: unexpected kind %q", helper.ErrFrame, f.Kind)
	}
	switch f.Kind {
	case helper.KindSetup:
		return s.handleSetup(ctx, f)
	case helper.KindRun:
		return s.run(ctx, f)
	case helper.KindPut:
		return s.put(ctx, f)
	case helper.KindGet:
		return s.get(ctx, f)
	case helper.KindData:
		return s.data(f)
	case helper.KindWindowUpdate:
		return s.windowUpdate(f)
	case helper.KindCancel:
		if s.job != nil && s.job.id == f.ID { // otherwise the command may have just ended
			s.job.cancel(errCancel)
		} else {
			s.tools.cancel(f.ID)
		}
		return nil
	case helper.KindToolResponse:
		return s.tools.respond(f)
	case helper.KindStreamData, helper.KindStreamCredit, helper.KindStreamClose:
		return s.acceptStream(f)
	case helper.KindKeepalive:
		return nil
	default:
		return fmt.Errorf("%w: unknown kind %q", helper.ErrFrame, f.Kind)
	}
}

func (s *server) handleSetup(ctx context.Context, f helper.Frame) error {
	if err := json.Unmarshal(f.Body, &s.setup); err != nil {
		return fmt.Errorf("%w: setup: %w", helper.ErrFrame, err)
	}
	if s.setup.Version != helper.Version {
		return fmt.Errorf("%w: client speaks version %d, this helper %d", helper.ErrFrame, s.setup.Version, helper.Version)
	}
	if s.setup.LeaseSeconds < 0 || s.setup.LeaseSeconds > int((365*24*time.Hour).Seconds()) {
		return fmt.Errorf("%w: lease of %d seconds", helper.ErrFrame, s.setup.LeaseSeconds)
	}
	s.environ = process.MergeEnv(s.environ, s.setup.Env)
	uname := process.Uname()
	h := helper.Hello{
		Version: helper.Version,
		Hash:    s.hash,
		System:  uname.System, Node: uname.Node, Release: uname.Release, Kernel: uname.Version, Machine: uname.Machine,
	}
	h.Dir, h.DirMissing = directory(s.setup.Dir)
	s.setup.Dir = h.Dir
	if shell, ok := process.FindShell(s.setup.Interpreter, s.environ); ok {
		h.Shell = shell[0]
	}
	s.ready = true
	if s.setup.LeaseSeconds > 0 {
		s.lease = time.AfterFunc(s.leaseTime(), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.end(ErrLeaseExpired)
		})
	}
	s.switchToSocket(ctx, s.setup.Socket)
	return s.out.sendJSON(helper.KindHello, 0, h)
}

// directory returns the working directory of commands: dir, made absolute, or the
// current directory if dir is empty or not an existing directory. missing reports the
// latter.
func directory(dir string) (path string, missing bool) {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "/"
	}
	if dir == "" {
		return cwd, false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(cwd, dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return cwd, true
	}
	return dir, false
}

// newJob creates the job of a command or transfer. If the report of the previous job
// has not been sent, it returns an error; otherwise it waits for the end of that job.
func (s *server) newJob(ctx context.Context, id uint32) (*job, context.Context, error) {
	if s.job != nil {
		// The client may have received the report of the previous job before that job's
		// done channel is closed.
		select {
		case <-s.job.done:
		default:
			if !s.out.reportSent(s.job.id) {
				return nil, nil, fmt.Errorf("%w: request %d while %d is running", helper.ErrFrame, id, s.job.id)
			}
			<-s.job.done
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.job = &job{id: id, cancel: cancel, cause: func() error { return context.Cause(ctx) }, done: make(chan struct{})}
	return s.job, ctx, nil
}

// absolute resolves a path of the client relative to the working directory of
// commands.
func (s *server) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.setup.Dir, path)
}

func (s *server) run(ctx context.Context, f helper.Frame) error {
	settings, script, err := helper.DecodeRun(f.Body)
	if err != nil {
		return err
	}
	if settings.TimeoutMillis < 0 || settings.TimeoutMillis > (365*24*time.Hour).Milliseconds() || settings.OutputLimit < 0 || settings.OutputLimit > env.SinkLimit {
		return fmt.Errorf("%w: timeout of %d ms, limit of %d bytes", helper.ErrFrame, settings.TimeoutMillis, settings.OutputLimit)
	}
	shell := s.setup.Interpreter
	if len(settings.Interpreter) > 0 {
		shell = settings.Interpreter
	}
	c := process.Command{
		Shell:       shell,
		Script:      script,
		Dir:         s.setup.Dir,
		Env:         process.MergeEnv(process.WithHome(s.environ, settings.User), settings.Env),
		User:        settings.User,
		Timeout:     time.Duration(settings.TimeoutMillis) * time.Millisecond,
		OutputLimit: settings.OutputLimit,
		Markers:     settings.Markers,
	}
	if settings.Dir != "" {
		c.Dir = s.absolute(settings.Dir)
	}
	if settings.Bridge && (settings.AllowTools || settings.Outer != 0) {
		return fmt.Errorf("%w: bridge of a command with tools", helper.ErrFrame)
	}
	if settings.AllowTools || settings.Outer != 0 {
		return s.runWithTools(ctx, f.ID, settings, c)
	}
	j, ctx, err := s.newJob(ctx, f.ID)
	if err != nil {
		return err
	}
	var b *bridge
	var failure string
	if settings.Bridge {
		if b, err = s.openBridge(); err != nil {
			failure = fmt.Sprintf("The bridge cannot be offered: %v.", err)
		} else {
			c.Env = process.MergeEnv(c.Env, map[string]string{helper.BridgeVariable: b.address})
		}
	}
	go func() { // newJob or close waits for it
		defer close(j.done)
		defer j.cancel(nil)
		res, err := env.Result{ExitCode: -1, OOMKilled: -1, Failure: failure}, error(nil)
		if failure == "" {
			res, err = s.runner.Run(ctx, c, &outputWriter{s.out, j.id})
		}
		b.close()
		s.sendReport(j, helper.KindExit, report(res, err))
	}()
	return nil
}

// sendReport sends the report of a command or transfer, except for one that was
// cancelled because the connection ended: one direction of the connection may still be
// open, and the client must not take a killed command for one that ended by itself.
func (s *server) sendReport(j *job, kind helper.Kind, report any) {
	if errors.Is(j.cause(), errDisconnected) {
		return
	}
	if j.nested {
		s.out.sendJSON(kind, j.id, report) //nolint:errcheck // likewise
		return
	}
	s.out.sendReport(j.id, kind, report) //nolint:errcheck // after a failed write the input ends, too
}

func report(r env.Result, err error) helper.Exit {
	outerEnded := errors.Is(err, process.ErrOuterEnded)
	r.DiskFull = rootFull()
	return helper.Exit{Result: r, Cancelled: err != nil && !outerEnded, OuterEnded: outerEnded}
}

// sendError sends the client the error that makes the helper exit.
func (s *server) sendError(err error) error {
	return s.out.send(helper.Frame{Kind: helper.KindError, Body: []byte(err.Error())})
}

// close cancels the running job, waits briefly for it, and kills all processes.
func (s *server) close(ctx context.Context) error {
	defer s.tools.close()
	s.mu.Lock()
	s.ended = true
	if s.lease != nil {
		s.lease.Stop()
	}
	j := s.job
	s.mu.Unlock()
	if j != nil {
		j.cancel(errDisconnected)
		select {
		case <-j.done:
		case <-time.After(time.Second): // the job is blocked because the client does not read its output
		}
	}
	return s.runner.Close(ctx)
}
