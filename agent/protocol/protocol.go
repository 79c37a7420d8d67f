// Package protocol defines how a model writes commands and receives their
// results: text (a fenced block), xml (a tag) and tools (native tool calls).
// Each protocol is one type in one file.
//
// The prompts (see configs) explain the protocol to the model; FormatExample
// formats their examples. The package runs no commands and does not depend on a
// provider.
//
//	p := protocol.NewTools(false)
//	parsed := p.Parse(reply, step)
//	for _, a := range parsed.Actions { ...; history = append(history, p.ResultMessage(a, output)) }
package protocol

import (
	"strings"

	"github.com/minibench/mini/model"
)

// Names of the protocols.
const (
	Text  = "text"
	XML   = "xml"
	Tools = "tools"
)

// Names lists all protocols, the default first.
var Names = []string{Text, XML, Tools}

// Protocol is one way to write commands.
type Protocol interface {
	// Tools returns the tools that a request must offer to the model, if any.
	Tools() []model.ToolDefinition
	// Parse finds the commands of a reply. n is the number of the reply in its
	// conversation; generated call ids contain it.
	Parse(reply model.Reply, n int) ParsedReply
	// ResultMessage returns the message with the result of an action.
	ResultMessage(a Action, text string) model.Message
	// FormatReply returns a reply with the given commands, as a model would
	// write it: the reverse of Parse.
	FormatReply(thought string, commands ...string) model.Message
}

// Action is one command of a reply.
type Action struct {
	Command string
	// CallID is the id of the tool call; empty in other protocols.
	CallID string
	// Problem says what is wrong with the call, worded for the model; empty if
	// the call is valid. Command is empty for an invalid call.
	Problem string
}

// ParsedReply is the result of parsing a reply.
type ParsedReply struct {
	// Message is the reply for the history. It is unchanged, except that what
	// servers would reject is removed or replaced.
	Message model.Message
	// Actions are in the order of the reply. Problem says what is wrong with
	// the reply, worded for the model; if it is not empty, no action is run.
	Actions []Action
	Problem string
	// Truncated reports that the reply is invalid because of the token limit.
	Truncated bool
	// Incomplete reports that the reply starts a command but has no complete
	// one.
	Incomplete bool
}

// Commands returns the valid commands, run or not.
func (r ParsedReply) Commands() []string {
	var list []string
	for _, a := range r.Actions {
		if a.Problem == "" {
			list = append(list, a.Command)
		}
	}
	return list
}

// ErrorMessages returns the messages that tell the model that none of the
// commands of its reply was run. text says why. Every call gets its own answer,
// because servers reject a history with unanswered calls; text is the answer to
// the first invalid call, or to the first call if every call is valid.
func ErrorMessages(p Protocol, r ParsedReply, text string) []model.Message {
	if len(r.Actions) == 0 || r.Actions[0].CallID == "" {
		return []model.Message{p.ResultMessage(Action{}, text)}
	}
	first := 0
	for i, a := range r.Actions {
		if a.Problem != "" {
			first = i
			break
		}
	}
	answers := make([]model.Message, len(r.Actions))
	for i, a := range r.Actions {
		answer := "Nothing was run: another call of the same reply is wrong."
		switch {
		case i == first:
			answer = text
		case a.Problem != "":
			answer = "Nothing was run: " + a.Problem + "."
		case r.Actions[first].Problem == "":
			answer = "Nothing was run: " + r.Problem + "."
		}
		answers[i] = p.ResultMessage(a, answer)
	}
	return answers
}

// NotRunMessages returns the answers to actions that were not run. Actions that
// are not tool calls need no answer.
func NotRunMessages(p Protocol, actions []Action, text string) []model.Message {
	var answers []model.Message
	for _, a := range actions {
		if a.CallID != "" {
			answers = append(answers, p.ResultMessage(a, text))
		}
	}
	return answers
}

// FormatExample returns a command as prompts show it: in the syntax of the
// protocol or, for tool calls, indented.
func FormatExample(p Protocol, command string) string {
	if text := p.FormatReply("", command).Content; text != "" {
		return text
	}
	return "    " + strings.ReplaceAll(command, "\n", "\n    ")
}

// Translate rewrites a reply in the default text syntax, or with tool calls, in
// the syntax of p, so that scripted replies work with every protocol. It
// returns replies that p can parse, and replies without a valid command,
// unchanged.
func Translate(p Protocol, m model.Message) model.Message {
	reply := model.Reply{Message: m, FinishReason: model.FinishStop}
	hasCalls := len(m.ToolCalls) > 0
	if p.Parse(reply, 0).Problem == "" || hasCalls && len(p.Tools()) > 0 {
		return m
	}
	source := Protocol(textProtocol{})
	if hasCalls {
		source = NewTools(false)
	}
	parsed := source.Parse(reply, 0)
	if parsed.Problem != "" {
		return m
	}
	thought := m.Content
	if !hasCalls {
		thought = withoutBlocks(thought)
	}
	translated := p.FormatReply(thought, parsed.Commands()...)
	if p.Parse(model.Reply{Message: translated}, 0).Problem != "" { // the thought contains a command, too
		translated = p.FormatReply("", parsed.Commands()...)
	}
	translated.Reasoning = m.Reasoning
	return translated
}

// countProblem returns the problem of a reply with n commands instead of one.
func countProblem(n int, truncated bool) string {
	switch {
	case truncated:
		return "your reply reached the token limit and was cut off before its command was complete"
	case n == 0:
		return "your reply has no command"
	}
	return "your reply has " + plural(n, "command") + ", and exactly one is needed"
}

// dropCalls removes the tool calls of a reply to a request without tools,
// because servers would require answers to them. It also removes ProviderData,
// which contains the calls.
func dropCalls(m model.Message) model.Message {
	if len(m.ToolCalls) > 0 {
		m.ToolCalls, m.ProviderData = nil, nil
	}
	return m
}
