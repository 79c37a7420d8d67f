package delegate

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/trajectories"
)

// Bounds of what a child is told and says, in bytes.
const (
	maxTask   = 32 << 10
	maxPassed = 64 << 10 // all that is passed to a child, together
	maxReport = 64 << 10
	maxSchema = 32 << 10
	maxChain  = 64 << 10 // a file of a chain
	maxTold   = 2 << 10  // of a task, in details; the child's header has the whole
)

// delegateTool hands one task to one child.
type delegateTool struct{ f *Family }

// Spec implements tools.Tool.
func (delegateTool) Spec() tools.Spec {
	return tools.Spec{
		Name:      "delegate",
		Usage:     `delegate [--skill NAME] [--profile NAME] [--json SCHEMA|FILE] [--pass FILE|TEXT]... "TASK"|-`,
		About:     "has another agent do a part of the task here, in the same files, and prints its report",
		Timeout:   -1,
		MaxOutput: maxReport + 1<<10,
	}
}

// Call implements tools.Tool.
func (t delegateTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args, tools.Flag{Name: "skill"}, tools.Flag{Name: "profile"}, tools.Flag{Name: "json"},
		tools.Flag{Name: "pass", Repeats: true})
	if err != nil {
		return tools.Result{}, err
	}
	o := order{skill: args.Value("skill"), profile: args.Value("profile")}
	if o.task, err = args.Text(c, "task", maxTask); err != nil {
		return tools.Result{}, err
	}
	if err := t.f.suits(c, o); err != nil {
		return tools.Result{}, err
	}
	if args.Has("json") {
		if o.schema, err = readSchema(ctx, c, args.Value("json")); err != nil {
			return tools.Result{}, err
		}
	}
	if o.passed, err = readPassed(ctx, c, args.Values("pass")); err != nil {
		return tools.Result{}, err
	}
	t.f.board.recall(c.Attempt)
	mark := t.f.board.mark()
	done, err := t.f.run(ctx, c, o)
	res := tools.Result{Output: endLine(done.text)}
	if done.child.Child > 0 {
		res.Details = made{[]trajectories.Child{done.child}, t.f.board.since(mark)}
	}
	return res, err
}

// made are the details of a call; trajectories.ToolCall.Children reads them.
type made struct {
	Children []trajectories.Child `json:"children"`
	// Changed is what children set on the board meanwhile.
	Changed []change `json:"changed,omitempty"`
}

// suits finds mistakes in what a child is to be, before there is one.
func (f *Family) suits(c tools.Call, o order) error {
	if c.Inside == nil || c.Attempt == nil {
		return errors.New("it works for the commands of an agent only")
	}
	if _, err := f.Kind(o.profile); err != nil {
		return tools.Usagef("--profile: %v", err)
	}
	if o.skill == "" {
		return nil
	}
	if f.Skill == nil {
		return tools.Usagef("--skill: there are no skills here")
	}
	if _, err := f.Skill(o.skill); err != nil {
		return tools.Usagef("--skill: %v", err)
	}
	return nil
}

func endLine(s string) string {
	if s == "" || s[len(s)-1] == '\n' {
		return s
	}
	return s + "\n"
}

// count is a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
