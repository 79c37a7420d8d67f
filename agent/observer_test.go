package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/model"
)

// streamingModel streams its replies in two pieces, after one that is
// invalidated.
type streamingModel struct{ *scriptedModel }

func (m streamingModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	reply, err := m.scriptedModel.Query(ctx, messages)
	if tell := model.DeltaListener(ctx); tell != nil && err == nil {
		half := len(reply.Message.Content) / 2
		tell(model.Delta{Text: "void"})
		tell(model.Delta{Restart: true, Reasoning: "hm"})
		tell(model.Delta{Text: reply.Message.Content[:half]})
		tell(model.Delta{Text: reply.Message.Content[half:]})
	}
	return reply, err
}

// The events of a whole session.
func TestEvents(t *testing.T) {
	bus := events.NewBus()
	all, text := bus.Subscribe(0), bus.Subscribe(0)
	cfg := config()
	cfg.StepLimit = 3
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	talk := agent.NewInbox()
	talk.Steer("be quick")
	asked := 0
	repo := agenttest.NewRepository(t)
	out := a.Run(t.Context(), agent.Session{
		Model: streamingModel{replies(bash("echo a; exit 3"), "no command", bash("never"), bash(submit))}, Environment: repo.Sandbox, Repository: repo, Recorder: &testRecorder{},
		Task: agent.Task{Text: "task"}, Inbox: talk, Events: bus, StartEvent: events.RunStarted{Model: "some-model"},
		Approver: approverFunc(func(p agent.ApprovalRequest) agent.Decision {
			if strings.Contains(p.Command, "never") {
				return agent.Decision{Action: agent.Deny, Reason: "because", By: "rule", Rule: "no"}
			}
			return agent.Decision{Action: agent.Allow, By: "default"}
		}),
		User: fakeUser{raise: func(l agent.Limits) (agent.Limits, bool) {
			asked++
			return agent.Limits{Steps: l.Steps + 1}, true
		}},
	})
	if out.ExitStatus != "Submitted" || asked != 1 {
		t.Fatalf("%s, asked %d times", out.ExitStatus, asked)
	}
	bus.Close()
	want := []string{
		"run_started task some-model", "told steer be quick",
		"turn_started 1", "text_delta", "replied 1 [echo a; exit 3]", "decided allow default", "action_started echo a; exit 3", "output_chunk a", "action_ended 3",
		"turn_started 2", "text_delta", "replied 2 []", "format_error",
		"turn_started 3", "text_delta", "replied 3 [never]", "decided deny rule", "told rejection This command is not allowed here, and was not run: because",
		"limit_reached steps 4 true",
		"turn_started 4", "text_delta", "replied 4 [" + submit + "]", "decided allow default", "action_started " + submit,
		"output_chunk COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "action_ended 0",
		"ended Submitted",
	}
	if diff := cmp.Diff(want, lines(t, all)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	streamed, thought := "", ""
	for _, e := range everything(t, text) {
		d, ok := e.(events.TextDelta)
		switch {
		case !ok || d.Step != 1:
			continue
		case d.Restart:
			streamed, thought = "", ""
		}
		if d.Thinking {
			thought += d.Text
		} else {
			streamed += d.Text
		}
	}
	if streamed != bash("echo a; exit 3") || thought != "hm" {
		t.Errorf("it said %q and thought %q", streamed, thought)
	}
}

func everything(t *testing.T, s *events.Subscription) []events.Event {
	t.Helper()
	var all []events.Event
	for {
		e, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Event)
	}
}

// lines summarizes events; consecutive pieces are one.
func lines(t *testing.T, s *events.Subscription) []string {
	t.Helper()
	var list []string
	for _, e := range everything(t, s) {
		line := string(e.Kind())
		switch e := e.(type) {
		case events.RunStarted:
			line += " " + e.Task + " " + e.Model
		case events.TurnStarted:
			line += fmt.Sprint(" ", e.Step)
		case events.Replied:
			line += fmt.Sprint(" ", e.Step, " ", e.Commands)
		case events.Decided:
			line += " " + e.Action + " " + e.By
		case events.ActionStarted:
			line += " " + e.Command
		case events.OutputChunk:
			line += " " + strings.TrimSpace(string(e.Data))
		case events.ActionEnded:
			line += fmt.Sprint(" ", e.ExitCode)
		case events.UserMessage:
			line += " " + string(e.Cause) + " " + e.Text
		case events.LimitReached:
			line += fmt.Sprint(" ", e.Limit, " ", e.Steps, " ", e.Raised)
		case events.RunEnded:
			line += " " + e.Outcome.ExitStatus
		}
		if n := len(list); n > 0 && list[n-1] == line && line == "text_delta" {
			continue
		}
		list = append(list, line)
	}
	return list
}
