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
	"strings"
	"syscall"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// options are a run of mini bench with scripted replies.
type options struct {
	instances, steps, workers int
	flag                      string // of bash
	command                   string
	delay                     time.Duration // of the model
	timeout                   int           // of a command, in seconds
}

// result is what such a run took.
type result struct {
	dir     string
	cpu     time.Duration // of mini itself, user and system
	machine time.Duration // of all processors, as far as they were busy
	peak    float64       // resident memory of mini, MB
}

// bench runs mini bench.
func (b *bench) bench(ctx context.Context, o options) (result, error) {
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
		"-c", "agent.step_limit=0", "-c", fmt.Sprintf("model.delay=%g", o.delay.Seconds()),
		"-c", "environment.timeout="+strconv.Itoa(max(o.timeout, 60)),
		"-c", fmt.Sprintf("environment.interpreter=[bash, %s]", o.flag), "-c", `environment.env.BASH_ENV=""`)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up after itself
	var said bytes.Buffer
	cmd.Stderr = &said
	busy := busyTime()
	err = cmd.Run()
	res.machine = busyTime() - busy
	if err != nil {
		return res, fmt.Errorf("mini bench: %w: %.500s", err, &said)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return res, fmt.Errorf("no account of what mini took")
	}
	res.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	res.peak = float64(usage.Maxrss) / 1024
	return res, nil
}

// rate is how many steps a second were made while every worker was at one: from
// the first step of the last worker to the last step of the first that was done.
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
		if e.Type != runner.Step {
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
	n := 0
	for _, at := range steps {
		if at.After(from) && !at.After(to) {
			n++
		}
	}
	if !to.After(from) {
		return 0, fmt.Errorf("the workers were never all at work: too few steps")
	}
	return float64(n) / to.Sub(from).Seconds(), nil
}

// The bars of a batch.
const (
	latency      = 50 * time.Millisecond
	barWorkers   = 16
	idealShare   = 92  // per cent of workers / latency, at 16 workers
	miniCPU      = 0.6 // ms a step
	miniResident = 36  // MB, at 64 workers
)

// batch measures many workers at once.
func (b *bench) batch(ctx context.Context) error {
	b.title("batches: bash -c true, the model takes %s", latency)
	for _, w := range []struct{ workers, steps int }{{1, 100}, {4, 120}, {16, 300}, {32, 300}, {64, 300}} {
		res, err := b.bench(ctx, options{instances: w.workers, steps: w.steps, workers: w.workers, flag: "-c", command: "true", delay: latency})
		if err != nil {
			return err
		}
		rate, err := res.rate()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("W = %-2d ", w.workers)
		ideal := float64(w.workers) / latency.Seconds()
		n := float64(w.workers * (w.steps + 1))
		cpu := res.cpu.Seconds() * 1e3 / n
		b.row(name+"steps a second", rate, "1/s", fmt.Sprintf("(ideal %.0f)", ideal))
		if w.workers == barWorkers {
			b.atLeast(name+"of the ideal", 100*rate/ideal, idealShare, "%")
			b.atMost(name+"mini's processor time a step", cpu, miniCPU, "ms")
		} else {
			b.row(name+"mini's processor time a step", cpu, "ms")
		}
		b.row(name+"the machine's processor time a step", res.machine.Seconds()*1e3/n, "ms", "(starts and ends of containers among it)")
		if w.workers == 64 {
			b.atMost(name+"mini's resident memory, peak", res.peak, miniResident, "MB")
		} else {
			b.row(name+"mini's resident memory, peak", res.peak, "MB")
		}
	}
	return nil
}

// busyTime is how long all processors together have been busy.
func busyTime() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	var ticks int64
	for i, field := range strings.Fields(line)[1:] {
		const idle, wait, guest = 3, 4, 8
		if i == idle || i == wait || i >= guest {
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// tick is the unit of the kernel's accounts, USER_HZ.
const tick = 10 * time.Millisecond

// durations are how long the commands of the first instance took, in seconds:
// from the start of each to its record.
func (r result) durations() ([]float64, error) {
	var took []float64
	for x, err := range r.executions() {
		if err != nil {
			return nil, err
		}
		took = append(took, x.ended.Sub(x.Start).Seconds())
	}
	return took, nil
}

// execution is a command of the journal, and when it was recorded.
type execution struct {
	trajectories.Execution
	ended time.Time
}

// executions are the commands of the first instance.
func (r result) executions() iter.Seq2[execution, error] {
	return func(yield func(execution, error) bool) {
		for rec, err := range trajectories.Read(filepath.Join(r.dir, "x__y-1", "attempts", "1", "journal.jsonl")) {
			x := execution{ended: rec.Time}
			if err == nil && rec.Type != trajectories.TypeExecution {
				continue
			}
			if err == nil {
				err = json.Unmarshal(rec.Data, &x.Execution)
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

// residentMemory is that of this process, in MB.
func residentMemory() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kb / 1024, err
}
