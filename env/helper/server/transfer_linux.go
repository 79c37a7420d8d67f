package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/minibench/mini/env/files"
	"github.com/minibench/mini/env/helper"
)

// put starts to unpack what the Data frames that follow bring.
func (s *server) put(ctx context.Context, f helper.Frame) error {
	dir, err := s.path(f)
	if err != nil {
		return err
	}
	j, ctx, err := s.newJob(ctx, f.ID)
	if err != nil {
		return err
	}
	j.in = make(chan []byte, helper.Window)
	s.carry(j, func() error {
		stream := &incoming{ctx: ctx, job: j, out: s.out}
		err := files.Unpack(stream, dir, files.Limits{OuterLinks: true})
		if err == nil {
			_, err = io.Copy(io.Discard, stream) // what follows the end mark
		}
		return err
	})
	return nil
}

// get starts to send what is at a path.
func (s *server) get(ctx context.Context, f helper.Frame) error {
	path, err := s.path(f)
	if err != nil {
		return err
	}
	j, ctx, err := s.newJob(ctx, f.ID)
	if err != nil {
		return err
	}
	j.credit = helper.NewCredit()
	s.carry(j, func() error {
		w := bufio.NewWriterSize(&outgoing{ctx: ctx, job: j, out: s.out}, helper.MaxChunk)
		if err := files.Pack(w, path); err != nil {
			return err
		}
		return w.Flush()
	})
	return nil
}

func (s *server) path(f helper.Frame) (string, error) {
	if len(f.Body) == 0 || len(f.Body) > helper.MaxPath {
		return "", fmt.Errorf("%w: a path of %d bytes", helper.ErrFrame, len(f.Body))
	}
	return s.absolute(string(f.Body)), nil
}

// carry lets files travel in a goroutine of their own, and reports the end.
func (s *server) carry(j *job, work func() error) {
	go func() { // awaited by newJob or close
		defer close(j.done)
		defer j.cancel(nil)
		s.lastWord(j, helper.KindDone, outcome(work()))
	}()
}

func outcome(err error) helper.Done {
	switch {
	case err == nil:
		return helper.Done{}
	case errors.Is(err, errCancel), errors.Is(err, errEnd):
		return helper.Done{Cancelled: true, Failure: err.Error()}
	}
	failure := err.Error()
	return helper.Done{Missing: errors.Is(err, fs.ErrNotExist), Failure: failure[:min(len(failure), maxFailure)]}
}

// maxFailure keeps a Done frame within its bound: a name in it may be anything,
// and JSON takes up to six bytes for one.
const maxFailure = 32 << 10

// data passes a piece of a stream on. It never waits, so that the end of the
// input is noticed: what finds no room was sent without credit.
func (s *server) data(f helper.Frame) error {
	if len(f.Body) > helper.MaxChunk {
		return fmt.Errorf("%w: chunk of %d bytes", helper.ErrFrame, len(f.Body))
	}
	if s.out.ended(f.ID) {
		return nil // Done crossed it on the way
	}
	if s.job == nil || s.job.id != f.ID || s.job.in == nil {
		return fmt.Errorf("%w: data of transfer %d, which is not under way", helper.ErrFrame, f.ID)
	}
	select {
	case s.job.in <- f.Body:
		return nil
	default:
		return fmt.Errorf("%w: more than %d chunks on their way", helper.ErrFrame, helper.Window)
	}
}

// more lets a Get go on.
func (s *server) more(f helper.Frame) error {
	if s.out.ended(f.ID) {
		return nil
	}
	if s.job == nil || s.job.id != f.ID || s.job.credit == nil {
		return fmt.Errorf("%w: credit for transfer %d, which is not under way", helper.ErrFrame, f.ID)
	}
	return s.job.credit.Grant(f.Body)
}

// incoming reads the stream of a Put. An empty chunk is its end.
type incoming struct {
	ctx  context.Context //nolint:containedctx // of the job; a reader has no other way to learn of its end
	job  *job
	out  *frames
	rest []byte
	used helper.Usage
	end  bool
}

func (r *incoming) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && !r.end {
		select {
		case r.rest = <-r.job.in:
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
		r.end = len(r.rest) == 0
		if more := r.used.Another(); more != nil {
			if err := r.out.send(helper.Frame{Kind: helper.KindMore, ID: r.job.id, Body: more}); err != nil {
				return 0, err
			}
		}
	}
	if r.end {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// outgoing sends the stream of a Get.
type outgoing struct {
	ctx context.Context //nolint:containedctx // likewise
	job *job
	out *frames
}

func (w *outgoing) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		select {
		case <-w.job.credit:
		case <-w.ctx.Done():
			return sent, context.Cause(w.ctx)
		}
		n := min(len(p)-sent, helper.MaxChunk)
		if err := w.out.send(helper.Frame{Kind: helper.KindData, ID: w.job.id, Body: p[sent : sent+n]}); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}
