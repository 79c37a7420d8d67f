package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
)

// Tool is one thing that commands can ask for. It is safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Call does it. The error of a mistake in the arguments is a *UsageError; any
	// other is told to the model as it is. ctx ends at the tool's timeout, and when
	// nobody waits for the answer any more.
	Call(ctx context.Context, c Call) (Result, error)
}

// Preparer is a Tool that has something to do in a fresh sandbox.
type Preparer interface {
	Prepare(ctx context.Context, box env.Environment) error
}

// Spec says what a tool is.
type Spec struct {
	// Name is one word: letters, digits, - and _, at most MaxName of them.
	Name string
	// Usage is its command line behind "mini-tool", as "note add TEXT"; several
	// lines for several forms.
	Usage string
	// About says in a sentence what it is good for.
	About string
	// Help is what else is told of it to who asks for it; may be empty.
	Help string
	// Timeout bounds a call; 0 is the registry's. Negative is none, for tools that
	// end by themselves.
	Timeout time.Duration
	// MaxOutput bounds the output in bytes; 0 is the registry's.
	MaxOutput int
	// Local says that mini-tool does it in the sandbox, and Call is never called.
	Local bool
}

// MaxName is the longest name of a tool, in bytes.
const MaxName = 64

// Call is one call of a tool.
type Call struct {
	// Args are those behind the name.
	Args []string
	// Input is what an argument "-" stands for.
	Input []byte
	// Dir is where it was called, in the sandbox.
	Dir string
	// Inside runs commands within the one that asked.
	Inside env.Environment
	// Attempt is who asked; nil where that is no agent.
	Attempt *agent.Attempt
}

// Result is what a call came to.
type Result struct {
	// Output is what the model sees.
	Output string
	// Size is how long the output was, in bytes, where the tool itself did not keep
	// all of it; 0 where Output is whole.
	Size int64
	// ExitCode is mini-tool's; a tool that could not do what it was asked for, and
	// says so in Output, has another than 0.
	ExitCode int
	// Details are for people and programs; nil, or of a JSON form.
	Details any
}

// UsageError is a mistake in the arguments of a call.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Usagef makes a *UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
