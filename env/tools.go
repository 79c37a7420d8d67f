package env

import "context"

// ToolProgram is the name of the program with which commands call tools.
const ToolProgram = "mini-tool"

// Limits of tool calls, in bytes.
const (
	// MaxToolRequest is the maximum size of a request: arguments, directory and
	// standard input together.
	MaxToolRequest = 128 << 10
	// MaxToolResponse is the maximum size of a response: Stdout and Stderr together.
	// The helper's client truncates a longer response and adds a note.
	MaxToolResponse = 1 << 20
)

// Tools handles the tool calls of a command: "mini-tool NAME ARGS...". Environments
// with Info.Tools put mini-tool on the PATH of a command only if Command.Tools is set,
// even if the shell's start-up files reset PATH.
//
// The command's timeout is paused while Handle works, except while a nested command
// runs (see ToolRequest.Nested); anything else that Handle waits for needs its own
// timeout. Handle must also limit the number of calls. A process can call tools as
// long as the command that started it runs. The process authenticates with a token that
// is unique to the command. At most 16 requests of a command are handled at once;
// further ones are rejected, as are requests from processes outside the sandbox.
type Tools struct {
	// Handle handles one request. It may be called from several goroutines at once.
	// Execute waits for all calls before it returns. ctx carries the values of
	// Execute's context. It is cancelled when the command ends or times out, or when
	// mini-tool is killed; Handle must return then. A panic in Handle becomes a
	// response with exit code 1.
	Handle func(ctx context.Context, r ToolRequest) ToolResponse
	// InSandbox names the tools that mini-tool runs inside the sandbox, without a call of
	// Handle: a subset of "read", "write" and "edit".
	InSandbox []string
}

// ToolRequest is one call of mini-tool.
type ToolRequest struct {
	// Args are the arguments of mini-tool; the first one names the tool. Args may be
	// empty.
	Args []string
	// Dir is the working directory of the caller.
	Dir string
	// Stdin is the standard input of mini-tool; it is read only if one of Args is "-".
	Stdin []byte
	// Nested runs commands inside the command that made this request, one at a time.
	// When the outer command ends, nested commands are killed, and Nested.Execute
	// returns an error that wraps ErrClosed. The timeout of a nested command kills only
	// that command's processes. Nested commands may call tools in turn, up to eight
	// levels deep. Nested.Info is that of the environment, and Nested.Close does nothing.
	Nested Environment
}

// ToolResponse is the response to the caller of mini-tool: what mini-tool writes to
// its standard output and standard error, and its exit code, which is 2 for invalid
// arguments.
type ToolResponse struct {
	Stdout   []byte
	Stderr   []byte
	ExitCode int
}
