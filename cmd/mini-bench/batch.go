//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// options configure a run of mini bench with scripted replies.
type options struct {
	instances, steps, workers int    // steps are those of each instance, without the submission
	bashFlag                  string // -c or -lc
	command                   string
	modelLatency              time.Duration
	timeout                   int // timeout of commands in seconds; less than 60 means 60
}

// result is the result of a run of mini bench.
type result struct {
	dir        string        // folder of the run
	cpu        time.Duration // user and system time of mini
	peakMemory float64       // peak resident memory of mini, in MiB
}

// runBench runs mini bench with scripted replies and measures its resource usage.
func (b *bench) runBench(ctx context.Context, o options) (result, error) {
	dir, err := os.MkdirTemp(b.tmp, "run-")
	if err != nil {
		return result{}, err
	}
	var rows, replies bytes.Buffer
	for i := range o.instances {
		fmt.Fprintf(&rows, "{\"instance_id\":\"x__y-%d\",\"problem_statement\":\"p\"}\n", i+1)
	}
	for range o.steps {
		fmt.Fprintf(&replies, "- \"```bash\\n%s\\n```\"\n", o.command)
	}
	replies.WriteString("- \"```bash\\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n```\"\n")
	if err := os.WriteFile(filepath.Join(dir, "rows.jsonl"), rows.Bytes(), 0o600); err != nil {
		return result{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "replies.yaml"), replies.Bytes(), 0o600); err != nil {
		return result{}, err
	}
	res := result{dir: filepath.Join(dir, "run")}
	cmd := exec.CommandContext(ctx, b.mini, "bench", "--progress", "none", "--subset", filepath.Join(dir, "rows.jsonl"), //nolint:gosec // the caller's own program
		"--model-class", "scripted", "-w", strconv.Itoa(o.workers), "-o", res.dir,
		"-c", "model.replies="+filepath.Join(dir, "replies.yaml"), "-c", "environment.image="+b.image,
		"-c", "agent.step_limit=0", "-c", fmt.Sprintf("model.delay=%g", o.modelLatency.Seconds()),
		"-c", "environment.timeout="+strconv.Itoa(max(o.timeout, 60)),
		"-c", fmt.Sprintf("environment.interpreter=[bash, %s]", o.bashFlag), "-c", `environment.env.BASH_ENV=""`)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // mini then removes its containers
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return res, fmt.Errorf("mini bench: %w: %.500s", err, &stderr)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return res, fmt.Errorf("no resource usage of mini")
	}
	res.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	res.peakMemory = float64(usage.Maxrss) / 1024
	return res, nil
}

// rate returns the number of steps per second while all workers were busy. That time
// begins at the end of the first step of the worker that started last. It ends at the end
// of the last step of the worker that finished first.
func (r result) rate() (float64, error) {
	f, err := os.Open(filepath.Join(r.dir, "events.jsonl"))
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	var steps []time.Time
	first, last := map[string]time.Time{}, map[string]time.Time{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e runner.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return 0, err
		}
		if e.Type != runner.CommandFinished {
			continue
		}
		steps = append(steps, e.Time)
		if first[e.Instance].IsZero() {
			first[e.Instance] = e.Time
		}
		last[e.Instance] = e.Time
	}
	var from, to time.Time
	for id := range first {
		if first[id].After(from) {
			from = first[id]
		}
		if to.IsZero() || last[id].Before(to) {
			to = last[id]
		}
	}
	count := 0
	for _, t := range steps {
		if t.After(from) && !t.After(to) {
			count++
		}
	}
	if !to.After(from) {
		return 0, fmt.Errorf("workers were never all busy: too few steps")
	}
	return float64(count) / to.Sub(from).Seconds(), nil
}

// Settings and limits of the batch part.
const (
	modelLatency  = 50 * time.Millisecond
	limitWorkers  = 16  // the number of workers for which the limits apply
	minEfficiency = 92  // per cent of the ideal rate, which is workers / modelLatency
	maxCPU        = 0.6 // ms per step
	maxMemory     = 56  // MiB, with 64 workers
)

// batch measures runs with several workers.
func (b *bench) batch(ctx context.Context) error {
	b.title("batches: bash -c true, model latency %s", modelLatency)
	for _, w := range []struct{ workers, steps int }{{1, 100}, {4, 120}, {16, 300}, {32, 300}, {64, 300}} {
		res, err := b.runBench(ctx, options{instances: w.workers, steps: w.steps, workers: w.workers, bashFlag: "-c", command: "true", modelLatency: modelLatency})
		if err != nil {
			return err
		}
		rate, err := res.rate()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("W = %-2d ", w.workers)
		ideal := float64(w.workers) / modelLatency.Seconds()
		n := float64(w.workers * (w.steps + 1))
		cpu := milliseconds(res.cpu) / n
		b.row(name+"steps per second", rate, "1/s", fmt.Sprintf("(ideal %.0f)", ideal))
		if w.workers == limitWorkers {
			b.atLeast(name+"efficiency", 100*rate/ideal, minEfficiency, "%")
			b.atMost(name+"CPU time of mini per step", cpu, maxCPU, "ms")
		} else {
			b.row(name+"CPU time of mini per step", cpu, "ms")
		}
		if w.workers == 64 {
			b.atMost(name+"peak resident memory of mini", res.peakMemory, maxMemory, "MB")
		} else {
			b.row(name+"peak resident memory of mini", res.peakMemory, "MB")
		}
	}
	return nil
}

// durations returns the durations of the commands of the first instance, in seconds:
// from the start of each command to the time of its record.
func (r result) durations() ([]float64, error) {
	var seconds []float64
	for e, err := range r.executions() {
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, e.recorded.Sub(e.Start).Seconds())
	}
	return seconds, nil
}

// execution is a command in the journal, with the time of its record.
type execution struct {
	trajectories.Execution
	recorded time.Time
}

// executions returns the commands of the first instance from its journal.
func (r result) executions() iter.Seq2[execution, error] {
	return func(yield func(execution, error) bool) {
		for record, err := range trajectories.Read(filepath.Join(r.dir, "x__y-1", "attempts", "1", "journal.jsonl")) {
			e := execution{recorded: record.Time}
			if err == nil && record.Type != trajectories.TypeExecution {
				continue
			}
			if err == nil {
				err = json.Unmarshal(record.Data, &e.Execution)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
