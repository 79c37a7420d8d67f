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

// runWithTools runs a command that may call tools or is nested.
func (s *server) runWithTools(ctx context.Context, id uint32, settings helper.Run, c process.Command) error {
	cmd := &command{id: id}
	if settings.Outer != 0 {
		if cmd.outer = s.tools.outerCommand(settings.Outer); cmd.outer == nil {
			return nil // the Exit of the outer command is being sent and implies the end of this one
		}
		cmd.depth = cmd.outer.depth + 1
	}
	j, ctx, err := s.newJobFor(ctx, cmd)
	if err != nil {
		return err
	}
	cmd.job = j
	variables, err := s.tools.add(cmd, settings.AllowTools, settings.LocalTools, c.Timeout)
	if err != nil {
		failure := env.Result{ExitCode: -1, OOMKilled: -1, Failure: fmt.Sprintf("The tools of the command cannot be offered: %v.", err)}
		go func() { // newJob, close or the outer command waits for it
			defer close(j.done)
			defer s.notifyOuter(cmd)
			defer j.cancel(nil)
			s.sendReport(j, helper.KindExit, report(failure, nil))
		}()
		return nil
	}
	if settings.AllowTools {
		c.Env = process.MergeEnv(c.Env, variables)
		c.Script, c.Env = withTool(s.setup.ToolDir, c.Shell, c.Script, c.Env)
	}
	c.Scope, c.Expired = cmd.scope, cmd.timer.C()
	go func() { // newJob, close or the outer command waits for it
		defer close(j.done)
		defer s.notifyOuter(cmd)
		defer j.cancel(nil)
		res, err := s.runner.Run(ctx, c, &outputWriter{s.out, id})
		s.tools.remove(cmd)
		s.sendReport(j, helper.KindExit, report(res, err))
	}()
	return nil
}

// newJobFor is newJob for a command that may call tools or is nested.
func (s *server) newJobFor(ctx context.Context, c *command) (*job, context.Context, error) {
	if c.outer == nil {
		return s.newJob(ctx, c.id)
	}
	if c.depth > helper.MaxNesting {
		return nil, nil, fmt.Errorf("%w: nesting depth of %d", helper.ErrFrame, c.depth)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	outerCause := c.outer.job.cause
	j := &job{id: c.id, cancel: cancel, done: make(chan struct{}), nested: true}
	j.cause = func() error { // the end of the connection is recorded in the outermost job
		if err := outerCause(); errors.Is(err, errDisconnected) {
			return err
		}
		return context.Cause(ctx)
	}
	return j, ctx, nil
}

// notifyOuter tells the outer command, if any, that the report of this one has been
// sent.
func (s *server) notifyOuter(c *command) {
	if c.outer != nil {
		c.outer.nested.Done()
	}
}

// withoutTools removes the variables for tool calls. The helper inherits them if it
// runs inside another sandbox, whose tools its commands must not call.
func withoutTools(environ []string) []string {
	names := []string{helper.SocketVariable, helper.TokenVariable, helper.LocalVariable, helper.BridgeVariable, pathVariable, functionVariable}
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name)
	})
}
