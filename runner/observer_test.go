package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// told runs a batch of one and returns what was told: the phases by their
// names, with the command where there is one, and the other events by type.
func told(t *testing.T, dir string, start starter) []string {
	t.Helper()
	var got []string
	b := batch(t, dir, start)
	b.Log = runner.NewLog(b.Folder, func(e runner.Event) {
		text := string(e.Type)
		if e.Transient() {
			text = strings.TrimSpace(string(e.Phase) + " " + e.Command)
			if e.Instance != "a" || (e.Phase == runner.Thinking && e.Step == 0) {
				t.Errorf("phase %+v", e)
			}
		}
		got = append(got, text)
	})
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	return got
}

// caller asks for several commands in each reply.
type caller struct{}

func (m caller) For(datasets.Instance) (model.Model, error) { return m, nil }

func (m caller) Query(context.Context, []model.Message) (model.Reply, error) {
	return model.Reply{Message: protocol.NewTools(false).Write("", "look", "work"), Finish: model.FinishTools, Tries: 1}, nil
}

// Each command of a reply is told of, and reading an image is none.
func TestPhasesOfSeveralCommands(t *testing.T) {
	folder, err := runner.Open(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	a, err := agent.New(agent.Config{
		Protocol: protocol.Tools, SystemTemplate: "s", InstanceTemplate: "t", ObservationTemplate: "o", FormatErrorTemplate: "f",
		StepLimit: 1, Timeout: time.Minute, Images: agent.Images{Marker: "IMG:", Taken: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	b := &runner.Batch{
		Folder: folder, Agent: a, Models: caller{}, ModelName: "m", Workers: 1, MaxTries: 1,
		Sandboxes: starter(func(context.Context, datasets.Instance) (env.Environment, error) {
			return &room{output: "IMG: a.png\n"}, nil
		}),
		Header: trajectories.Header{Config: json.RawMessage(`{}`)},
		Log: runner.NewLog(folder, func(e runner.Event) {
			if e.Phase != "" {
				got = append(got, strings.TrimSpace(string(e.Phase)+" "+e.Command))
			}
		}),
	}
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	want := []string{"starting", "thinking", "running look", "running work", "closing", "left"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

func TestPhases(t *testing.T) {
	tests := []struct {
		name  string
		start starter
		want  []string
	}{
		{"submits", submits, []string{
			"run_started", "attempt_started", "starting", "sandbox_ready",
			"thinking", "running work", "step", "closing", "attempt_finished", "left", "run_finished",
		}},
		{"tries again", func() starter {
			tries := 0
			return func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
				if tries++; tries == 1 {
					return nil, &env.Error{Status: env.StartFailed, Op: "start"}
				}
				return submits(ctx, in)
			}
		}(), []string{
			"run_started", "attempt_started", "starting", "attempt_finished", "waiting",
			"attempt_started", "starting", "sandbox_ready",
			"thinking", "running work", "step", "closing", "attempt_finished", "left", "run_finished",
		}},
		{"defect", func(context.Context, datasets.Instance) (env.Environment, error) {
			return nil, errors.New("surprise")
		}, []string{
			"run_started", "attempt_started", "starting", "attempt_finished", "left", "run_finished",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				if diff := cmp.Diff(tt.want, told(t, dir, tt.start)); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				var written []string
				for _, e := range eventsOf(t, dir) {
					written = append(written, string(e.Type))
				}
				phases := []string{"starting", "thinking", "running work", "closing", "waiting", "left"}
				var lasting []string
				for _, name := range tt.want {
					if !strings.Contains(strings.Join(phases, "\n")+"\n", name+"\n") {
						lasting = append(lasting, name)
					}
				}
				if diff := cmp.Diff(lasting, written); diff != "" {
					t.Errorf("events.jsonl (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func eventsOf(t *testing.T, dir string) []runner.Event {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var events []runner.Event
	for line := range strings.Lines(string(data)) {
		var e runner.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// patient waits for its provider before it answers.
type patient struct{ talker }

func (p patient) For(datasets.Instance) (model.Model, error) { return p, nil }

func (p patient) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	model.Pause(ctx)()
	return p.talker.Query(ctx, messages)
}

func TestWaitsForTheProviderAreTold(t *testing.T) {
	var got []string
	b := batch(t, filepath.Join(t.TempDir(), "run"), submits)
	b.Models = patient{}
	b.Log = runner.NewLog(b.Folder, func(e runner.Event) {
		if e.Phase == runner.Thinking || e.Phase == runner.Waiting {
			got = append(got, fmt.Sprintf("%s %d", e.Phase, e.Step))
		}
	})
	if _, err := b.Run(t.Context(), rows("a")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"thinking 1", "waiting 1", "thinking 1"}, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
