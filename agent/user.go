package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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
	if messages, err := r.readInbox(ctx); err != nil {
		return err
	} else if len(messages) > 0 {
		return &Feedback{Reason: "UserInterruption", Messages: messages}
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

// readInbox removes the interruptions, commands and steering messages from the inbox and
// returns the messages for the model. Follow-ups stay.
func (r *run) readInbox(ctx context.Context) ([]trajectories.Message, error) {
	f := &Feedback{}
	for _, message := range take(r.Inbox, func(b *Inbox) *[]func(context.Context) (string, error) { return &b.interruptions }) {
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
	return append(earlier, f.Messages...), nil
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

// withEarlierInput returns a message of the user after those for the commands and the
// steering messages that the user sent before the answer to a question.
func (r *run) withEarlierInput(cause trajectories.Cause, text string) ([]trajectories.Message, error) {
	messages, err := r.takeEarlierInput()
	return append(messages, trajectories.Message{Message: model.Message{Role: model.User, Content: text}, Cause: cause}), err
}

// takeEarlierInput returns the messages for the user's steering messages, after those for
// the commands that the user ran at questions, which it records.
func (r *run) takeEarlierInput() ([]trajectories.Message, error) {
	f := &Feedback{}
	for _, c := range take(r.Inbox, func(b *Inbox) *[]UserCommand { return &b.commands }) {
		x := executionRecord(c.Script, c.Start, c.Result, r.exception(c.Result, c.Interrupted))
		x.ByUser = true
		m, err := r.userCommandMessage(c.Script, c.Result, c.Interrupted)
		if err == nil {
			_, err = r.appendRecord(trajectories.TypeExecution, limitOutput(x, r.cfg.JournalOutput)) // the front end has shown it
		}
		if err != nil {
			return nil, err
		}
		f.Messages = append(f.Messages, m)
	}
	for _, text := range r.Inbox.TakePending() {
		f.add(trajectories.CauseSteer, model.Message{Role: model.User, Content: text})
	}
	return f.Messages, nil
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
	r.notifyLimit(reached, before, true)
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
	messages, err := r.readInbox(ctx)
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		text := r.Inbox.nextFollowUp()
		if text == "" && r.User != nil {
			if text, err = withClockPaused(ctx, func() (string, error) { return r.User.NextTask(ctx, s) }); err != nil {
				return causeOrErr(ctx, err)
			}
		}
		if text == "" {
			return s
		}
		if messages, err = r.withEarlierInput(trajectories.CauseFollowUp, text); err != nil {
			return err
		}
	}
	if a := r.submitAction; a != nil && a.CallID != "" { // servers require an answer to each call
		handedIn := r.protocol.ResultMessage(*a, "The work was handed in, and the conversation goes on.")
		if err := r.addMessages(trajectories.CauseObservation, handedIn); err != nil {
			return err
		}
	}
	r.submitAction, r.submittedTree, r.patchReturned = nil, "", false
	return r.recordMessages(messages)
}

// askForAnswer returns the user's answer to a plain reply as Feedback: the
// messages in the inbox, the answer to a question, or turn.problem.
func (r *run) askForAnswer(ctx context.Context, turn *userTurn) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	messages, err := r.readInbox(ctx)
	if err != nil {
		return err
	} else if len(messages) > 0 {
		return &Feedback{Reason: "UserInterruption", Messages: messages}
	}
	text, err := withClockPaused(ctx, func() (string, error) { return r.User.Answer(ctx) })
	if err != nil {
		return causeOrErr(ctx, err)
	}
	if text == "" {
		return turn.problem
	}
	if messages, err = r.withEarlierInput(trajectories.CauseSteer, text); err != nil {
		return err
	}
	return &Feedback{Messages: messages}
}

// Inbox delivers messages to an attempt while it works. The attempt reads them
// before its next model call, follow-ups only after a submission. An Inbox is
// for one session. Its methods are safe for concurrent use and do not block. A
// nil Inbox delivers nothing, and nothing can be sent to it.
type Inbox struct {
	mu            sync.Mutex
	steers        []string
	followUps     []string
	commands      []UserCommand
	compaction    *compactionRequest
	interruptions []func(context.Context) (string, error) // message functions of the interruptions not yet handled
	cancelCall    context.CancelCauseFunc                 // cancels the call or command under way
	cancelAttempt context.CancelCauseFunc                 // cancels the attempt
	aborted       bool
}

// NewInbox returns an empty Inbox.
func NewInbox() *Inbox { return &Inbox{} }

// errUserInterrupt is the cause with which an interruption cancels a call or a
// command.
var errUserInterrupt = errors.New("interrupted by the user")

// Steer sends the model a message after the command under way and before the
// next call. It drops pending follow-ups, which the message replaces.
func (b *Inbox) Steer(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steers, b.followUps = append(b.steers, text), nil
}

// FollowUp queues a message for the time of a submission. Instead of ending,
// the attempt then sends the oldest queued message to the model and continues.
func (b *Inbox) FollowUp(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followUps = append(b.followUps, text)
}

// UserCommand is a command that the user ran in the sandbox while the attempt
// waited for an answer.
type UserCommand struct {
	Script string
	Start  time.Time
	Result env.Result
	// Interrupted is set if the user interrupted the command.
	Interrupted bool
}

// AddCommand records a command of the user and shows it to the model, with its
// result, before the next call and before the messages that the user has sent
// since.
func (b *Inbox) AddCommand(c UserCommand) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commands = append(b.commands, c)
}

// compactionRequest is a compaction of a conversation that may be short enough.
type compactionRequest struct {
	hint  string
	empty func() // is called if there is nothing to compact
	// rejected reports that the provider rejected the prompt; else the user wants the
	// compaction.
	rejected bool
}

// Compact compacts the conversation before the next call, whatever its length.
// hint says what summaries should keep; it may be empty. empty is called, on the
// attempt's goroutine, if there is nothing to compact.
func (b *Inbox) Compact(hint string, empty func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.compaction = &compactionRequest{hint: hint, empty: empty}
}

// Abort ends the attempt in an orderly way, as interrupted.
func (b *Inbox) Abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aborted = true
	if b.cancelAttempt != nil {
		b.cancelAttempt(ErrInterrupted)
	}
}

// Interrupt cancels the model call or command under way and then calls message,
// on the attempt's goroutine, to get a text for the model. If the text is
// empty, the model is told nothing; an error ends the attempt. The model is
// shown the output of an interrupted command.
func (b *Inbox) Interrupt(message func(ctx context.Context) (string, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.interruptions = append(b.interruptions, message)
	if b.cancelCall != nil {
		b.cancelCall(errUserInterrupt)
	}
}

// AttemptContext returns a context that is cancelled by Abort. The caller must
// call the returned function.
func (b *Inbox) AttemptContext(ctx context.Context) (context.Context, func()) {
	if b == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancelAttempt = cancel; b.aborted {
		cancel(ErrInterrupted)
	}
	return ctx, func() { cancel(nil) }
}

// callContext returns a context for one call or command that is cancelled by
// Interrupt. The caller must call the returned function.
func (b *Inbox) callContext(ctx context.Context) (context.Context, func()) {
	if b == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancelCall = cancel; len(b.interruptions) > 0 {
		cancel(errUserInterrupt)
	}
	return ctx, func() {
		b.mu.Lock()
		b.cancelCall = nil
		b.mu.Unlock()
		cancel(nil)
	}
}

// isInterrupted reports whether an interruption has not been handled yet.
func (b *Inbox) isInterrupted() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.interruptions) > 0
}

// TakePending removes and returns the steering messages that the attempt has not
// read.
func (b *Inbox) TakePending() []string {
	return take(b, func(b *Inbox) *[]string { return &b.steers })
}

// take removes and returns the value of a field of b.
func take[T any](b *Inbox, field func(*Inbox) *T) (value T) {
	if b == nil {
		return value
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	value, *field(b) = *field(b), value
	return value
}

// nextFollowUp removes and returns the oldest follow-up; "" if there is none.
func (b *Inbox) nextFollowUp() string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.followUps) == 0 {
		return ""
	}
	next := b.followUps[0]
	b.followUps = b.followUps[1:]
	return next
}
