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

// Tools answers the tool calls of rerun commands from the recording. Real tools are
// not called, so that side effects are not repeated.
type Tools struct {
	// Local are the tools that run in the sandbox; they are run again.
	Local []string
	// Prepare prepares a fresh sandbox for the tools, before any command; may be
	// nil.
	Prepare func(ctx context.Context, sandbox env.Environment) error
	// Rerun repeats the effects of a call in the sandbox, such as the commands of a
	// subagent, before the recorded answer is returned. Its error is printed to the
	// caller and shows up as a difference. It may be nil.
	Rerun func(ctx context.Context, c trajectories.RecordedToolCall, r env.ToolRequest) error
}

// For returns the tools for a recorded command. t may be nil for an attempt without
// tools; then the result is nil unless the command has recorded calls.
func (t *Tools) For(ran *trajectories.RecordedExecution) *env.Tools {
	if t == nil {
		if len(ran.ToolCalls) == 0 {
			return nil
		}
		t = &Tools{}
	}
	r := &recordedTools{Tools: t, remaining: slices.Clone(ran.ToolCalls)}
	return &env.Tools{Local: t.Local, Handle: r.answer}
}

// recordedTools answers the calls of one command.
type recordedTools struct {
	*Tools
	mu        sync.Mutex
	remaining []trajectories.RecordedToolCall
}

// unrecorded is the answer to a call that was not recorded. It differs from every
// recording, so that the comparison shows it.
const unrecorded = env.ToolProgram + ": this call was not recorded\n"

func (r *recordedTools) answer(ctx context.Context, q env.ToolRequest) env.ToolResponse {
	c, ok := r.take(q)
	if !ok {
		return env.ToolResponse{Stderr: []byte(unrecorded), ExitCode: 1}
	}
	if r.Rerun != nil {
		if err := r.Rerun(ctx, c, q); err != nil {
			return env.ToolResponse{Stderr: []byte(env.ToolProgram + ": rerun call: " + err.Error() + "\n"), ExitCode: 1}
		}
	}
	return env.ToolResponse{Stdout: c.Output, Stderr: c.Errors, ExitCode: c.ExitCode}
}

// take removes and returns the first equal call. Concurrent calls may come in
// another order.
func (r *recordedTools) take(q env.ToolRequest) (trajectories.RecordedToolCall, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.remaining, func(c trajectories.RecordedToolCall) bool { return sameCall(c, q) })
	if at < 0 {
		return trajectories.RecordedToolCall{}, false
	}
	c := r.remaining[at]
	r.remaining = slices.Delete(r.remaining, at, at+1)
	return c, true
}

// sameCall compares a call with a recorded one, whose arguments went through JSON.
func sameCall(c trajectories.RecordedToolCall, q env.ToolRequest) bool {
	if len(q.Args) == 0 {
		return c.Name == "" && len(c.Args) == 0
	}
	args := make([]string, len(q.Args))
	for i, a := range q.Args {
		args[i] = asJSON(a)
	}
	return c.Name == args[0] && slices.Equal(c.Args, args[1:]) && bytes.Equal(c.Input, q.Stdin)
}

// asJSON returns a string as it reads after encoding to JSON.
func asJSON(text string) string {
	var b strings.Builder
	var decoded string
	if json.NewEncoder(&b).Encode(text) != nil || json.Unmarshal([]byte(b.String()), &decoded) != nil {
		return text
	}
	return decoded
}
