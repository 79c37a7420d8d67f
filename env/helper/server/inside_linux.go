package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/process"
)

// runAtPost runs a command that may ask, or that runs inside of one that may.
func (s *server) runAtPost(ctx context.Context, id uint32, settings helper.Run, c process.Command) error {
	p := &post{id: id}
	if settings.Inside != 0 {
		if p.outer = s.desk.enter(settings.Inside); p.outer == nil {
			return nil // the Exit of that one is on its way, and says enough
		}
		p.depth = p.outer.depth + 1
	}
	j, ctx, err := s.jobAt(ctx, p)
	if err != nil {
		return err
	}
	p.job = j
	variables, err := s.desk.add(p, settings.Asks, settings.Local, c.Timeout)
	if err != nil {
		failure := env.Result{ExitCode: -1, OOMKilled: -1, Failure: fmt.Sprintf("The tools of the command cannot be offered: %v.", err)}
		go func() { // awaited as below
			defer close(j.done)
			defer s.leave(p)
			defer j.cancel(nil)
			s.lastWord(j, helper.KindExit, report(failure, nil))
		}()
		return nil
	}
	if settings.Asks {
		c.Env = process.Merge(c.Env, variables)
		c.Script, c.Env = withTool(s.setup.ToolDir, c.Shell, c.Script, c.Env)
	}
	c.Place, c.Expired = p.place, p.clock.Expired()
	go func() { // awaited by newJob or close, or by the command that it runs inside of
		defer close(j.done)
		defer s.leave(p)
		defer j.cancel(nil)
		res, err := s.runner.Run(ctx, c, &chunks{s.out, id})
		s.desk.remove(p)
		s.lastWord(j, helper.KindExit, report(res, err))
	}()
	return nil
}

// jobAt is newJob for a command with a post.
func (s *server) jobAt(ctx context.Context, p *post) (*job, context.Context, error) {
	if p.outer == nil {
		return s.newJob(ctx, p.id)
	}
	if p.depth > helper.MaxDepth {
		return nil, nil, fmt.Errorf("%w: a command inside of %d others", helper.ErrFrame, p.depth)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	outer := p.outer.job.cause
	j := &job{id: p.id, cancel: cancel, done: make(chan struct{}), inside: true}
	j.cause = func() error { // the end of the conversation is told to the outermost
		if err := outer(); errors.Is(err, errEnd) {
			return err
		}
		return context.Cause(ctx)
	}
	return j, ctx, nil
}

// leave tells the command that this one ran inside of, if any, that the last
// word on this one has been said.
func (s *server) leave(p *post) {
	if p.outer != nil {
		p.outer.inner.Done()
	}
}

// withoutTools leaves out what a helper was given that itself runs below one:
// nobody but a command of its own asks it.
func withoutTools(environ []string) []string {
	names := []string{helper.SocketVariable, helper.TokenVariable, helper.LocalVariable, pathVariable, functionVariable}
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name)
	})
}
