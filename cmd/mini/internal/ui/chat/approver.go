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
	byMode    = "mode"
	byDefault = "default"
)

// Decide implements agent.Approver. A denial by the policy holds in every mode. An approval by
// a rule or the whitelist counts as the user's. Commands without a matching rule, and those
// that a rule asks about, are up to the mode. In human mode a subagent is interrupted: it
// would spend its budget on denied commands.
func (s *Session) Decide(ctx context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	var d agent.Decision
	var earlier []agent.Decision
	if s.Policy != nil {
		var err error
		if d, err = s.Policy.Decide(ctx, p); err != nil {
			return d, err
		}
		earlier = []agent.Decision{d}
		if d.Action == agent.Deny || d.Action == agent.Allow && d.By != byDefault {
			return d, nil
		}
	}
	switch {
	case s.currentMode() == Yolo:
		return agent.Decision{Action: agent.Allow, By: byMode, Previous: earlier}, nil
	case s.currentMode() == Human && p.Child:
		return agent.Decision{}, agent.ErrInterrupted
	case s.currentMode() == Human:
		return s.denyTakenOver(earlier), nil
	case s.NonInteractive:
		return agent.Decision{Action: agent.Deny, By: byMode, Reason: "there is nobody to ask", Previous: earlier}, nil
	}
	return s.askConfirm(ctx, p, d.Reason, earlier)
}

// askConfirm asks the user about one command. A change of the mode applies to later commands.
func (s *Session) askConfirm(ctx context.Context, p agent.ApprovalRequest, reason string, earlier []agent.Decision) (agent.Decision, error) {
	q := Question{Kind: AskConfirm, Text: "Run this command?", Hint: "Enter runs it, n or a comment rejects it, /h shows help", Command: p.Command, Reason: reason}
	if p.Child {
		q.Text = "Run this command of a subagent?"
	}
	q.Text = ask.YesNoPrompt(q.Text, true)
	for {
		text, err := s.ask(ctx, q)
		run, ok := ask.ParseYesNo(text, true)
		if errors.Is(err, ErrInterrupted) {
			run, ok = false, false // even "yes" is a message to the model
			text, err = s.ask(ctx, Question{
				Kind: AskMessage, Text: "Interrupted. Message to the model?", Hint: "Enter returns to the command, Ctrl-C quits",
			})
			if err == nil && strings.TrimSpace(text) == "" {
				continue
			}
		}
		switch {
		case errors.Is(err, ErrQuit), errors.Is(err, ErrInterrupted):
			// The command may be a subagent's; ending only the subagent would not end the
			// attempt.
			_ = s.markQuit() // Ctrl-C quits, too
			s.Inbox.Abort()
			return agent.Decision{}, agent.ErrInterrupted
		case err != nil:
			return agent.Decision{}, err
		case run:
			return agent.Decision{Action: agent.Allow, By: agent.ByUser, Previous: earlier}, nil
		case ok:
			text = "" // "no" without a reason
		}
		return agent.Decision{Action: agent.Deny, By: agent.ByUser, Reason: strings.TrimSpace(text), Previous: earlier}, nil
	}
}

// denyTakenOver denies a command because the user has switched to human mode.
func (s *Session) denyTakenOver(earlier []agent.Decision) agent.Decision {
	return agent.Decision{Action: agent.Deny, By: agent.ByUser, Reason: "I take over and run commands myself for now.", Previous: earlier}
}
