package env

import "context"

// ToolProgram is the name of the program that commands ask by.
const ToolProgram = "mini-tool"

// Bounds of what commands ask, in bytes.
const (
	// MaxToolRequest bounds arguments, folder and input of a request together.
	MaxToolRequest = 128 << 10
	// MaxToolAnswer bounds output and errors of an answer together; what is longer
	// is cut by whoever carries it, with a word that says so.
	MaxToolAnswer = 1 << 20
)

// Tools are what a command can ask of whoever runs it, by calling
// "mini-tool NAME ARGS...". Environments whose Info says so put that program on
// the PATH of such a command, whatever the shell's start-up files make of PATH,
// and of no other command.
//
// Whoever answers bounds how often a command may ask: its time does not.
//
// The timeout of a command stands still while Answer works for it, but for the
// time in which a command runs inside of it; whatever Answer waits for needs a
// bound of its own. A process can ask as long as the command that it belongs to
// runs: by a token of that command's, which no other sandbox and no later command
// knows. Some requests can be under way at once (16); more are refused, and so is
// what no process of the sandbox sends.
type Tools struct {
	// Answer answers a request. It may be called from several goroutines at once,
	// and not any more once Execute has returned: that waits for it. ctx, which
	// has the values of Execute's, ends when nobody is left to be answered, as at
	// the end or the timeout of the command, or when mini-tool was killed; Answer
	// must return then. One that panics has answered so, with exit code 1.
	Answer func(ctx context.Context, r ToolRequest) ToolAnswer
	// Local are the tools that mini-tool has in the sandbox, without a word to
	// Answer: of "read", "write" and "edit", those named here.
	Local []string
}

// ToolRequest is one call of mini-tool.
type ToolRequest struct {
	// Args are its arguments as they stood; the first one names the tool. There
	// may be none.
	Args []string
	// Dir is where it was called.
	Dir string
	// Input is what came on its standard input, where one of Args is "-".
	Input []byte
	// Inside runs commands within the asking one, one at a time for a request, and
	// is of no use when that is over: Execute returns an error that wraps
	// ErrClosed, and so it does for a command that was still running. They die with
	// the asking one; at their own timeouts nothing dies but what they started. They
	// may ask in turn, eight deep. Info is that of the environment, and Close does
	// nothing.
	Inside Environment
}

// ToolAnswer is what the caller of mini-tool gets: Output on its standard output,
// Errors on its standard error, and an exit code, 2 for mistakes in the
// arguments.
type ToolAnswer struct {
	Output   []byte
	Errors   []byte
	ExitCode int
}
