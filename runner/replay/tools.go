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

// Tools say how commands ask for tools when they are run again: nobody is asked a
// second time. A note is not taken twice, and a server's side effects stay what
// they were.
type Tools struct {
	// Local are the tools that mini-tool has in the sandbox itself; they do again
	// what they did.
	Local []string
	// Prepare makes a fresh sandbox ready for them, before anything else runs there;
	// nil where there is nothing to do.
	Prepare func(ctx context.Context, box env.Environment) error
	// Again does in the sandbox what a call did there, as the commands of a child
	// that a task was delegated to, before it is answered as it was. What it says is
	// told to the caller, and shows as a difference. nil does nothing.
	Again func(ctx context.Context, c trajectories.Called, r env.ToolRequest) error
}

// For is what a recorded command is given. t may be nil, of an attempt that had no
// tools: then it is nil too, unless the command asked for some all the same.
func (t *Tools) For(ran *trajectories.Ran) *env.Tools {
	if t == nil {
		if len(ran.Tools) == 0 {
			return nil
		}
		t = &Tools{}
	}
	r := &recordedTools{Tools: t, left: slices.Clone(ran.Tools)}
	return &env.Tools{Local: t.Local, Answer: r.answer}
}

// recordedTools answer what a command asks for as it was answered.
type recordedTools struct {
	*Tools
	mu   sync.Mutex
	left []trajectories.Called
}

// unrecorded is what a request is told that was not made when the command was
// recorded. It is in no recording, so that the comparison shows it.
const unrecorded = env.ToolProgram + ": this was not asked when the command was recorded, and nobody is asked now\n"

func (r *recordedTools) answer(ctx context.Context, q env.ToolRequest) env.ToolAnswer {
	c, ok := r.take(q)
	if !ok {
		return env.ToolAnswer{Errors: []byte(unrecorded), ExitCode: 1}
	}
	if r.Again != nil {
		if err := r.Again(ctx, c, q); err != nil {
			return env.ToolAnswer{Errors: []byte(env.ToolProgram + ": it could not be done again: " + err.Error() + "\n"), ExitCode: 1}
		}
	}
	return env.ToolAnswer{Output: c.Output, Errors: c.Errors, ExitCode: c.ExitCode}
}

// take finds the first call that is the same and was not made yet. Calls that ran
// side by side may come in another order.
func (r *recordedTools) take(q env.ToolRequest) (trajectories.Called, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.left, func(c trajectories.Called) bool { return sameCall(c, q) })
	if at < 0 {
		return trajectories.Called{}, false
	}
	c := r.left[at]
	r.left = slices.Delete(r.left, at, at+1)
	return c, true
}

// sameCall holds a call against a record of one, in which arguments are JSON.
func sameCall(c trajectories.Called, q env.ToolRequest) bool {
	if len(q.Args) == 0 {
		return c.Name == "" && len(c.Args) == 0
	}
	args := make([]string, len(q.Args))
	for i, a := range q.Args {
		args[i] = asJSON(a)
	}
	return c.Name == args[0] && slices.Equal(c.Args, args[1:]) && bytes.Equal(c.Input, q.Input)
}

// asJSON is a text after it was written as JSON and read again.
func asJSON(text string) string {
	var b strings.Builder
	var again string
	if json.NewEncoder(&b).Encode(text) != nil || json.Unmarshal([]byte(b.String()), &again) != nil {
		return text
	}
	return again
}
