package subagents

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/trajectories"
)

// Bounds of a child's input and output, in bytes.
const (
	maxTask         = 32 << 10
	maxPassed       = 64 << 10 // of all --pass values together
	maxReport       = 64 << 10
	maxSchema       = 32 << 10
	maxChain        = 64 << 10 // of a chain's file
	maxRecordedTask = 2 << 10  // of a task in call details; the child's header has the whole task
)

// delegateTool is the tool delegate. It runs one task in one child.
type delegateTool struct{ pool *Pool }

// Spec implements tools.Tool.
func (delegateTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "delegate",
		Usage:       `delegate [--skill NAME] [--profile NAME] [--json SCHEMA|FILE] [--pass FILE|TEXT]... "TASK"|-`,
		Description: "has another agent do a part of the task here, in the same files, and prints its report",
		Timeout:     -1,
		MaxOutput:   maxReport + 1<<10,
	}
}

// Call implements tools.Tool.
func (t delegateTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.ParseArgs(c.Args, tools.Flag{Name: "skill"}, tools.Flag{Name: "profile"}, tools.Flag{Name: "json"},
		tools.Flag{Name: "pass", Repeatable: true})
	if err != nil {
		return tools.Result{}, err
	}
	task := childTask{skill: args.Value("skill"), profile: args.Value("profile")}
	if task.text, err = args.Text(c, "task", maxTask); err != nil {
		return tools.Result{}, err
	}
	if err := t.pool.resolve(c, &task); err != nil {
		return tools.Result{}, err
	}
	if args.Has("json") {
		if task.schema, err = readSchema(ctx, c, args.Value("json")); err != nil {
			return tools.Result{}, err
		}
	}
	if task.passed, err = readPassedTexts(ctx, c, args.Values("pass")); err != nil {
		return tools.Result{}, err
	}
	t.pool.board.restore(c.Attempt)
	report, err := t.pool.runChild(ctx, c, task)
	res := tools.Result{Output: withNewline(report.text)}
	if report.child.Child > 0 {
		res.Details = callDetails{[]trajectories.ChildResult{report.child}, t.pool.board.takeChanges(ctx)}
	}
	return res, err
}

// callDetails are recorded with a call; trajectories.ToolCall.Children decodes
// them.
type callDetails struct {
	Children []trajectories.ChildResult `json:"children"`
	// Changed are the changes that children made to the board during the call.
	Changed []change `json:"changed,omitempty"`
}

// resolve sets the definition and the skill of a task before its child is
// created.
func (p *Pool) resolve(c tools.Call, task *childTask) (err error) {
	if c.Environment == nil || c.Attempt == nil {
		return errors.New("it works for the commands of an agent only")
	}
	if task.definition, err = p.Definition(task.profile); err != nil {
		return tools.Usagef("--profile: %v", err)
	}
	switch {
	case task.skill == "":
		return nil
	case p.Skill == nil:
		return tools.Usagef("--skill: there are no skills here")
	}
	if task.loadedSkill, err = p.Skill(task.skill); err != nil {
		return tools.Usagef("--skill: %v", err)
	}
	return nil
}

func withNewline(s string) string {
	if s == "" || s[len(s)-1] == '\n' {
		return s
	}
	return s + "\n"
}
