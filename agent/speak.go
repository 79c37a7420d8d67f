package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The values of Config.ToolCalls.
const (
	CallsAll = "all"
	CallsOne = "one"
)

// Speaks is the protocol of a configuration; the error is a *FieldError.
func (c Config) Speaks() (protocol.Protocol, error) { return c.protocol() }

// Tools are what requests must offer to the model, for its protocol.
func (c Config) Tools() []model.Definition {
	p, err := c.protocol()
	if err != nil {
		return nil // New says so
	}
	return p.Tools()
}

// protocol is the one switch from names to protocols.
func (c Config) protocol() (protocol.Protocol, error) {
	if c.ToolCalls != "" && c.ToolCalls != CallsAll && c.ToolCalls != CallsOne {
		return nil, &FieldError{Field: "tool_calls", Err: fmt.Errorf("%.60q is neither %q nor %q", c.ToolCalls, CallsAll, CallsOne)}
	}
	name := c.protocolName()
	if c.ActionRegex != "" && name != protocol.Text && slices.Contains(protocol.Names, name) {
		return nil, &FieldError{Field: "action_regex", Err: fmt.Errorf(
			"the protocol %s has no pattern; leave it out, or set agent.protocol to %s", name, protocol.Text)}
	}
	var p protocol.Protocol
	field, err := "protocol", error(nil)
	switch name {
	case protocol.Text:
		field = "action_regex"
		p, err = protocol.NewText(c.ActionRegex)
	case protocol.XML:
		field = "action_tag"
		p, err = protocol.NewXML(c.ActionTag)
	case protocol.Tools:
		p = protocol.NewTools(c.ToolCalls == CallsOne)
	default:
		err = fmt.Errorf("%.60q is not one of %s", c.Protocol, strings.Join(protocol.Names, ", "))
	}
	if err != nil {
		return nil, &FieldError{Field: field, Err: err}
	}
	return p, nil
}

func (c Config) protocolName() string {
	if c.Protocol == "" {
		return protocol.Text
	}
	return c.Protocol
}

// read finds what a reply asks for and records the reply; one that cannot be
// acted on is a format error, as accept has it.
func (r *run) read(reply model.Reply) ([]protocol.Action, error) {
	reading := r.protocol.Read(reply, r.steps)
	said := trajectories.Message{Message: reading.Message, Cause: trajectories.CauseReply, Actions: reading.Commands()}
	if err := r.say(said); err != nil {
		return nil, err
	}
	return r.accept(reading, reply.Finish)
}

// accept returns the actions of a reply that can be acted on, and tells the model
// what is wrong with another.
func (r *run) accept(reading protocol.Reading, finish model.Finish) ([]protocol.Action, error) {
	if reading.Wrong == "" {
		r.badRow = 0
		return reading.Actions, nil
	}
	if r.cfg.PlainReply == PlainEnd && plain(reading, finish) {
		r.badRow = 0
		return nil, r.spoken(reading.Message.Content)
	}
	r.badRow++
	if r.cfg.MaxFormatErrors > 0 && r.badRow >= r.cfg.MaxFormatErrors {
		r.Events.Publish(events.FormatError{Step: r.steps, Text: "Nothing was run: " + reading.Wrong + "."})
		return nil, r.leave(reading.Actions, ErrRepeatedFormatError)
	}
	return nil, r.formatError(reading, finish)
}

// plain says that a reply is whole, says something, and tried no command.
func plain(reading protocol.Reading, finish model.Finish) bool {
	return len(reading.Actions) == 0 && !reading.Cut && !reading.Torn && finish != model.FinishLength && finish != model.FinishTools &&
		strings.TrimSpace(reading.Message.Content) != ""
}

// spoken ends an attempt with a plain reply, as a submission without a patch.
func (r *run) spoken(text string) error {
	s := &Submitted{Source: trajectories.SourceSubmitted, Reply: text}
	if r.cfg.Submission == SubmissionPatch && r.tree.Base != "" {
		s.Source = trajectories.SourceWorktree
	}
	return s
}

// formatError tells the model what is wrong with its reply.
func (r *run) formatError(reading protocol.Reading, finish model.Finish) error {
	vars := formatErrorValues(reading.Wrong, len(reading.Actions), string(finish), reading.Cut)
	told, err := r.templates.formatError.render(merged(r.variables(), vars))
	if err != nil {
		return err
	}
	f := &Feedback{Reason: "FormatError"}
	f.add(trajectories.CauseFormatError, protocol.Refuse(r.protocol, reading, told)...)
	return f
}

// leave ends a reply before all of its actions were run, for a reason. Calls
// that have no answer yet get one, so that every history can be gone on with;
// but for the one that hands in the work, whose answer is the end.
func (r *run) leave(rest []protocol.Action, reason error) error {
	var f *Feedback
	var submitted *Submitted
	why := "Not run to its end: the attempt is over."
	switch {
	case errors.As(reason, &f):
		f.add(trajectories.CauseNotRun, protocol.Unrun(r.protocol, rest[1:],
			"Not run, since the call before it did not go through.")...)
		return f
	case errors.As(reason, &submitted):
		rest, why = rest[1:], "Not run: the call before it handed in the work."
	}
	ended := &Feedback{}
	ended.add(trajectories.CauseNotRun, protocol.Unrun(r.protocol, rest, why)...)
	return errors.Join(reason, r.say(ended.Messages...))
}
