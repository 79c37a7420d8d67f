package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
)

// runEvents runs a batch of one instance and returns its events: phases by name, with the
// command, and other events by type.
func runEvents(t *testing.T, dir string, start starter) []string {
	t.Helper()
	var got []string
	b := batch(t, dir, start)
	b.Log = runner.NewLog(b.Folder, func(e runner.Event) {
		text := string(e.Type)
		if e.IsTransient() {
			text = strings.TrimSpace(string(e.Phase) + " " + e.Command)
			if e.Instance != "a" || (e.Phase == runner.PhaseThinking && e.Step == 0) {
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
				if diff := cmp.Diff(tt.want, runEvents(t, dir, tt.start)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
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
