// Package chat runs an interactive session of a user with an agent: it decides which commands
// may run, asks the user, and executes slash commands. A Frontend displays the session. Package
// plain has one for any terminal, package term one that redraws part of the screen.
package chat

import (
	"context"
	"errors"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/model"
)

// Frontend displays a session and reads the user's answers. Several goroutines call its methods,
// but only one at a time calls Ask.
type Frontend interface {
	// Ask asks a question and waits for the answer, while events continue to be shown. It
	// returns ErrQuit if the user quits or the input ends, and ErrInterrupted for Ctrl-C. When
	// ctx ends, Ask withdraws the question and returns the cause of ctx.
	Ask(ctx context.Context, q Question) (string, error)
	// ShowEvent shows an event of the agent. Calls are serialized.
	ShowEvent(e events.Envelope)
	// ShowNotice shows a message of mini.
	ShowNotice(n Notice)
	// SetState sets the contents of the status line.
	SetState(s State)
}

// Errors of Ask.
var (
	ErrQuit        = errors.New("user has quit")
	ErrInterrupted = errors.New("interrupted at a question")
)

// QuestionKind identifies a question. Frontends render some kinds differently.
type QuestionKind int

// The kinds of questions.
const (
	AskTask     QuestionKind = iota // the task; the answer may have several lines
	AskConfirm                      // run it? yes, no, another answer, or why to reject it
	AskEdit                         // a command in place of that of AskConfirm; "" returns to it
	AskCommand                      // the user's command, in human mode
	AskMessage                      // a message to the model after an interrupt; "" sends none
	AskLimit                        // new limits after one was reached; "" ends the session
	AskNextTask                     // a new task after a submission; "" ends the session
	AskOther                        // any other question answered by one line
)

// Question is a question to the user. Its texts are untrusted; the frontend sanitizes them.
type Question struct {
	Kind QuestionKind
	// Text is the question, on one line. Hint explains the possible answers.
	Text, Hint string
	// Command is the command to confirm, for AskConfirm. Reason says why it needs confirmation.
	Command, Reason string
	// Draft is the text to edit, for AskEdit; a frontend that cannot fill the input leaves it out.
	Draft string
	// Multiline accepts an answer of several lines. AskTask always accepts them.
	Multiline bool
	// Answers lists the possible answers, the default first; it is empty for free text.
	Answers []string
	// Secret marks an answer that is neither shown nor stored in the history.
	Secret bool

	agentRuns bool // commands of the agent run while the question is open
}

// Notice is a message of mini.
type Notice struct {
	Text string
	// IsDiff marks a patch.
	IsDiff bool
	// IsError marks an error.
	IsError bool
}

// State is the content of the status line.
type State struct {
	Mode  Mode
	Model string
	Step  int
	Cost  model.Cost
	// Unpriced means that Cost does not include some calls, whose price is unknown.
	Unpriced bool
	Usage    model.Usage
	// StepLimit and CostLimit, in US dollars, are 0 if unlimited.
	StepLimit int
	CostLimit float64
	Started   time.Time
	// Activity is what the agent is doing, e.g. "thinking" or "running"; empty if nothing.
	Activity string
	// ShowThinking shows the model's reasoning.
	ShowThinking bool
}

// Mode says who writes the commands and who approves them.
type Mode int

// The modes, in the order in which Shift-Tab cycles through them.
const (
	Confirm Mode = iota // the model writes commands, the user approves each
	Yolo                // the model writes commands, which run without the user's approval
	Human               // the user writes the commands
)

// String implements fmt.Stringer.
func (m Mode) String() string { return [...]string{"confirm", "yolo", "human"}[m] }

// InputHandler handles input that is not an answer to a question. Its methods do not block.
type InputHandler interface {
	// Input handles a line entered while no question is open: a slash command is executed, any
	// other text is sent to the agent.
	Input(text string)
	// Interrupt handles Ctrl-C while no question is open. If a question has been opened in the
	// meantime, Interrupt withdraws it with ErrInterrupted.
	Interrupt()
	// Hangup handles the loss of the terminal.
	Hangup()
}

// SlashCommand is a command to mini itself that the user enters instead of an answer.
type SlashCommand struct {
	Name        string // for example "/y"
	LongName    string // for example "/yolo"; may be empty
	Description string // what it does, for the help
}
