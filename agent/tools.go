package agent

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Toolbox is what the commands of one session can ask for by mini-tool. Package
// agent/tools makes them. Methods are safe for concurrent use.
type Toolbox interface {
	// Abilities are what prompts tell of. They do not change.
	Abilities() Abilities
	// Answer does what a command asks for. What goes wrong is in the answer: no
	// tool ever ends an attempt.
	Answer(ctx context.Context, a Asked) ToolAnswer
}

// preparer is a Toolbox that has something to do in a fresh sandbox, before
// anything else runs there, as to put files where commands find them.
type preparer interface {
	Prepare(ctx context.Context, box env.Environment) error
}

// Abilities are what a session has beyond the shell.
type Abilities struct {
	// Tools are those that can be called; Local those of them that mini-tool has
	// in the sandbox itself, see env.Tools.
	Tools []Ability
	Local []string
	// Skills are those whose text can be asked for.
	Skills []Ability
}

// Ability is one of them. Usage is what stands behind "mini-tool " on its command
// line; About says in a sentence what it is good for.
type Ability struct {
	Name, Usage, About string
}

// Asked is a request, and the attempt that it came from.
type Asked struct {
	env.ToolRequest
	Attempt *Attempt
}

// ToolAnswer is what the caller of mini-tool gets, and what is recorded beside
// it for people and programs; Details has a JSON form, or is nil.
type ToolAnswer struct {
	env.ToolAnswer
	Details any
}

// Attempt is what a tool may know of the attempt that asked, and take from it.
// Its methods are safe for concurrent use by tools.
type Attempt struct {
	mu    sync.Mutex
	run   *run
	spent Spending // by children
	begun int      // calls of children, also those that are not over
}

// Session is what the attempt works with; its Environment is not to be used
// while a command of it runs, see env.ToolRequest.Inside.
func (a *Attempt) Session() Session { return a.run.Session }

// Step is the model call whose reply asked for the command, from 1.
func (a *Attempt) Step() int { return a.run.steps }

// Append adds a record to the attempt's journal.
func (a *Attempt) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run.record(t, data)
}

// Bounds of what one command asks for, all its calls together. Each is on record,
// and while it is answered the command's clock stands still: a loop would fill the
// disk and never end.
const (
	maxCalls = 1000
	maxAsked = 16 << 20 // bytes of requests and answers
)

// asks adds up what a command has asked for.
type asks struct {
	mu          sync.Mutex
	calls, size int
	failed      error // the first record that could not be written
}

// begin says whether one more request is answered.
func (a *asks) begin(req env.ToolRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	a.size += len(req.Input)
	for _, arg := range req.Args {
		a.size += len(arg)
	}
	return a.calls <= maxCalls && a.size <= maxAsked
}

func (a *asks) end(answer env.ToolAnswer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.size += len(answer.Output) + len(answer.Errors)
	if a.failed == nil {
		a.failed = err
	}
}

// tooMuch is the answer to what goes beyond that. It is not on record.
var tooMuch = env.ToolAnswer{Errors: []byte(env.ToolProgram + ": this command has asked too much, and is not answered any more\n"), ExitCode: 1}

// tooled lets a command ask for tools; lost is the first record that could not
// be written, once the command is over.
func (r *run) tooled(c env.Command) (_ env.Command, lost func() error) {
	if r.Tools == nil || !r.info.Tools {
		return c, func() error { return nil }
	}
	var asked asks
	c.Tools = &env.Tools{
		Local: r.Tools.Abilities().Local,
		Answer: func(ctx context.Context, req env.ToolRequest) env.ToolAnswer {
			if !asked.begin(req) {
				return tooMuch
			}
			answer, err := r.answer(ctx, req)
			asked.end(answer, err)
			return answer
		},
	}
	return c, func() error { return asked.failed }
}

// answer does what a command asks for, and records it.
func (r *run) answer(ctx context.Context, req env.ToolRequest) (env.ToolAnswer, error) {
	start := time.Now()
	answer := r.Tools.Answer(ctx, Asked{req, &r.asking})
	call := trajectories.ToolCall{
		Input: req.Input, Dir: req.Dir, Output: answer.Output, Errors: answer.Errors, ExitCode: answer.ExitCode,
		Start: start, Duration: trajectories.Seconds(time.Since(start)),
	}
	if len(req.Args) > 0 {
		call.Name, call.Args = req.Args[0], req.Args[1:]
	}
	var err error
	if answer.Details != nil {
		if call.Details, err = json.Marshal(answer.Details); err != nil {
			return answer.ToolAnswer, err
		}
	}
	_, err = r.asking.Append(trajectories.TypeTool, call)
	return answer.ToolAnswer, err
}

// equip prepares the sandbox for the tools that need it.
func (r *run) equip(ctx context.Context) error {
	p, ok := r.Tools.(preparer)
	if !ok {
		return nil
	}
	if err := p.Prepare(ctx, r.Environment); err != nil {
		return orCause(ctx, err)
	}
	return nil
}

// described are abilities as templates have them: about is one line, whoever wrote
// it.
func described(all []Ability) []map[string]any {
	list := make([]map[string]any, len(all))
	for i, a := range all {
		list[i] = map[string]any{"name": a.Name, "usage": a.Usage, "about": strings.Join(strings.Fields(a.About), " ")}
	}
	return list
}
