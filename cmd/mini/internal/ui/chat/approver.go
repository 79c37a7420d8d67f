package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
)

// Values of Decision.By in records, besides agent.ByUser and those of policies.
const (
	byMode       = "mode"
	byUnattended = "unattended"
	byDefault    = "default"
	bySubmission = "submission"
)

// Decide implements agent.Approver. The policy decides first: its denials are final, and so are
// its approvals by a rule or the whitelist. The mode decides on all other commands: those
// without a matching rule, and those that a rule asks about. Confirm mode does not ask about a
// command that only submits, unless a rule does. In human mode, Decide interrupts subagents, which
// would otherwise spend their budget on denied commands.
func (s *Session) Decide(ctx context.Context, req agent.ApprovalRequest) (agent.Decision, error) {
	var decision agent.Decision
	var previous []agent.Decision
	if s.Policy != nil {
		var err error
		if decision, err = s.Policy.Decide(ctx, req); err != nil {
			return decision, err
		}
		previous = []agent.Decision{decision}
		if decision.Action == agent.Deny || decision.Action == agent.Allow && decision.By != byDefault {
			return decision, nil
		}
	}
	switch {
	case s.currentMode() != Confirm:
		return s.decideByMode(req, previous)
	case agent.IsBareSubmission(req.Command) && (s.Policy == nil || decision.By == byDefault):
		return agent.Decision{Action: agent.Allow, By: bySubmission, Previous: previous}, nil
	case s.NonInteractive:
		return agent.Decision{Action: agent.Deny, By: byMode, Reason: "there is nobody to ask", Previous: previous}, nil
	}
	return s.askConfirm(ctx, req, decision.Reason, previous)
}

// takeOver is what the model is told if the user switches to human mode at a question.
const takeOver = "I take over and run commands myself for now."

// decideByMode decides on a command in yolo or human mode.
func (s *Session) decideByMode(req agent.ApprovalRequest, previous []agent.Decision) (agent.Decision, error) {
	asks := len(previous) > 0 && previous[0].Action == agent.Ask
	switch {
	case s.currentMode() == Yolo && asks && s.Unattended == agent.Deny:
		reason := "it needs approval, and no user is asked: " + previous[0].Reason
		return agent.Decision{Action: agent.Deny, By: byUnattended, Reason: reason, Previous: previous}, nil
	case s.currentMode() == Yolo:
		return agent.Decision{Action: agent.Allow, By: byMode, Previous: previous}, nil
	case req.FromChild:
		return agent.Decision{}, agent.ErrInterrupted
	}
	return agent.Decision{
		Action: agent.Deny, By: agent.ByUser, Reason: takeOver, Previous: previous,
	}, nil
}

// askConfirm asks the user about one command. If the user changes the mode at this question,
// the new mode decides.
func (s *Session) askConfirm(
	ctx context.Context, req agent.ApprovalRequest, reason string, previous []agent.Decision,
) (agent.Decision, error) {
	q := Question{
		Kind: AskConfirm, Text: "Run this command?", Hint: "Enter runs it, n or a comment rejects it, /h shows help",
		Command: req.Command, Reason: reason,
	}
	if req.FromChild {
		q.Text = "Run this command of a subagent?"
	}
	q.Text = ask.YesNoPrompt(q.Text, true)
	for {
		text, err := s.ask(ctx, q)
		approved, ok := ask.ParseYesNo(text, true)
		if errors.Is(err, ErrInterrupted) {
			approved, ok = false, false // any answer, even "yes", is a message to the model
			text, err = s.ask(ctx, Question{
				Kind: AskMessage, Text: "Interrupted. Message to the model?", Hint: "Enter returns to the command, Ctrl-C quits",
			})
			switch isEmpty := err == nil && strings.TrimSpace(text) == ""; {
			case isEmpty && s.currentMode() == Human:
				err = errModeChanged
			case isEmpty:
				continue
			}
		}
		switch {
		case errors.Is(err, errModeChanged):
			return s.decideByMode(req, previous)
		case errors.Is(err, ErrQuit), errors.Is(err, ErrInterrupted):
			_ = s.markQuit() // Ctrl-C at the second question quits
			// Abort ends the attempt. The returned error alone may end only the subagent that wants
			// to run the command.
			s.Inbox.Abort()
			return agent.Decision{}, agent.ErrInterrupted
		case err != nil:
			return agent.Decision{}, err
		case approved:
			return agent.Decision{Action: agent.Allow, By: agent.ByUser, Previous: previous}, nil
		case ok:
			text = "" // "no" is not a reason
		}
		return agent.Decision{Action: agent.Deny, By: agent.ByUser, Reason: strings.TrimSpace(text), Previous: previous}, nil
	}
}
