package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Person is asked what no program decides. Its methods are called one at a time,
// on the attempt's goroutine; the clock of the attempt stands still meanwhile. An
// error ends the attempt, ErrInterrupted in good order.
type Person interface {
	// Turn is asked before each call of the model. A command is run in its place,
	// and the model is told of it; "" lets the model have its turn.
	Turn(ctx context.Context) (command string, err error)
	// Raise is asked when the limit on steps or cost is reached; false ends the
	// attempt.
	Raise(ctx context.Context, reached Limits) (Limits, bool, error)
	// Next is asked when the attempt would end with a submission: a new task, or
	// "" to let it end.
	Next(ctx context.Context, s *Submitted) (string, error)
}

// Limits bound the model calls and the US dollars of an attempt; 0 is no limit.
type Limits = trajectories.Limits

// heed is what is said to the attempt before a call of the model: that it was
// interrupted, where to go, a command of the person's own. All of it is Feedback.
func (r *run) heed(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, err := r.listen(ctx); f != nil || err != nil {
		return errors.Join(err, asError(f))
	}
	if r.Person == nil {
		return nil
	}
	command, err := asked(r, func() (string, error) { return r.Person.Turn(ctx) })
	switch {
	case err != nil:
		return orCause(ctx, err)
	case r.Talk.halted():
		return r.heed(ctx)
	case command == "":
		return nil
	}
	return r.runForPerson(ctx, command)
}

// listen takes what was said through Talk; nil is nothing.
func (r *run) listen(ctx context.Context) (*Feedback, error) {
	f := &Feedback{Reason: "UserInterruption"}
	asks, steers := r.Talk.heard()
	for _, ask := range asks {
		text, err := asked(r, func() (string, error) { return ask(ctx) })
		if err != nil {
			return nil, orCause(ctx, err)
		}
		if text != "" {
			f.add(trajectories.CauseInterruption, model.Message{Role: model.User, Content: text})
		}
	}
	for _, text := range steers {
		f.add(trajectories.CauseSteer, model.Message{Role: model.User, Content: text})
	}
	if len(f.Messages) == 0 {
		return nil, nil
	}
	return f, nil
}

// asError keeps a nil Feedback from becoming an error that is not nil.
func asError(f *Feedback) error {
	if f == nil {
		return nil
	}
	return f
}

// runForPerson runs a command that a person wrote, and tells the model of both in
// one message: no reply asked for it.
func (r *run) runForPerson(ctx context.Context, command string) error {
	res, halted, err := r.execute(ctx, command, true)
	if err != nil {
		return err
	}
	if text, ok := submission(res); ok && !halted {
		return r.submit(ctx, protocol.Action{Command: command}, text)
	}
	told, err := r.observation(res, halted)
	if err != nil {
		return err
	}
	m := trajectories.Message{Cause: trajectories.CauseCommand, Actions: []string{command}}
	m.Role, m.Content = model.User, fmt.Sprintf("The user ran a command:\n%s\n%s", fenced(command), told)
	return &Feedback{Reason: "UserCommand", Messages: []trajectories.Message{m}}
}

// fenced is a command in a block that it cannot end.
func fenced(command string) string {
	fence := "```"
	for strings.Contains(command, fence) {
		fence += "`"
	}
	return fence + "bash\n" + command + "\n" + fence
}

// raise asks for more when the limit on steps or cost is reached. What was
// raised is on record.
func (r *run) raise(ctx context.Context, reached error) error {
	if r.Person == nil || ctx.Err() != nil {
		return reached
	}
	type answer struct {
		limits Limits
		ok     bool
	}
	got, err := asked(r, func() (answer, error) {
		l, ok, err := r.Person.Raise(ctx, r.limits)
		return answer{l, ok}, err
	})
	switch {
	case err != nil:
		return orCause(ctx, err)
	case !got.ok:
		return reached
	}
	before := r.limits
	r.limits = got.limits
	r.publishLimit(reached, before, true)
	_, err = r.record(trajectories.TypeLimits, r.limits)
	return err
}

// goOnAfter is what comes after the work was handed in: what was said meanwhile,
// what was queued for this moment, or what the person wants next. Without any
// of these the attempt ends.
func (r *run) goOnAfter(ctx context.Context, s *Submitted) error {
	if ctx.Err() != nil {
		return s
	}
	f, err := r.listen(ctx)
	if err != nil {
		return err
	}
	if f == nil {
		text := r.Talk.followUp()
		if text == "" && r.Person != nil {
			if text, err = asked(r, func() (string, error) { return r.Person.Next(ctx, s) }); err != nil {
				return orCause(ctx, err)
			}
		}
		if text == "" {
			return s
		}
		f = &Feedback{}
		f.add(trajectories.CauseFollowUp, model.Message{Role: model.User, Content: text})
	}
	handedIn := &Feedback{}
	if a := r.handedIn; a != nil && a.CallID != "" { // a call must have an answer
		handedIn.add(trajectories.CauseObservation, r.protocol.Answer(*a, "The work was handed in, and the conversation goes on."))
	}
	r.handedIn, r.submitted, r.returned = nil, "", false
	return r.say(append(handedIn.Messages, f.Messages...)...)
}

// asked waits for somebody who is not the agent, while its clock stands still.
func asked[T any](r *run, question func() (T, error)) (T, error) {
	defer r.clock.pause()()
	return question()
}
