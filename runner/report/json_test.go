package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// The lines equal those of events.jsonl, byte for byte.
func TestLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var out bytes.Buffer
	log := runner.NewLog(folder, report.NewJSONPrinter(&out))
	for _, e := range []runner.Event{
		{Type: runner.RunStarted, Total: 2, Workers: 1},
		{Type: runner.PhaseChanged, Phase: runner.PhaseThinking, Instance: "a", Step: 1},
		{Type: runner.CommandFinished, Instance: "a", Command: "echo '<&>' \x1b[31m \u2028 ü"},
		{Type: runner.PullProgress, Text: "image", Pull: &runner.PullState{Image: "image", Layers: 3, LayersDone: 1, Bytes: 5, Total: 9}},
		{Type: runner.AttemptFinished, Instance: "a", Outcome: &trajectories.Outcome{
			Class: trajectories.Environment, ExitStatus: "ContainerDied", Steps: 3, Cost: 0.5, Error: "gone", Stack: "secret",
			Usage: model.Usage{Prompt: 70, Completion: 8}, Start: began, End: began.Add(1500 * time.Millisecond),
		}},
		{Type: runner.RunFinished, Summary: &runs.Summary{Instances: 2, Unstarted: 1}},
	} {
		log.Emit(e)
	}
	written, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), out.String()); diff != "" || bytes.Count(written, []byte("\n")) != 5 {
		t.Errorf("5 lines are wanted (-events.jsonl +lines):\n%s", diff)
	}
	want := `"steps":3,"usage":{"prompt_tokens":70,"completion_tokens":8},"patch_bytes":0`
	if !bytes.Contains(written, []byte(want)) || !bytes.Contains(written, []byte(`"cost":0.5,"elapsed":1.5,`)) {
		t.Errorf("what the attempt took is not in %s", written)
	}
	if first := []byte(`{"type":"run_started","version":1,"time":`); !bytes.HasPrefix(written, first) {
		t.Errorf("the first line has no version: %s", written)
	}
	if bytes.Contains(written, []byte("secret")) {
		t.Errorf("an outcome's stack is in %s", written)
	}
}
