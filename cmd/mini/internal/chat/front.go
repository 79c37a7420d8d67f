// Package chat is a session of one person with an agent: who may run what, what
// is asked when, and what slash commands do. How it looks is the affair of a
// Front, of which there are two: lines, for any terminal, and screen.
package chat

import (
	"context"
	"errors"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/model"
)

// Front is where a session is shown, and where its person answers. Its methods
// are called by several goroutines, Ask by one at a time.
type Front interface {
	// Ask waits for an answer, while events go on being shown. It returns
	// ErrLeft where there will be no answer any more, ErrInterrupt for Ctrl-C,
	// and the cause of ctx when that ends, which takes the question back.
	Ask(ctx context.Context, q Question) (string, error)
	// Show takes an event of the agent's. Calls come one at a time.
	Show(e events.Stamped)
	// Tell shows something of mini's own.
	Tell(n Note)
	// State says what stands in the line that is always there.
	State(s State)
}

// How Ask ends without an answer.
var (
	ErrLeft      = errors.New("the person has left")
	ErrInterrupt = errors.New("interrupted at a question")
)

// Kind says what a question is about, for fronts that show each in its own way.
type Kind int

// The kinds of questions.
const (
	AskTask    Kind = iota // what is to be done: a text of several lines
	AskConfirm             // may this run? "" is yes, any text is no and says why
	AskCommand             // mode human: a command of the person's own
	AskMessage             // after an interruption: what to tell the model; "" is nothing
	AskLimit               // a limit is reached: new ones, "" to end
	AskNext                // the work is handed in: a new task, "" to end
	AskKeep                // the changes: keep or undo
	AskWord                // anything else that a line answers
)

// Question is put to the person. All texts are as they came: the front
// neutralises them.
type Question struct {
	Kind Kind
	// Text is the question, on one line, Hint what may be answered.
	Text, Hint string
	// Command is what AskConfirm is about, Reason why it is asked.
	Command, Reason string
	// Multi asks for several lines; AskTask always may have them.
	Multi bool
	// Answers are words to choose from, the first for Enter; none for free text.
	Answers []string
	// Secret answers are not shown, and not kept in the history.
	Secret bool
}

// Note is something of mini's own.
type Note struct {
	Text string
	// Diff says that the text is a patch.
	Diff bool
	// Bad says that something went wrong.
	Bad bool
}

// State is what is always visible.
type State struct {
	Mode  Mode
	Model string
	Step  int
	Cost  model.Cost
	// Unpriced says that the cost is not all that was spent.
	Unpriced bool
	Usage    model.Usage
	// StepLimit and CostLimit are 0 where there is none.
	StepLimit int
	CostLimit float64
	Started   time.Time
	// Busy says what goes on: "thinking", "running", or nothing.
	Busy string
	// Thinking says whether thinking text is shown.
	Thinking bool
}

// Mode says who decides on commands.
type Mode int

// The modes, in the order in which a key goes through them.
const (
	Confirm Mode = iota // the model writes commands, the person allows them
	Yolo                // they run unasked
	Human               // the person writes them
)

// String implements fmt.Stringer.
func (m Mode) String() string { return [...]string{"confirm", "yolo", "human"}[m] }

// Controls are what a front may do at any time, question or not. They never wait.
type Controls interface {
	// Input is a line that was written while no question was open: a slash command
	// acts, any other text steers the agent.
	Input(text string)
	// Interrupt is Ctrl-C while no question was open. Where one has been opened in
	// the meantime, it is taken back, and counts as ErrInterrupt.
	Interrupt()
	// Hangup is the end of the terminal.
	Hangup()
}

// Slash is a command of the person's to mini.
type Slash struct {
	Name  string // with its slash: "/y"
	Long  string // "/yolo"
	About string // what it does, in a few words
}
