//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The bars of an export, and what it is of.
const (
	exportRate     = 50  // MB/s of output, at least
	exportResident = 256 // MB, at most
	exportAttempts = 5000
	exportSteps    = 40 // of each

	exportProcessors = 2
)

// export measures mini export over a run that is made up, on two processors. The
// journals have what real ones have: raw answers of the provider, executions
// beside observations.
func (b *bench) export(ctx context.Context) error {
	b.title("export: %d attempts, %d steps", exportAttempts, exportAttempts*exportSteps)
	run := b.run
	if run == "" {
		run = filepath.Join(b.tmp, "synthetic")
	}
	if _, err := os.Stat(run); errors.Is(err, fs.ErrNotExist) {
		size, err := synthesize(ctx, run)
		if err != nil {
			return err
		}
		b.row("journals", float64(size)/1e6, "MB")
	}
	for _, args := range [][]string{
		{"--format", "openai"},
		{"--format", "sharegpt"},
		{"--format", "axolotl"},
		{"--format", "prompt-completion", "--select", "first"},
		{"--format", "openai", "--parquet"},
	} {
		if err := b.exportAs(ctx, run, args); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) exportAs(ctx context.Context, run string, args []string) error {
	out := filepath.Join(b.tmp, "out")
	defer os.RemoveAll(out) //nolint:errcheck // the folder above goes with the run
	name := strings.Join(args, " ")
	if args[1] == "prompt-completion" { // its output grows with the square of the steps: a part is enough
		run = filepath.Join(b.tmp, "part")
		if _, err := synthesizePart(ctx, run, 300); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, b.mini, append([]string{"export", run, "-o", out, "--json"}, args...)...) //nolint:gosec // the program is the user's choice
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(exportProcessors))
	cmd.Stderr = os.Stderr
	start := time.Now()
	stdout, err := cmd.Output()
	took := time.Since(start).Seconds()
	if err != nil {
		return fmt.Errorf("mini export: %w", err)
	}
	var report struct {
		Bytes int64 `json:"bytes"`
	}
	if err := json.Unmarshal(stdout, &report); err != nil {
		return err
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return fmt.Errorf("this system does not say what a process took")
	}
	mb := float64(report.Bytes) / 1e6
	spent := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	// A machine that has other work tells more by what was spent than by the clock.
	note := fmt.Sprintf("%.0f MB in %.1f s; %.1f s of processors: %.0f MB/s if two did nothing else", mb, took, spent, mb/spent*exportProcessors)
	if strings.Contains(name, "parquet") { // compressed: its bytes are others
		b.row(name, mb/took, "MB/s", note)
	} else {
		b.row(name, took, "s", note)
		b.atLeast(name+": output", mb/took, exportRate, "MB/s")
	}
	b.atMost(name+": resident at most", float64(usage.Maxrss)/1e3, exportResident, "MB")
	return nil
}

// synthesize makes the whole run. Its folder has its name when it is complete.
func synthesize(ctx context.Context, run string) (int64, error) {
	size, err := synthesizePart(ctx, run+".partial", exportAttempts)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(run+".partial"))
	}
	return size, os.Rename(run+".partial", run)
}

// synthesizePart makes up the folder of a run, of attempts that call a tool.
func synthesizePart(ctx context.Context, run string, attempts int) (int64, error) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same bytes each time
	text := babble(rng)
	size := int64(0)
	for n := range attempts {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		id := fmt.Sprintf("owner__project%d-%d", n%50, n)
		dir := filepath.Join(run, id, "attempts", "1")
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // goes with the run
			return 0, err
		}
		path := filepath.Join(dir, "journal.jsonl")
		if err := attempt(path, id, rng, text); err != nil {
			return 0, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, nil
}

// babble is text with the ends of lines, the quotes and the letters beyond
// ASCII that code and the output of tests have.
func babble(rng *rand.Rand) string {
	words := strings.Fields(`def return self. import assert "name" 'value' == != None for in range( x y ): # naïve → \n path/to/file.py
		FAILED passed in 0.12s Traceback (most recent call last): File line raise ValueError( {} [] <td class="x"> \t`)
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(" \n\t "[rng.IntN(4)])
	}
	return b.String()
}

func attempt(path, id string, rng *rand.Rand, text string) error {
	j, err := trajectories.Create(path, trajectories.Header{
		InstanceID: id, Attempt: 1, ModelName: "synthetic", ModelClass: "openai", Config: json.RawMessage(`{"agent":{"step_limit":250}}`),
		Tools: []model.Definition{{Name: "bash", Description: "Run a command.", Parameters: json.RawMessage(
			`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`)}},
	})
	if err != nil {
		return err
	}
	piece := func(n int) string {
		n = n/2 + rng.IntN(n)
		at := rng.IntN(len(text) - n)
		return strings.ToValidUTF8(text[at:at+n], "")
	}
	var failed error
	add := func(t trajectories.Type, data any) {
		if _, err := j.Append(t, data); err != nil && failed == nil {
			failed = err
		}
	}
	message := func(c trajectories.Cause, m model.Message, actions ...string) {
		add(trajectories.TypeMessage, trajectories.Message{Message: m, Cause: c, Actions: actions})
	}
	message(trajectories.CausePrompt, model.Message{Role: model.System, Content: piece(1000)})
	message(trajectories.CausePrompt, model.Message{Role: model.User, Content: piece(6000)})
	prompt := int64(2000)
	for i := range exportSteps {
		reply := model.Message{Role: model.Assistant, Content: piece(300), Reasoning: piece(600)}
		command := "sed -n 1,200p " + piece(80)
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			return err
		}
		reply.Calls = []model.Call{{ID: "call_" + strconv.Itoa(i), Name: "bash", Arguments: string(arguments)}}
		raw, err := json.Marshal(map[string]any{"id": id, "object": "chat.completion", "choices": []any{map[string]any{"index": 0, "message": reply}}})
		if err != nil {
			return err
		}
		output := piece(3000)
		prompt += int64(len(output)) / 4
		add(trajectories.TypeCall, trajectories.Call{Usage: model.Usage{Prompt: prompt, Completion: 300}, Cost: 0.01, Finish: "tool_calls", Start: time.Unix(int64(i), 0).UTC(), Tries: 1, Raw: raw})
		message(trajectories.CauseReply, reply, command)
		add(trajectories.TypeExecution, trajectories.Execution{Command: command, Output: trajectories.Bytes(output), Bytes: int64(len(output))})
		message(trajectories.CauseObservation, model.Message{Role: model.Tool, CallID: reply.Calls[0].ID, Content: "<returncode>0</returncode>\n<output>\n" + output + "</output>"})
	}
	add(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: exportSteps, Submission: trajectories.Bytes(piece(2000))})
	if err := j.Close(); failed == nil {
		failed = err
	}
	return failed
}
