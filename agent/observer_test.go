package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
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
	require.NoError(t, err)
	talk := agent.NewInbox()
	talk.Steer("be quick")
	asked := 0
	repo := agenttest.NewRepository(t)
	var observed eventList
	out := a.Run(t.Context(), agent.Session{
		Model: streamingModel{replies(bash("echo a; exit 3"), "no command", bash("never"), bash(submit))}, Environment: repo.Sandbox, Repository: repo, Recorder: &testRecorder{},
		Task: agent.Task{Text: "task"}, Inbox: talk, Observer: &observed, Events: bus, StartEvent: events.RunStarted{Model: "some-model"},
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
	published := everything(t, all)
	assert.Equal(t, want, lines(published), "events")
	published = slices.DeleteFunc(published, func(e events.Event) bool {
		return e.Kind() == events.KindTextDelta || e.Kind() == events.KindOutputChunk
	})
	if diff := cmp.Diff(published, slices.DeleteFunc([]events.Event(observed), func(e events.Event) bool { return e.Kind() == "" })); diff != "" {
		t.Errorf("the observer and subscribers get different events (-subscriber +observer):\n%s", diff)
	}
	checkSpending(t, published, out)
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

// eventList is an observer that keeps the events.
type eventList []events.Event

func (l *eventList) Observe(e events.Event) { *l = append(*l, e) }

// checkSpending checks that events have what was spent up to them, and replies their calls.
func checkSpending(t *testing.T, published []events.Event, out trajectories.Outcome) {
	t.Helper()
	var sum trajectories.Spending
	for _, e := range published {
		r, ok := e.(events.Recorded)
		if !ok {
			continue
		}
		if m, ok := r.Data.(trajectories.Message); ok && m.Cause == trajectories.CauseReply {
			sum = sum.Add(trajectories.Spending{Steps: 1, Usage: r.Call.Usage, Cost: r.Call.Cost})
		}
		if r.Step != sum.Steps || r.Spent != sum {
			t.Errorf("step %d, spent %+v, want %+v: %+v", r.Step, r.Spent, sum, r.Data)
		}
	}
	if sum.Usage != out.Usage || sum.Cost != out.Cost || sum.Usage.Prompt == 0 {
		t.Errorf("the calls spent %+v, the outcome has %+v, %v", sum, out.Usage, out.Cost)
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
		require.NoError(t, err)
		all = append(all, e.Event)
	}
}

// lines summarizes events; consecutive pieces are one.
func lines(all []events.Event) []string {
	var list []string
	for _, e := range all {
		line := string(e.Kind())
		step := 0
		if r, ok := e.(events.Recorded); ok {
			step = r.Step
		}
		switch e := events.Content(e).(type) {
		case events.RunStarted:
			line += " " + e.Task + " " + e.Model
		case events.PhaseStarted:
			if line += " " + e.Command; e.Command == "" {
				line += fmt.Sprint(e.Step)
			}
		case trajectories.CommandDecision:
			line += " " + string(e.Action) + " " + e.By
		case events.OutputChunk:
			line += " " + strings.TrimSpace(string(e.Data))
		case trajectories.Execution:
			line += fmt.Sprint(" ", e.ExitCode)
		case trajectories.Message:
			switch e.Cause {
			case trajectories.CauseReply:
				line += fmt.Sprint(" ", step, " ", e.Actions)
			case trajectories.CauseFormatError:
			default:
				line += " " + string(e.Cause) + " " + e.Content
			}
		case events.LimitReached:
			line += fmt.Sprint(" ", e.Limit, " ", e.Steps, " ", e.Raised)
		case trajectories.Outcome:
			line += " " + e.ExitStatus
		}
		if n := len(list); n > 0 && list[n-1] == line && line == "text_delta" {
			continue
		}
		list = append(list, line)
	}
	return list
}
