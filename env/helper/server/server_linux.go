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

// The ways a conversation ends.
var (
	// ErrLease says that no frame came for as long as the client had promised.
	ErrLease = errors.New("lease expired")
	// errCancel is the cause of a command's end by a Cancel frame.
	errCancel = errors.New("cancelled by the client")
	// errEnd is the cause of a command's end with the conversation.
	errEnd = errors.New("conversation ended")
)

// closing bounds the kill at the end of the conversation.
const closing = 5 * time.Second

// Config is what the server is made of.
type Config struct {
	In   io.Reader
	Out  io.Writer // gets one frame per Write
	Hash string    // SHA-256 of the helper's binary, in hex
	// Environ is what commands inherit, in NAME=value form.
	Environ []string
}

// Serve talks to the client until the conversation ends, and kills everything
// that was started before it returns. It returns nil at the end of the input.
// A reader goroutine may still be blocked in Config.In after any other end;
// the program is expected to exit.
func Serve(ctx context.Context, c Config) (err error) {
	runner, err := process.NewOwner()
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	out := &frames{w: c.Out}
	s := &server{out: out, runner: runner, hash: c.Hash, environ: withoutTools(c.Environ), over: make(chan error, 1)}
	s.desk = &desk{out: out, posts: map[uint32]*post{}}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = errors.Join(err, s.close(ctx))
	}()
	go s.receive(ctx, c.In)
	select {
	case err := <-s.over:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type server struct {
	out     *frames
	runner  *process.Runner
	hash    string
	environ []string
	over    chan error // of capacity one: why the conversation ended
	setup   helper.Setup
	desk    *desk

	mu    sync.Mutex // held while a frame is handled
	ready bool
	ended bool
	lease *time.Timer // nil where the helper lives without one
	job   *job        // what is under way, or was last
}

// job is one command, or one transfer of files, on its way.
type job struct {
	id     uint32
	cancel context.CancelCauseFunc
	cause  func() error // why it was cancelled, if it was
	done   chan struct{}
	in     chan []byte   // of a Put: what has come; of capacity helper.Window
	credit helper.Credit // of a Get
	inside bool          // of a command that runs inside of another one
}

// readAhead holds the frame of a usual command, so that it takes one read.
const readAhead = 4 << 10

// receive reads frames and handles them. It does not wait for what they begin, so
// that the end of the input is noticed while a command runs. It returns with the
// end of the conversation or, where the stream still stands, never.
func (s *server) receive(ctx context.Context, in io.Reader) {
	buffered := bufio.NewReaderSize(in, readAhead)
	for {
		f, err := helper.ReadFrame(buffered, helper.MaxRequest)
		if !s.accept(ctx, f, err) {
			return
		}
	}
}

// accept handles one frame, or the lack of one, and says whether the conversation
// goes on.
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
		s.end(errors.Join(err, s.fault(err)))
	case s.lease != nil:
		s.lease.Reset(s.leaseTime())
	}
	return !s.ended
}

// end ends the conversation. The lock is held.
func (s *server) end(why error) {
	if !s.ended {
		s.ended = true
		s.over <- why
	}
}

func (s *server) leaseTime() time.Duration { return time.Duration(s.setup.LeaseSeconds) * time.Second }

func (s *server) handle(ctx context.Context, f helper.Frame) error {
	if s.ready == (f.Kind == helper.KindSetup) {
		return fmt.Errorf("%w: kind %q out of turn", helper.ErrFrame, f.Kind)
	}
	switch f.Kind {
	case helper.KindSetup:
		return s.greet(ctx, f)
	case helper.KindRun:
		return s.run(ctx, f)
	case helper.KindPut:
		return s.put(ctx, f)
	case helper.KindGet:
		return s.get(ctx, f)
	case helper.KindData:
		return s.data(f)
	case helper.KindMore:
		return s.more(f)
	case helper.KindCancel:
		if s.job != nil && s.job.id == f.ID { // otherwise it has just ended
			s.job.cancel(errCancel)
		} else {
			s.desk.cancel(f.ID)
		}
		return nil
	case helper.KindAnswer:
		return s.desk.answer(f)
	case helper.KindAlive:
		return nil
	default:
		return fmt.Errorf("%w: unknown kind %q", helper.ErrFrame, f.Kind)
	}
}

func (s *server) greet(ctx context.Context, f helper.Frame) error {
	if err := json.Unmarshal(f.Body, &s.setup); err != nil {
		return fmt.Errorf("%w: setup: %w", helper.ErrFrame, err)
	}
	if s.setup.Version != helper.Version {
		return fmt.Errorf("%w: client speaks version %d, this helper %d", helper.ErrFrame, s.setup.Version, helper.Version)
	}
	if s.setup.LeaseSeconds < 0 || s.setup.LeaseSeconds > int((365*24*time.Hour).Seconds()) {
		return fmt.Errorf("%w: lease of %d seconds", helper.ErrFrame, s.setup.LeaseSeconds)
	}
	s.environ = process.Merge(s.environ, s.setup.Env)
	uname := process.System()
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
			s.end(ErrLease)
		})
	}
	s.meet(ctx, s.setup.Meeting)
	return s.out.sendJSON(helper.KindHello, 0, h)
}

// directory is where commands start: dir, or where this process was started.
func directory(dir string) (path string, missing bool) {
	here, err := os.Getwd()
	if err != nil {
		here = "/"
	}
	if dir == "" {
		return here, false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(here, dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return here, true
	}
	return dir, false
}

// newJob puts a command or transfer in the place of the one that has ended.
func (s *server) newJob(ctx context.Context, id uint32) (*job, context.Context, error) {
	if s.job != nil {
		// Its last word may have left before its end was noted.
		select {
		case <-s.job.done:
		default:
			if !s.out.ended(s.job.id) {
				return nil, nil, fmt.Errorf("%w: request %d while %d is under way", helper.ErrFrame, id, s.job.id)
			}
			<-s.job.done
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.job = &job{id: id, cancel: cancel, cause: func() error { return context.Cause(ctx) }, done: make(chan struct{})}
	return s.job, ctx, nil
}

// absolute is a path of the client's, which may begin where commands start.
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
		Env:         process.Merge(s.environ, settings.Env),
		Timeout:     time.Duration(settings.TimeoutMillis) * time.Millisecond,
		OutputLimit: settings.OutputLimit,
		Markers:     settings.Markers,
	}
	if settings.Dir != "" {
		c.Dir = s.absolute(settings.Dir)
	}
	if settings.Asks || settings.Inside != 0 {
		return s.runAtPost(ctx, f.ID, settings, c)
	}
	j, ctx, err := s.newJob(ctx, f.ID)
	if err != nil {
		return err
	}
	go func() { // awaited by newJob or close
		defer close(j.done)
		defer j.cancel(nil)
		res, err := s.runner.Run(ctx, c, &chunks{s.out, j.id})
		s.lastWord(j, helper.KindExit, report(res, err))
	}()
	return nil
}

// lastWord tells how a command or transfer ended, unless it ended with the
// conversation: half of that may still be open, and what was killed for the
// other half's sake is not to be taken for what ended by itself.
func (s *server) lastWord(j *job, kind helper.Kind, report any) {
	if errors.Is(j.cause(), errEnd) {
		return
	}
	if j.inside {
		s.out.sendJSON(kind, j.id, report) //nolint:errcheck // likewise
		return
	}
	s.out.end(j.id, kind, report) //nolint:errcheck // nobody is there to be told; the end of the input follows
}

func report(r env.Result, err error) helper.Exit {
	over := errors.Is(err, process.ErrOver)
	r.RootFull = rootFull()
	return helper.Exit{Result: r, Cancelled: err != nil && !over, Over: over}
}

// fault tells the client why the helper gives up.
func (s *server) fault(err error) error {
	return s.out.send(helper.Frame{Kind: helper.KindFault, Body: []byte(err.Error())})
}

// close ends the command or transfer under way, as far as the client still reads, and kills
// everything.
func (s *server) close(ctx context.Context) error {
	defer s.desk.close()
	s.mu.Lock()
	s.ended = true
	if s.lease != nil {
		s.lease.Stop()
	}
	j := s.job
	s.mu.Unlock()
	if j != nil {
		j.cancel(errEnd)
		select {
		case <-j.done:
		case <-time.After(time.Second): // its output has no reader
		}
	}
	return s.runner.Close(ctx)
}
