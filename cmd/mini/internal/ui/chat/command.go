package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

const bangHelp = "!COMMAND runs a command where the model's commands run. The model is shown the command and its output " +
	"with your next message or its next step."

// ErrNotStarted means that the sandbox has not started yet.
var ErrNotStarted = errors.New("the container starts after the task is given; then !COMMAND works")

// Executor runs a command in the sandbox of the session. onOutput is called with chunks of the
// output while the command runs. The error is ErrNotStarted, the cause of ctx, or an *env.Error.
type Executor func(ctx context.Context, script string, onOutput func(chunk []byte)) (env.Result, error)

// runCommand runs a command of the user, shows its output, and passes both to the model. It is
// called while a question waits, so that no command of the model runs.
func (s *Session) runCommand(ctx context.Context, script string) {
	if s.Execute == nil {
		s.notifyError("!COMMAND does not work here.")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.setCancelCommand(cancel)
	defer s.setCancelCommand(nil)
	step := s.currentState().Step
	bus := events.NewBus() // not that of the agent, which may not work yet
	shown := make(chan struct{})
	sub := bus.Subscribe(0)
	go func() {
		defer close(shown)
		for e := range sub.All(context.WithoutCancel(ctx)) { // until the bus is closed
			s.Frontend.ShowEvent(e)
		}
	}()
	bus.Publish(events.PhaseStarted{Phase: events.PhaseRunning, Step: step, Command: script, ByUser: true})
	onOutput, endOutput := bus.OutputFunc(step)
	c := agent.UserCommand{Script: script, Start: time.Now()}
	var err error
	c.Result, err = s.Execute(ctx, script, onOutput)
	endOutput()
	x := trajectories.Execution{
		Command: script, ByUser: true, ExitCode: c.Result.ExitCode, Signal: c.Result.Signal, TimedOut: c.Result.TimedOut,
		Bytes: c.Result.Bytes, Truncated: c.Result.Truncated, Duration: trajectories.Seconds(time.Since(c.Start)),
	}
	if c.Interrupted = ctx.Err() != nil; c.Interrupted {
		x.ExitCode, x.Exception = -1, "interrupted"
	}
	bus.Publish(events.Recorded{Step: step, Data: x})
	bus.Close()
	<-shown
	if err != nil && !c.Interrupted {
		s.notifyError("The command did not run: %s", sanitize.Line(err.Error()))
		return
	}
	s.Inbox.AddCommand(c)
}

func (s *Session) setCancelCommand(cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelCommand = cancel
}

// ModelRefused tells the user that a model which the user has switched to refused its first call,
// and that another one is used.
func (s *Session) ModelRefused(refused, used string, err error) {
	s.updateState(func(st *State) { st.Model = used })
	s.notifyError("%s refused the call, so the model is %s again: %s", sanitize.Line(refused), sanitize.Line(used), sanitize.Line(err.Error()))
}

// minRetryWait is the shortest wait for a retry that the user is told about.
const minRetryWait = time.Second

// ModelRetries tells the user that a request to the provider has failed and is sent again.
func (s *Session) ModelRetries(r model.Retry) {
	if r.Wait >= minRetryWait {
		s.notify("%s; try %d of %d in %.0f s", sanitize.Line(text.Clip(r.Err.Error(), 300)), r.Try, r.MaxTries, r.Wait.Seconds())
	}
}

// switchModel shows the model and the others of its server or, with a name, switches to that model. A part of
// a name stands for the only listed name that contains it.
func (s *Session) switchModel(ctx context.Context, name string) {
	s.switching.Lock()
	defer s.switching.Unlock()
	if name == "" {
		s.notify("The model is %s; /model NAME switches to another.", sanitize.Line(s.currentState().Model))
	}
	if s.SwitchModel == nil {
		if name != "" {
			s.notifyError("The model cannot be switched here.")
		}
		return
	}
	name, ok := s.findModel(ctx, name)
	if !ok {
		return
	}
	used, err := s.SwitchModel(ctx, name)
	if err != nil {
		s.notifyError("The model stays %s: %v", sanitize.Line(s.currentState().Model), err)
		return
	}
	s.updateState(func(st *State) { st.Model = used })
	s.notify("Switched to %s for the next steps.", sanitize.Line(used))
}

// maxListedModels is the number of models that findModel shows.
const maxListedModels = 20

// findModel returns the name of the model that the user wants. If the server lists several models for the
// name, or there is no name, findModel shows them and returns false. A name that the list lacks may be
// that of another provider.
func (s *Session) findModel(ctx context.Context, name string) (string, bool) {
	if s.ListModels == nil {
		return name, name != ""
	}
	names, server, err := s.ListModels(ctx)
	switch {
	case err != nil && name == "":
		s.notify("There is no list of models: %s", sanitize.Line(err.Error()))
		return "", false
	case err != nil, slices.Contains(names, name):
		return name, true
	}
	found := slices.DeleteFunc(slices.Clone(names), func(listed string) bool { return !ask.Matches(listed, name) })
	if name != "" && len(found) <= 1 {
		return append(found, name)[0], true
	}
	var list strings.Builder
	for _, listed := range found[:min(len(found), maxListedModels)] {
		list.WriteString("\n  " + sanitize.Line(listed))
	}
	if n := len(found) - maxListedModels; n > 0 {
		fmt.Fprintf(&list, "\n  and %d more; /model and a part of a name shows those that have it", n)
	}
	s.notify("%s has:%s", sanitize.Line(server), &list)
	return "", false
}
