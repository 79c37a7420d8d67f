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

// put starts a job that unpacks the stream of the Data frames that follow.
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
	s.runTransfer(j, func() error {
		stream := &putReader{ctx: ctx, job: j, out: s.out}
		err := files.Unpack(stream, dir, files.Limits{AllowOutsideLinks: true})
		if err == nil {
			_, err = io.Copy(io.Discard, stream) // padding after the end mark
		}
		return err
	})
	return nil
}

// get starts a job that sends the files at a path.
func (s *server) get(ctx context.Context, f helper.Frame) error {
	path, err := s.path(f)
	if err != nil {
		return err
	}
	j, ctx, err := s.newJob(ctx, f.ID)
	if err != nil {
		return err
	}
	j.credit = helper.NewCredit(helper.Window)
	s.runTransfer(j, func() error {
		w := bufio.NewWriterSize(&getWriter{ctx: ctx, job: j, out: s.out}, helper.MaxChunk)
		if err := files.Pack(w, path); err != nil {
			return err
		}
		return w.Flush()
	})
	return nil
}

func (s *server) path(f helper.Frame) (string, error) {
	if len(f.Body) == 0 || len(f.Body) > helper.MaxPath {
		return "", fmt.Errorf("%w: path of %d bytes", helper.ErrFrame, len(f.Body))
	}
	return s.absolute(string(f.Body)), nil
}

// runTransfer runs a transfer in a new goroutine and sends its report.
func (s *server) runTransfer(j *job, work func() error) {
	go func() { // newJob or close waits for it
		defer close(j.done)
		defer j.cancel(nil)
		s.sendReport(j, helper.KindDone, doneReport(work()))
	}()
}

func doneReport(err error) helper.Done {
	switch {
	case err == nil:
		return helper.Done{}
	case errors.Is(err, errCancel), errors.Is(err, errDisconnected):
		return helper.Done{Cancelled: true, Failure: err.Error()}
	}
	failure := err.Error()
	return helper.Done{Missing: errors.Is(err, fs.ErrNotExist), Failure: failure[:min(len(failure), maxFailure)]}
}

// maxFailure is the maximum length of Done.Failure, in bytes. It keeps a Done frame
// within its size limit: the message may contain any file name, and JSON may need six
// bytes for one byte.
const maxFailure = 32 << 10

// data passes a chunk to the running Put. It does not block, so that the end of the
// input is noticed: if the channel is full, the chunk was sent without credit.
func (s *server) data(f helper.Frame) error {
	if len(f.Body) > helper.MaxChunk {
		return fmt.Errorf("%w: chunk of %d bytes", helper.ErrFrame, len(f.Body))
	}
	if s.out.reportSent(f.ID) {
		return nil // Done was sent at the same time
	}
	if s.job == nil || s.job.id != f.ID || s.job.in == nil {
		return fmt.Errorf("%w: data of transfer %d, which is not running", helper.ErrFrame, f.ID)
	}
	select {
	case s.job.in <- f.Body:
		return nil
	default:
		return fmt.Errorf("%w: more than %d chunks in flight", helper.ErrFrame, helper.Window)
	}
}

// windowUpdate adds credit to the running Get.
func (s *server) windowUpdate(f helper.Frame) error {
	if s.out.reportSent(f.ID) {
		return nil
	}
	if s.job == nil || s.job.id != f.ID || s.job.credit == nil {
		return fmt.Errorf("%w: window update for transfer %d, which is not running", helper.ErrFrame, f.ID)
	}
	return s.job.credit.Grant(f.Body)
}

// putReader reads the stream of a Put. An empty chunk ends it.
type putReader struct {
	ctx  context.Context //nolint:containedctx // of the job; Read has no context parameter
	job  *job
	out  *frameWriter
	rest []byte
	used helper.ReceivedChunks
	eof  bool
}

func (r *putReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && !r.eof {
		select {
		case r.rest = <-r.job.in:
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
		r.eof = len(r.rest) == 0
		if update := r.used.Add(); update != nil {
			if err := r.out.send(helper.Frame{Kind: helper.KindWindowUpdate, ID: r.job.id, Body: update}); err != nil {
				return 0, err
			}
		}
	}
	if r.eof {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// getWriter sends the stream of a Get.
type getWriter struct {
	ctx context.Context //nolint:containedctx // likewise
	job *job
	out *frameWriter
}

func (w *getWriter) Write(p []byte) (int, error) {
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
