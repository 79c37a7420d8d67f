package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Tools answers the tool calls of rerun commands from the recording. It does not call
// the tools of the host, so that their side effects are not repeated.
type Tools struct {
	// Local are the tools that run in the sandbox. Their calls run again.
	Local []string
	// Prepare prepares a fresh sandbox for the tools before the first command; may
	// be nil.
	Prepare func(ctx context.Context, sandbox env.Environment) error
	// Rerun repeats the effects of a call in the sandbox, such as the commands of a
	// subagent, before the caller receives the recorded answer. If Rerun fails, the
	// caller receives the error instead, which causes a difference. It may be nil.
	Rerun func(ctx context.Context, c trajectories.ToolCall, r env.ToolRequest) error
}

// For returns the tools for a recorded command. t may be nil for an attempt without
// tools; For then returns nil unless the command has recorded calls.
func (t *Tools) For(recorded *trajectories.Execution) *env.Tools {
	if t == nil {
		if len(recorded.ToolCalls) == 0 {
			return nil
		}
		t = &Tools{}
	}
	r := &recordedTools{Tools: t, remaining: slices.Clone(recorded.ToolCalls)}
	return &env.Tools{InSandbox: t.Local, Handle: r.answer}
}

// recordedTools answers the calls of one command.
type recordedTools struct {
	*Tools
	mu        sync.Mutex
	remaining []trajectories.ToolCall
}

// unrecordedAnswer is the answer to a call that was not recorded. It differs from every
// recorded answer, so that the comparison finds a difference.
const unrecordedAnswer = env.ToolProgram + ": this call was not recorded\n"

func (r *recordedTools) answer(ctx context.Context, req env.ToolRequest) env.ToolResponse {
	call, ok := r.take(req)
	if !ok {
		return env.ToolResponse{Stderr: []byte(unrecordedAnswer), ExitCode: 1}
	}
	if r.Rerun != nil {
		if err := r.Rerun(ctx, call, req); err != nil {
			return env.ToolResponse{Stderr: []byte(env.ToolProgram + ": rerun call: " + err.Error() + "\n"), ExitCode: 1}
		}
	}
	return env.ToolResponse{Stdout: call.Output, Stderr: call.Errors, ExitCode: call.ExitCode}
}

// take removes and returns the first recorded call that equals req. Concurrent calls
// may arrive in another order than recorded.
func (r *recordedTools) take(req env.ToolRequest) (trajectories.ToolCall, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.remaining, func(call trajectories.ToolCall) bool { return sameCall(call, req) })
	if at < 0 {
		return trajectories.ToolCall{}, false
	}
	call := r.remaining[at]
	r.remaining = slices.Delete(r.remaining, at, at+1)
	return call, true
}

// sameCall reports whether a call equals a recorded one. It encodes the arguments to
// JSON and back first, as the recording did.
func sameCall(recorded trajectories.ToolCall, req env.ToolRequest) bool {
	if len(req.Args) == 0 {
		return recorded.Name == "" && len(recorded.Args) == 0
	}
	args := make([]string, len(req.Args))
	for i, a := range req.Args {
		args[i] = asJSON(a)
	}
	return recorded.Name == args[0] && slices.Equal(recorded.Args, args[1:]) && bytes.Equal(recorded.Input, req.Stdin)
}

// asJSON encodes a string to JSON and decodes it again, which replaces invalid UTF-8.
func asJSON(text string) string {
	var b strings.Builder
	var decoded string
	if json.NewEncoder(&b).Encode(text) != nil || json.Unmarshal([]byte(b.String()), &decoded) != nil {
		return text
	}
	return decoded
}
