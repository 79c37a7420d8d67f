package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// isResumed reports whether there is a conversation to resume.
func (r *run) isResumed() bool { return r.Resume != nil && len(r.Resume.Entries) > 0 }

// rebuild restores the files of the sandbox. If that fails, no diff is taken,
// because the files do not reflect the attempt.
func (r *run) rebuild(ctx context.Context) error {
	if !r.isResumed() || r.Resume.Rebuild == nil {
		return nil
	}
	start := time.Now()
	err := r.Resume.Rebuild(ctx, r.Environment, r.tree)
	r.times.SandboxStart += trajectories.Seconds(time.Since(start))
	if err != nil {
		r.tree = nil
		return causeOrErr(ctx, err)
	}
	return nil
}

// resumeLastReply runs the remaining actions of the last reply. Parsing the
// reply again gives the same actions.
func (r *run) resumeLastReply(ctx context.Context) error {
	entries := r.Resume.Entries
	last := lastReplyIndex(entries)
	if last < 0 {
		return nil
	}
	reply, answers := entries[last], entries[last+1:]
	results := countResults(answers)
	if results < len(answers) || results >= wantedResults(reply) {
		return nil
	}
	parsed := model.Reply{Message: reply.Message.Message}
	if reply.Call != nil {
		parsed.FinishReason = reply.Call.Finish
	}
	actions, err := r.accept(r.protocol.Parse(parsed, r.steps), parsed.FinishReason)
	if err != nil {
		return err
	}
	actions = actions[min(results, len(actions)):]
	if r.Resume.SandboxExit != "" && len(actions) > 0 {
		f, err := r.sandboxExitFeedback(actions[0])
		if err != nil {
			return err
		}
		return r.skipActions(actions, f)
	}
	if r.Resume.Submitted {
		if len(actions) > 0 {
			r.submitAction = &actions[0]
		}
		return r.skipActions(actions, &Submitted{Source: trajectories.SourceWorktree})
	}
	return r.runActions(ctx, actions)
}

// sandboxExitFeedback tells the model that the sandbox exited during a command,
// which is not run again.
func (r *run) sandboxExitFeedback(a protocol.Action) (*Feedback, error) {
	res := env.Result{ExitCode: -1}
	text, err := r.templates.observation.render(merge(r.variables(), observationValues(r.cfg.Observation.shorten(res), res, fmt.Sprintf(
		"The sandbox ended while the command ran: %s. The files are as the commands before it left them, in a fresh sandbox. "+
			"The command was not run again.", r.Resume.SandboxExit))))
	if err != nil {
		return nil, err
	}
	f := &Feedback{Reason: "ContainerDied"}
	f.add(trajectories.CauseObservation, r.protocol.ResultMessage(a, text))
	return f, nil
}

// sandboxExitReason returns why the sandbox of an attempt exited during its
// last command; empty if it did not.
func sandboxExitReason(t *trajectories.Transcript) string {
	out, last := t.Outcome, lastReplyIndex(t.Entries)
	if out == nil || last < 0 || out.Class != trajectories.Environment || out.ExitStatus != string(env.ContainerDied) {
		return ""
	}
	executions := t.Entries[last].Executions
	if n := len(executions); n == 0 || executions[n-1].ObservationEntry >= 0 || executions[n-1].ExitCode >= 0 {
		return "" // the last command ended
	}
	_, reason, found := strings.Cut(out.Error, out.ExitStatus+": ")
	if !found {
		reason = "the sandbox ended"
	}
	return reason
}
