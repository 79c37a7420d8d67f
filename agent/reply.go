package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// ToolDefinitions returns the tool definitions that model requests must
// contain.
func (c Config) ToolDefinitions() []model.ToolDefinition {
	p, err := c.ParseProtocol()
	if err != nil {
		return nil // New reports the error
	}
	return p.Tools()
}

// ParseProtocol returns the protocol of the configuration. The error is a
// *FieldError.
func (c Config) ParseProtocol() (protocol.Protocol, error) {
	if c.ToolCalls != "" && c.ToolCalls != ToolCallsAll && c.ToolCalls != ToolCallsOne {
		return nil, fieldErrorf("tool_calls", "%.60q is neither %q nor %q", c.ToolCalls, ToolCallsAll, ToolCallsOne)
	}
	name := c.protocolName()
	if c.ActionRegex != "" && name != protocol.Text && slices.Contains(protocol.Names, name) {
		return nil, fieldErrorf("action_regex",
			"the protocol %s has no pattern; remove it or set agent.protocol to %s", name, protocol.Text)
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
		p = protocol.NewTools(c.ToolCalls == ToolCallsOne)
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

// parseReply records a reply and returns its actions. For an invalid reply it
// returns an error; see accept.
func (r *run) parseReply(reply model.Reply) ([]protocol.Action, error) {
	parsed := r.protocol.Parse(reply, r.steps())
	message := trajectories.Message{Message: parsed.Message, Cause: trajectories.CauseReply, Actions: parsed.Commands()}
	if err := r.recordMessages([]trajectories.Message{message}); err != nil {
		return nil, err
	}
	return r.accept(parsed, reply.FinishReason)
}

// unreadableCall stands in the history for a call that only the provider has seen, because
// the roles of messages must alternate.
const unreadableCall = "(a tool call that could not be read)"

// parseMalformed is parseReply for a reply whose tool call the provider could not read.
func (r *run) parseMalformed(failed *model.Error) ([]protocol.Action, error) {
	parsed := protocol.ParsedReply{
		Message:    model.Message{Role: model.Assistant, Content: unreadableCall},
		Problem:    fmt.Sprintf("your tool call could not be read: %v", failed.Err),
		Incomplete: true,
	}
	if err := r.addMessages(trajectories.CauseReply, parsed.Message); err != nil {
		return nil, err
	}
	return r.accept(parsed, "")
}

// accept returns the actions of a valid reply. For an invalid one it returns
// the Feedback that tells the model what is wrong, or the error that ends the
// attempt (see Config.PlainReply and MaxFormatErrors).
func (r *run) accept(parsed protocol.ParsedReply, finish model.FinishReason) ([]protocol.Action, error) {
	if parsed.Problem == "" {
		return parsed.Actions, nil
	}
	if r.cfg.PlainReply == PlainReplyEnd && isPlainReply(parsed, finish) {
		return nil, r.submitPlainReply(protocol.WithoutThinking(parsed.Message.Content))
	}
	if r.cfg.PlainReply == PlainReplyAsk && r.User != nil && isPlainReply(parsed, finish) {
		return nil, &userTurn{r.formatError(parsed, finish)}
	}
	if limit := r.cfg.MaxFormatErrors; limit > 0 && r.attempt.FormatErrors(r.formatErrorsSince)+1 >= limit {
		message := model.Message{Content: "Nothing was run: " + parsed.Problem + "."}
		r.Events.Publish(r.recorded(trajectories.Message{Message: message, Cause: trajectories.CauseFormatError}))
		return nil, r.skipActions(parsed.Actions, ErrRepeatedFormatError)
	}
	return nil, r.formatError(parsed, finish)
}

// isPlainReply reports whether a reply is complete, has text and attempts no
// command.
func isPlainReply(parsed protocol.ParsedReply, finish model.FinishReason) bool {
	return len(parsed.Actions) == 0 && !parsed.Truncated && !parsed.Incomplete && finish != model.FinishLength && finish != model.FinishToolCalls &&
		strings.TrimSpace(protocol.WithoutThinking(parsed.Message.Content)) != ""
}

// submitPlainReply returns the error that ends an attempt with a plain reply.
// The working diff is submitted if a patch is expected and there is a
// repository, else nothing.
func (r *run) submitPlainReply(text string) error {
	s := &Submitted{Source: trajectories.SourceSubmitted, Reply: text}
	if r.cfg.Submission == SubmissionPatch && r.tree.Base != "" {
		s.Source = trajectories.SourceWorktree
	}
	return s
}

// formatError returns the Feedback that tells the model what is wrong with its
// reply.
func (r *run) formatError(parsed protocol.ParsedReply, finish model.FinishReason) error {
	vars := formatErrorValues(parsed, string(finish))
	text, err := r.templates[formatErrorPrompt].render(merge(r.variables(), vars))
	if err != nil {
		return err
	}
	return newFeedback("FormatError", trajectories.CauseFormatError, protocol.ErrorMessages(r.protocol, parsed, text)...)
}

// skipActions ends a reply before all of its actions were run, because of
// reason. It answers the remaining calls, because servers reject a history with
// unanswered calls. The call that submits gets no answer, because it ends the
// attempt.
func (r *run) skipActions(remaining []protocol.Action, reason error) error {
	var f *Feedback
	var submitted *Submitted
	text := "Not run to its end: the attempt is over."
	switch {
	case errors.As(reason, &f):
		f.add(trajectories.CauseNotRun, protocol.NotRunMessages(r.protocol, remaining[1:],
			"Not run, since the call before it did not go through.")...)
		return f
	case errors.As(reason, &submitted):
		remaining, text = remaining[1:], "Not run: the call before it handed in the work."
	}
	return errors.Join(reason, r.addMessages(trajectories.CauseNotRun, protocol.NotRunMessages(r.protocol, remaining, text)...))
}
