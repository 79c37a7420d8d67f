package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
)

// Tool is a function that commands can call. It is safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Call runs the tool. For invalid arguments it returns a *UsageError. The
	// model sees the text of any other error. ctx ends at the tool's timeout or
	// when the calling command ends.
	Call(ctx context.Context, c Call) (Result, error)
}

// Preparer is a Tool that prepares new sandboxes.
type Preparer interface {
	Prepare(ctx context.Context, sandbox env.Environment) error
}

// Spec describes a tool.
type Spec struct {
	// Name has letters, digits, - and _, and at most MaxName bytes.
	Name string
	// Usage is the command line after "mini-tool", such as "note add TEXT".
	// Each line is one form.
	Usage string
	// Description says in one sentence what the tool does.
	Description string
	// Help is further text for "mini-tool help NAME"; it may be empty.
	Help string
	// Timeout bounds a call. 0 means the registry's timeout. A negative value
	// means no timeout, for tools that enforce their own.
	Timeout time.Duration
	// MaxOutput bounds the output in bytes; 0 means the registry's limit.
	MaxOutput int
	// InSandbox says that mini-tool itself implements the tool, in the sandbox.
	// Call is then never called.
	InSandbox bool
}

// MaxName is the longest name of a tool, in bytes.
const MaxName = 64

// Call is one call of a tool.
type Call struct {
	// Args are the arguments after the tool's name.
	Args []string
	// Input is the standard input, which an argument "-" stands for.
	Input []byte
	// Dir is the caller's working directory in the sandbox.
	Dir string
	// Environment runs further commands in the sandbox while the command that
	// called the tool waits; see env.ToolRequest.Nested.
	Environment env.Environment
	// Attempt is the attempt that called the tool; nil if no agent did.
	Attempt *agent.Attempt
}

// Result is the result of a call.
type Result struct {
	// Output is what the model sees.
	Output string
	// Size is the full length of the output in bytes if Output holds only its
	// beginning; 0 if Output is complete.
	Size int64
	// ExitCode is the exit code of mini-tool. A tool that fails and explains
	// why in Output sets it to a value other than 0.
	ExitCode int
	// Details are recorded as JSON for people and programs; may be nil.
	Details any
}

// UsageError reports invalid arguments of a call.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Usagef returns a *UsageError with a formatted text.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
