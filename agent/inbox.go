package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/minibench/mini/env"
)

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
// next call. It drops pending follow-ups: the user has changed course.
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

// compactionRequest is a compaction that the user wants.
type compactionRequest struct {
	hint  string
	empty func()
}

// Compact compacts the conversation before the next call, whatever its length.
// hint says what summaries should keep; it may be empty. empty is called, on the
// attempt's goroutine, if there is nothing to compact.
func (b *Inbox) Compact(hint string, empty func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.compaction = &compactionRequest{hint, empty}
}

// takeCompaction removes and returns the requested compaction; nil if there is
// none.
func (b *Inbox) takeCompaction() *compactionRequest {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	request := b.compaction
	b.compaction = nil
	return request
}

// takeCommands removes and returns the commands of the user.
func (b *Inbox) takeCommands() []UserCommand {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	commands := b.commands
	b.commands = nil
	return commands
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
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	steers := b.steers
	b.steers = nil
	return steers
}

// takeInterruptions removes and returns the interruptions.
func (b *Inbox) takeInterruptions() []func(context.Context) (string, error) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	interruptions := b.interruptions
	b.interruptions = nil
	return interruptions
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
