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

// hasPast says whether there is a conversation to go on with.
func (r *run) hasPast() bool { return r.Past != nil && len(r.Past.Entries) > 0 }

// rebuild makes the sandbox what it was. Where that fails, the files say nothing
// of the attempt, and no diff is taken.
func (r *run) rebuild(ctx context.Context) error {
	if !r.hasPast() || r.Past.Rebuild == nil {
		return nil
	}
	start := time.Now()
	err := r.Past.Rebuild(ctx, r.Environment, r.tree)
	r.times.Start += trajectories.Seconds(time.Since(start))
	if err != nil {
		r.tree = nil
		return orCause(ctx, err)
	}
	return nil
}

// goOn does what is left to be done of the last reply. Read again, it asks for
// the same as when it came.
func (r *run) goOn(ctx context.Context) error {
	entries := r.Past.Entries
	at := lastReply(entries)
	if at < 0 {
		return nil
	}
	reply, answers := entries[at], entries[at+1:]
	told := observations(answers)
	if told < len(answers) || told >= wanted(reply) {
		return nil
	}
	said := model.Reply{Message: reply.Message.Message}
	if reply.Call != nil {
		said.Finish = reply.Call.Finish
	}
	actions, err := r.accept(r.protocol.Read(said, r.steps), said.Finish)
	if err != nil {
		return err
	}
	actions = actions[min(told, len(actions)):]
	if r.Past.Killed != "" && len(actions) > 0 {
		f, err := r.killed(actions[0])
		if err != nil {
			return err
		}
		return r.leave(actions, f)
	}
	if r.Past.Submitted {
		if len(actions) > 0 {
			r.handedIn = &actions[0]
		}
		return r.leave(actions, &Submitted{Source: trajectories.SourceWorktree})
	}
	return r.perform(ctx, actions)
}

// killed tells the model of a command that is not run again, since its sandbox
// ended while it ran.
func (r *run) killed(a protocol.Action) (*Feedback, error) {
	res := env.Result{ExitCode: -1}
	text, err := r.templates.observation.render(merged(r.variables(), observed(r.cfg.Observation.look(res), res, fmt.Sprintf(
		"The sandbox ended while the command ran: %s. The files are as the commands before it left them, in a fresh sandbox. "+
			"The command was not run again.", r.Past.Killed))))
	if err != nil {
		return nil, err
	}
	f := &Feedback{Reason: "ContainerDied"}
	f.add(trajectories.CauseObservation, r.protocol.Answer(a, text))
	return f, nil
}

// killed is why the sandbox of an attempt ended, where a command was running that
// came to no end.
func killed(t *trajectories.Transcript) string {
	out, last := t.Outcome, lastReply(t.Entries)
	if out == nil || last < 0 || out.Class != trajectories.Environment || out.ExitStatus != string(env.ContainerDied) {
		return ""
	}
	ran := t.Entries[last].Ran
	if n := len(ran); n == 0 || ran[n-1].Told >= 0 || ran[n-1].ExitCode >= 0 {
		return "" // what ran last came to its end
	}
	_, why, found := strings.Cut(out.Error, out.ExitStatus+": ")
	if !found {
		why = "the sandbox ended"
	}
	return why
}
