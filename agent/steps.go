package agent

import (
	"slices"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
)

// Step is a reply of the model and the messages that answer it.
type Step struct {
	// Number counts replies from 1, as ExecutedCommand.Step does.
	Number int
	Reply  model.Message
	// Commands are the commands of the reply, run or not.
	Commands []string
	// Answers are the messages up to the next reply: results and other
	// messages. The newest step has none while its command runs.
	Answers []model.Message
}

// Steps returns all steps so far, including steps of earlier sessions and those
// that compaction has removed from the prompt. A tool may call it while the
// command that called the tool runs. The caller owns the result, except for its
// images.
func (a *Attempt) Steps() []Step {
	return stepsOf(a.run.history.AllMessages(), a.run.protocol)
}

// stepsOf splits a history into steps.
func stepsOf(history []model.Message, p protocol.Protocol) []Step {
	var list []Step
	for _, m := range history {
		m.ToolCalls = slices.Clone(m.ToolCalls)
		if m.Role == model.Assistant {
			n := len(list) + 1
			list = append(list, Step{Number: n, Reply: m, Commands: p.Parse(model.Reply{Message: m}, n).Commands()})
		} else if n := len(list); n > 0 {
			list[n-1].Answers = append(list[n-1].Answers, m)
		}
	}
	return list
}
