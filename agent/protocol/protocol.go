// Package protocol defines the ways in which a model says what it wants to be
// run, and is told what came of it: text (a fenced block), xml (a tag), and
// tools (calls of one native tool). Each is one type in one file.
//
// What a model is told about its protocol at the beginning is in the prompts
// (see configs), which ask for it by name; everything else is here. The package
// runs nothing, and knows no provider.
//
//	p := protocol.NewTools(false)
//	reading := p.Read(reply, step)
//	for _, a := range reading.Actions { ...; history = append(history, p.Answer(a, output)) }
package protocol

import (
	"strings"

	"github.com/minibench/mini/model"
)

// The names of the protocols.
const (
	Text  = "text"
	XML   = "xml"
	Tools = "tools"
)

// Names are all of them, the default first.
var Names = []string{Text, XML, Tools}

// Protocol is how one conversation works.
type Protocol interface {
	// Tools are what a request must offer to the model; nil where it needs none.
	Tools() []model.Definition
	// Read finds what a reply asks for. n tells the replies of a conversation
	// apart.
	Read(reply model.Reply, n int) Reading
	// Answer is the message that tells what came of an action.
	Answer(a Action, text string) model.Message
	// Write is a reply that asks for commands, as a model would write it: the
	// reverse of Read.
	Write(thought string, commands ...string) model.Message
}

// Action is one command that a reply asks for.
type Action struct {
	Command string
	// CallID is the tool call that asks; empty where there are none.
	CallID string
	// Problem says what is wrong with the call, in words for the model. There is
	// no command then.
	Problem string
}

// Reading is what was found in a reply.
type Reading struct {
	// Message is the reply as the history is to have it: as the model wrote it,
	// but for what no server would take back.
	Message model.Message
	// Actions are in the model's order. Nothing is run where Wrong is not
	// empty: it says why, in words for the model.
	Actions []Action
	Wrong   string
	// Cut says that the token limit is what is wrong.
	Cut bool
	// Torn says that there is no action, though the reply begins one.
	Torn bool
}

// Commands are those that were found, also where they are not run.
func (r Reading) Commands() []string {
	var list []string
	for _, a := range r.Actions {
		if a.Problem == "" {
			list = append(list, a.Command)
		}
	}
	return list
}

// Refuse tells the model that nothing of its reply was run: told says why and
// what to do. Every call has an answer of its own, since servers refuse a
// history that lacks one; told stands in that of the first wrong one.
func Refuse(p Protocol, r Reading, told string) []model.Message {
	if len(r.Actions) == 0 || r.Actions[0].CallID == "" {
		return []model.Message{p.Answer(Action{}, told)}
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
		text := "Nothing was run: another call of the same reply is wrong."
		switch {
		case i == first:
			text = told
		case a.Problem != "":
			text = "Nothing was run: " + a.Problem + "."
		case r.Actions[first].Problem == "":
			text = "Nothing was run: " + r.Wrong + "."
		}
		answers[i] = p.Answer(a, text)
	}
	return answers
}

// Unrun are the answers to actions that it did not come to. Those that are no
// calls need none.
func Unrun(p Protocol, rest []Action, why string) []model.Message {
	var answers []model.Message
	for _, a := range rest {
		if a.CallID != "" {
			answers = append(answers, p.Answer(a, why))
		}
	}
	return answers
}

// Example is a command as a prompt shows it: in the form in which a model is to
// write it, or, where it does not write it into its text, indented.
func Example(p Protocol, command string) string {
	if written := p.Write("", command).Content; written != "" {
		return written
	}
	return "    " + strings.ReplaceAll(command, "\n", "\n    ")
}

// Restate is a reply in the words of p, where it asks for commands in those of
// another protocol; any other is returned as it is. Replies that were written
// in advance serve every protocol that way.
func Restate(p Protocol, m model.Message) model.Message {
	given := model.Reply{Message: m, Finish: model.FinishStop}
	native := len(m.Calls) > 0
	if p.Read(given, 0).Wrong == "" || native && len(p.Tools()) > 0 {
		return m
	}
	from := Protocol(defaultText())
	if native {
		from = NewTools(false)
	}
	r := from.Read(given, 0)
	if r.Wrong != "" {
		return m
	}
	thought := m.Content
	if !native {
		thought = strings.TrimSpace(defaultText().re.ReplaceAllString(thought, ""))
	}
	said := p.Write(thought, r.Commands()...)
	if p.Read(model.Reply{Message: said}, 0).Wrong != "" { // the thought has a command in it too
		said = p.Write("", r.Commands()...)
	}
	said.Reasoning = m.Reasoning
	return said
}

// wrongCount says that a reply must have one command, and what it has.
func wrongCount(n int, cut bool) string {
	switch {
	case cut:
		return "your reply reached the token limit and was cut off before its command was complete"
	case n == 0:
		return "your reply has no command"
	}
	return "your reply has " + count(n, "command") + ", and exactly one is needed"
}

// withoutCalls is a reply where no tool was offered. Calls that a server made
// up all the same would want answers; what is kept for it has them too.
func withoutCalls(m model.Message) model.Message {
	if len(m.Calls) > 0 {
		m.Calls, m.Kept = nil, nil
	}
	return m
}
