package agent

import (
	"slices"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
)

// Step is a reply of a conversation, and what it was answered.
type Step struct {
	// Number counts replies from 1, as Executed.Step does.
	Number int
	Reply  model.Message
	// Commands are those that the reply asks for, whether they were run or not.
	Commands []string
	// Answers are the messages up to the next reply: observations, and what else
	// the model was told. The newest step has none while its command runs.
	Answers []model.Message
}

// Steps are all steps so far, also those that the model is no longer sent, with
// those before the attempt was gone on with. A tool may call it as long as the
// command runs that asked for it. What it returns is the caller's, but for the
// images in it.
func (a *Attempt) Steps() []Step {
	return stepsOf(a.run.messages, a.run.protocol)
}

// stepsOf finds the replies of a history.
func stepsOf(history []model.Message, p protocol.Protocol) []Step {
	var list []Step
	for _, m := range history {
		m.Calls = slices.Clone(m.Calls)
		if m.Role == model.Assistant {
			n := len(list) + 1
			list = append(list, Step{Number: n, Reply: m, Commands: p.Read(model.Reply{Message: m}, n).Commands()})
		} else if n := len(list); n > 0 {
			list[n-1].Answers = append(list[n-1].Answers, m)
		}
	}
	return list
}
