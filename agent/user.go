package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// User answers the questions of an interactive session. Its methods are called
// one at a time, on the attempt's goroutine, while the attempt's clock is
// paused. An error ends the attempt; use ErrInterrupted to end it in an orderly
// way.
type User interface {
	// NextCommand is called before each model call. It returns a command to run
	// instead, or "" to call the model. The model is shown the command and its
	// result.
	NextCommand(ctx context.Context) (command string, err error)
	// RaiseLimits is called when the limit on steps or cost is reached. It
	// returns the new limits, or false to end the attempt.
	RaiseLimits(ctx context.Context, reached Limits) (Limits, bool, error)
	// Answer is called after a reply without a command, if Config.PlainReply is
	// PlainReplyAsk. It returns a message to the model, or "" to tell the model
	// that its reply has no command.
	Answer(ctx context.Context) (message string, err error)
	// NextTask is called when the attempt would end with a submission. It
	// returns a new task, or "" to end the attempt.
	NextTask(ctx context.Context, s *Submitted) (string, error)
}

// Limits bounds the model calls and the US dollars of an attempt; 0 means no
// limit.
type Limits = trajectories.Limits

// checkInbox handles the user's interruptions, steering messages and commands
// before a model call. It returns them as *Feedback, or as *Submitted if the
// user's command submits; nil if there are none.
func (r *run) checkInbox(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, err := r.readInbox(ctx); f != nil || err != nil {
		return errors.Join(err, asError(f))
	}
	if r.User == nil {
		return nil
	}
	command, err := withClockPaused(ctx, func() (string, error) { return r.User.NextCommand(ctx) })
	switch {
	case err != nil:
		return causeOrErr(ctx, err)
	case r.Inbox.isInterrupted():
		return r.checkInbox(ctx)
	case command == "":
		return nil
	}
	return r.runUserCommand(ctx, command)
}

// readInbox removes the interruptions and steering messages from the inbox and
// returns them as Feedback; nil if there are none. Follow-ups stay.
func (r *run) readInbox(ctx context.Context) (*Feedback, error) {
	f := &Feedback{Reason: "UserInterruption"}
	for _, message := range r.Inbox.takeInterruptions() {
		text, err := withClockPaused(ctx, func() (string, error) { return message(ctx) })
		if err != nil {
			return nil, causeOrErr(ctx, err)
		}
		if text != "" {
			f.add(trajectories.CauseInterruption, model.Message{Role: model.User, Content: text})
		}
	}
	earlier, err := r.takeEarlierInput() // the user may also have sent it at the questions above
	if err != nil {
		return nil, err
	}
	f.Messages = append(earlier, f.Messages...)
	if len(f.Messages) == 0 {
		return nil, nil
	}
	return f, nil
}

// asError avoids returning a typed nil.
func asError(f *Feedback) error {
	if f == nil {
		return nil
	}
	return f
}

// runUserCommand runs a command of the user and shows the model the command and
// its result in one message, because no reply asked for it.
func (r *run) runUserCommand(ctx context.Context, command string) error {
	res, interrupted, err := r.execute(ctx, command, true)
	if err != nil {
		return err
	}
	if text, ok := ParseSubmission(res); ok && !interrupted {
		return r.submit(ctx, protocol.Action{Command: command}, text)
	}
	m, err := r.userCommandMessage(command, res, interrupted)
	if err != nil {
		return err
	}
	return &Feedback{Reason: "UserCommand", Messages: []trajectories.Message{m}}
}

// userCommandMessage returns the message that shows the model a command of the
// user and its result.
func (r *run) userCommandMessage(command string, res env.Result, interrupted bool) (trajectories.Message, error) {
	result, err := r.renderObservation(res, interrupted)
	m := trajectories.Message{Cause: trajectories.CauseUserCommand, Actions: []string{command}}
	m.Role, m.Content = model.User, fmt.Sprintf("The user ran a command:\n%s\n%s", fenced(command), result)
	return m, err
}

// takeEarlierInput returns the messages for the commands and the steering messages
// that the user sent before the answer to a question.
func (r *run) takeEarlierInput() ([]trajectories.Message, error) {
	f := &Feedback{}
	var err error
	if f.Messages, err = r.recordUserCommands(); err != nil {
		return nil, err
	}
	for _, text := range r.Inbox.TakePending() {
		f.add(trajectories.CauseSteer, model.Message{Role: model.User, Content: text})
	}
	return f.Messages, nil
}

// recordUserCommands records the commands that the user ran at questions, and
// returns the messages that show them to the model.
func (r *run) recordUserCommands() ([]trajectories.Message, error) {
	var messages []trajectories.Message
	for _, c := range r.Inbox.takeCommands() {
		x := executionRecord(c.Script, c.Start, limitOutput(c.Result, r.cfg.JournalOutput), r.exception(c.Result, c.Interrupted))
		x.ByUser = true
		m, err := r.userCommandMessage(c.Script, c.Result, c.Interrupted)
		if err == nil {
			_, err = r.record(trajectories.TypeExecution, x)
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// fenced returns a command in a code block with a fence that the command does
// not contain.
func fenced(command string) string {
	fence := "```"
	for strings.Contains(command, fence) {
		fence += "`"
	}
	return fence + "bash\n" + command + "\n" + fence
}

// raiseLimits asks the user for higher limits and records them. Without new
// limits it returns the error reached.
func (r *run) raiseLimits(ctx context.Context, reached error) error {
	if r.User == nil || ctx.Err() != nil {
		return reached
	}
	type answer struct {
		limits Limits
		ok     bool
	}
	reply, err := withClockPaused(ctx, func() (answer, error) {
		l, ok, err := r.User.RaiseLimits(ctx, r.limits)
		return answer{l, ok}, err
	})
	switch {
	case err != nil:
		return causeOrErr(ctx, err)
	case !reply.ok:
		return reached
	}
	before := r.limits
	r.limits = reply.limits
	r.publishLimit(reached, before, true)
	_, err = r.record(trajectories.TypeLimits, r.limits)
	return err
}

// continueAfterSubmission continues with the first of these: the inbox's
// messages, the next follow-up, the user's next task. If there is none, it
// returns s, which ends the attempt.
func (r *run) continueAfterSubmission(ctx context.Context, s *Submitted) error {
	if ctx.Err() != nil {
		return s
	}
	f, err := r.readInbox(ctx)
	if err != nil {
		return err
	}
	if f == nil {
		text := r.Inbox.nextFollowUp()
		if text == "" && r.User != nil {
			if text, err = withClockPaused(ctx, func() (string, error) { return r.User.NextTask(ctx, s) }); err != nil {
				return causeOrErr(ctx, err)
			}
		}
		if text == "" {
			return s
		}
		f = &Feedback{}
		if f.Messages, err = r.takeEarlierInput(); err != nil {
			return err
		}
		f.add(trajectories.CauseFollowUp, model.Message{Role: model.User, Content: text})
	}
	callResult := &Feedback{}
	if a := r.submitAction; a != nil && a.CallID != "" { // servers require an answer to each call
		callResult.add(trajectories.CauseObservation, r.protocol.ResultMessage(*a, "The work was handed in, and the conversation goes on."))
	}
	r.submitAction, r.submittedTree, r.patchReturned = nil, "", false
	return r.addMessages(append(callResult.Messages, f.Messages...)...)
}

// askForAnswer returns the user's answer to a plain reply as Feedback: the
// messages in the inbox, the answer to a question, or turn.problem.
func (r *run) askForAnswer(ctx context.Context, turn *userTurn) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, err := r.readInbox(ctx); f != nil || err != nil {
		return errors.Join(err, asError(f))
	}
	text, err := withClockPaused(ctx, func() (string, error) { return r.User.Answer(ctx) })
	if err != nil {
		return causeOrErr(ctx, err)
	}
	if text == "" {
		return turn.problem
	}
	f := &Feedback{}
	if f.Messages, err = r.takeEarlierInput(); err != nil {
		return err
	}
	f.add(trajectories.CauseSteer, model.Message{Role: model.User, Content: text})
	return f
}

// withClockPaused calls question while the clocks of the attempt and of its
// parents are paused.
func withClockPaused[T any](ctx context.Context, question func() (T, error)) (T, error) {
	defer model.BeginPause(ctx)()
	return question()
}
