package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/internal/sanitize"
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
	s.WaitForStep(ctx)
	if !req.FromChild {
		s.mu.Lock()
		s.step = req.Step
		s.mu.Unlock()
	}
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
	return s.askConfirm(ctx, req, decision)
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

// askConfirm asks the user about one command, which the policy has decided on as decision; the zero
// value means that there is no policy. If the user changes the mode at this question, the new mode
// decides.
func (s *Session) askConfirm(ctx context.Context, req agent.ApprovalRequest, decision agent.Decision) (agent.Decision, error) {
	var previous []agent.Decision
	if decision.Action != "" {
		previous = []agent.Decision{decision}
	}
	ruleAsks := decision.Action == agent.Ask && decision.By != byDefault
	q := confirmQuestion(req, decision.Reason, ruleAsks, s.proposeRule(req) != "")
	for {
		d, decided, err := s.confirm(ctx, q, req, ruleAsks)
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
		case decided:
			d.By, d.Previous = agent.ByUser, previous
			return d, nil
		}
	}
}

// confirm asks the question about a command once. decided is false if it has to be asked again.
func (s *Session) confirm(ctx context.Context, q Question, req agent.ApprovalRequest, ruleAsks bool) (d agent.Decision, decided bool, err error) {
	text, err := s.ask(ctx, q)
	switch answer := strings.ToLower(strings.TrimSpace(text)); {
	case errors.Is(err, ErrInterrupted):
		return s.askInstead(ctx)
	case err != nil:
		return d, false, err
	case answer == "a", answer == "always":
		decided, err = s.askAlways(ctx, req, ruleAsks)
		return agent.Decision{Action: agent.Allow}, decided, err
	case answer == "e", answer == "edit":
		d = agent.Decision{Action: agent.Allow}
		text, err = s.askEdit(ctx, req)
		if text != req.Command {
			d.Edited = text
		}
		return d, text != "", err
	}
	approved, isAnswer := ask.ParseYesNo(text, !ruleAsks)
	switch {
	case approved:
		d.Action = agent.Allow
	case isAnswer:
		d.Action = agent.Deny
	default:
		d = agent.Decision{Action: agent.Deny, Reason: strings.TrimSpace(text)}
	}
	return d, true, nil
}

// askInstead asks after Ctrl-C for a message to the model, which rejects the command, even if it is
// "yes".
func (s *Session) askInstead(ctx context.Context) (d agent.Decision, decided bool, err error) {
	text, err := s.ask(ctx, Question{
		Kind: AskMessage, Text: "Interrupted. Message to the model?", Hint: "Enter returns to the command, Ctrl-C quits",
	})
	text = strings.TrimSpace(text)
	if err == nil && text == "" && s.currentMode() == Human {
		err = errModeChanged
	}
	return agent.Decision{Action: agent.Deny, Reason: text}, text != "", err
}

// confirmQuestion returns the question about a command. If a rule asks about it, the default is no.
func confirmQuestion(req agent.ApprovalRequest, reason string, ruleAsks, hasRule bool) Question {
	q := Question{
		Kind: AskConfirm, Text: "Run this command?", Hint: "Enter runs it, e edits it, a comment rejects it, /h helps", Command: req.Command, Reason: reason,
	}
	if req.FromChild {
		q.Text, q.agentRuns = "Run this command of a subagent?", true
	}
	switch {
	case ruleAsks:
		q.Text, q.Hint = q.Text+" [y/N/e]", "y runs it, e edits it, a comment rejects it, /h helps"
	case hasRule:
		q.Text, q.Hint = q.Text+" [Y/n/e/a]", "Enter runs it, e edits, a always, a comment rejects it, /h helps"
	default:
		q.Text += " [Y/n/e]"
	}
	return q
}

// proposeRule returns the command of a rule that allows the requested one; "" if there is none.
func (s *Session) proposeRule(req agent.ApprovalRequest) string {
	if s.Rules == nil {
		return ""
	}
	return s.Rules.ProposeCommand(req)
}

// askAlways asks whether and for how long commands like the requested one are allowed, and adds the
// rule. It reports whether the command may run.
func (s *Session) askAlways(ctx context.Context, req agent.ApprovalRequest, ruleAsks bool) (bool, error) {
	command := s.proposeRule(req)
	switch {
	case ruleAsks:
		s.notifyError("A rule asks about this command, so it is asked about each time. A rule of your own can allow it; see docs/policy.md.")
		return false, nil
	case command == "":
		s.notifyError("Always is for one program with its arguments, such as go test ./a, without pipes, redirections and variables.")
		return false, nil
	}
	q := Question{
		Kind: AskOther, Text: fmt.Sprintf("Always allow %q? [s/f/N]", command+" ..."), Hint: "s for this session, f for this folder",
		Answers: []string{"no", "session", "folder"},
	}
	if s.SaveRule == nil {
		q.Text, q.Hint, q.Answers = fmt.Sprintf("Always allow %q in this session? [s/N]", command+" ..."), "s allows it, Enter does not", q.Answers[:2]
	}
	for {
		text, err := s.ask(ctx, q)
		switch answer := strings.ToLower(strings.TrimSpace(text)); {
		case errors.Is(err, ErrInterrupted):
			return false, nil // to the question about the command
		case err != nil:
			return false, err
		case answer == "" || answer == "n" || answer == "no":
			return false, nil
		case answer == "s" || answer == "session", (answer == "f" || answer == "folder") && s.SaveRule != nil:
			return true, s.addRule(command, answer[0] == 'f')
		}
		s.notifyError("Please answer %s.", map[bool]string{true: "s or n", false: "s, f or n"}[s.SaveRule == nil])
	}
}

// addRule allows commands that begin with a command. If save is set, it stores the rule; if that
// fails, the rule holds for the session.
func (s *Session) addRule(command string, save bool) error {
	if err := s.Rules.AllowCommand(command); err != nil {
		return err
	}
	if !save {
		s.notify("Allowed in this session: %s ...", command)
		return nil
	}
	if err := s.SaveRule(command); err != nil {
		s.notifyError("Allowed in this session, and not stored: %v", err)
		return nil
	}
	s.notify("Allowed in this folder: %s ... (mini policy rules --remove takes it back)", command)
	return nil
}

// maxEdit is the maximum length of a command that can be edited, in bytes.
const maxEdit = 4000

// askEdit asks for a command in place of the requested one. It returns "" if the user wants to
// return to the question. The policy may deny the new command; its questions are answered already.
func (s *Session) askEdit(ctx context.Context, req agent.ApprovalRequest) (command string, err error) {
	if len(req.Command) > maxEdit || !sanitize.IsUnchanged(req.Command) {
		s.notifyError("The command is too long or has characters that cannot be edited here; a comment tells the model what to change.")
		return "", nil
	}
	q := Question{Kind: AskEdit, Text: "Edit the command:", Hint: "Enter runs it; an empty one returns to the question", Draft: req.Command}
	text, err := s.ask(ctx, q)
	if errors.Is(err, ErrInterrupted) {
		return "", nil
	}
	if text = strings.TrimSpace(text); err != nil || text == "" || s.Policy == nil {
		return text, err
	}
	req.Command = text
	d, err := s.Policy.Decide(ctx, req)
	if err == nil && d.Action == agent.Deny {
		s.notifyError("The policy denies this command: %s", d.Reason)
		return "", nil
	}
	return text, err
}
