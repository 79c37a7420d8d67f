package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ask"
)

// Who decided, as records name them, beside agent.ByUser and those of a policy.
const (
	byMode    = "mode"
	byDefault = "default"
)

// Decide implements agent.Supervisor. What the policy denies is denied in every
// mode. A rule of it that allows, or its whitelist, is as good as the person's
// word; what it asks about, and what it lets pass for want of a rule, is for the
// mode to decide. A person who takes over ends a child that works: it has nobody
// to wait for, and would spend its budget on refusals.
func (s *Session) Decide(ctx context.Context, p agent.Proposal) (agent.Decision, error) {
	var d agent.Decision
	var before []agent.Decision
	if s.Policy != nil {
		var err error
		if d, err = s.Policy.Decide(ctx, p); err != nil {
			return d, err
		}
		before = []agent.Decision{d}
		if d.Action == agent.Deny || d.Action == agent.Allow && d.By != byDefault {
			return d, nil
		}
	}
	switch {
	case s.mode() == Yolo:
		return agent.Decision{Action: agent.Allow, By: byMode, Before: before}, nil
	case s.mode() == Human && p.Child:
		return agent.Decision{}, agent.ErrInterrupted
	case s.mode() == Human:
		return s.takenOver(before), nil
	case s.Alone:
		return agent.Decision{Action: agent.Deny, By: byMode, Reason: "there is nobody to ask", Before: before}, nil
	}
	return s.confirm(ctx, p, d.Reason, before)
}

// confirm asks the person about one command. A change of the mode holds for the
// commands after it.
func (s *Session) confirm(ctx context.Context, p agent.Proposal, reason string, before []agent.Decision) (agent.Decision, error) {
	q := Question{Kind: AskConfirm, Text: "Run this command?", Hint: "Enter runs it, n or a comment rejects it, /h helps", Command: p.Command, Reason: reason}
	if p.Child {
		q.Text = "Run this command of a child?"
	}
	q.Text = ask.Marked(q.Text, true)
	for {
		text, err := s.ask(ctx, q)
		run, ok := ask.YesNo(text, true)
		if errors.Is(err, ErrInterrupt) {
			run, ok = false, false // also a "yes" is only told to the model
			text, err = s.ask(ctx, Question{
				Kind: AskMessage, Text: "Interrupted. What to tell the model?", Hint: "Enter goes back to the command, Ctrl-C leaves",
			})
			if err == nil && strings.TrimSpace(text) == "" {
				continue
			}
		}
		switch {
		case errors.Is(err, ErrLeft), errors.Is(err, ErrInterrupt):
			// The command may be a child's, whose end is not that of the attempt.
			_ = s.leave() // also by Ctrl-C
			s.Talk.Abort()
			return agent.Decision{}, agent.ErrInterrupted
		case err != nil:
			return agent.Decision{}, err
		case run:
			return agent.Decision{Action: agent.Allow, By: agent.ByUser, Before: before}, nil
		case ok:
			text = "" // no, for no reason
		}
		return agent.Decision{Action: agent.Deny, By: agent.ByUser, Reason: strings.TrimSpace(text), Before: before}, nil
	}
}

// takenOver refuses a command since the person writes them now.
func (s *Session) takenOver(before []agent.Decision) agent.Decision {
	return agent.Decision{Action: agent.Deny, By: agent.ByUser, Reason: "I take over and run commands myself for now.", Before: before}
}
