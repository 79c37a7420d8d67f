package main_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/trajectories"
)

// The benchmarks of this file measure bin/mini with containers; make bench builds it.
const program = "../../bin/mini"

// image returns the image of the containers, which has bash 5.
func image() string { return cmp.Or(os.Getenv("IMAGE"), "mini-base:latest") }

// benchRun is a run of mini bench with scripted replies.
type benchRun struct {
	workers, steps int    // an instance for each worker; its steps without the submission
	shell          string // -c or -lc
	command        string
	latency        time.Duration // of the model
}

// result is what mini bench did and used.
type result struct {
	commands [][]command // of each instance
	cpu      time.Duration
	memory   float64 // peak resident memory in MiB
}

// command is a command of an agent: its start, and the time of its record.
type command struct{ start, recorded time.Time }

func (r benchRun) run(b *testing.B) (res result) {
	b.Helper()
	dir := b.TempDir()
	var rows, replies bytes.Buffer
	for i := range r.workers {
		fmt.Fprintf(&rows, "{\"instance_id\":\"x__y-%d\",\"problem_statement\":\"p\"}\n", i)
	}
	for range r.steps {
		fmt.Fprintf(&replies, "- \"```bash\\n%s\\n```\"\n", r.command)
	}
	replies.WriteString("- \"```bash\\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n```\"\n")
	for name, content := range map[string][]byte{"rows.jsonl": rows.Bytes(), "replies.yaml": replies.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	cmd := exec.CommandContext(b.Context(), program, "bench", "--progress", "none", "--subset", filepath.Join(dir, "rows.jsonl"),
		"--model-class", "scripted", "-w", strconv.Itoa(r.workers), "-o", filepath.Join(dir, "run"),
		"-c", "model.replies="+filepath.Join(dir, "replies.yaml"), "-c", "environment.image="+image(),
		"-c", "agent.step_limit=0", "-c", fmt.Sprintf("model.delay=%g", r.latency.Seconds()),
		"-c", "environment.timeout=60", "-c", "environment.interpreter=[bash, "+r.shell+"]", "-c", `environment.env.BASH_ENV=""`)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // mini then removes its containers
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %.1000s", err, out)
	}
	for i := range r.workers {
		var commands []command
		for record, err := range trajectories.Read(filepath.Join(dir, "run", fmt.Sprintf("x__y-%d", i), "attempts", "1", "journal.jsonl")) {
			if err == nil && record.Type != trajectories.TypeExecution {
				continue
			}
			var e trajectories.Execution
			if err == nil {
				err = json.Unmarshal(record.Data, &e)
			}
			if err != nil {
				b.Fatal(err)
			}
			commands = append(commands, command{e.Start, record.Time})
		}
		res.commands = append(res.commands, commands)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage) //nolint:errcheck // on Linux it has this type
	res.cpu, res.memory = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), float64(usage.Maxrss)/1024
	return res
}

// BenchmarkStep compares a complete step, with its journal, with docker exec and with bash that
// starts the same program in the same container. They take turns, so that a busy moment of the
// machine affects all of them.
func BenchmarkStep(b *testing.B) {
	container := dockerOutput(b, "run", "-d", "--rm", "--network", "none", "--entrypoint", "sleep", image(), "infinity")
	b.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(b.Context()), "docker", "rm", "-f", container).Run()
	})
	for _, flag := range []string{"-c", "-lc"} {
		b.Run("bash"+flag, func(b *testing.B) {
			var shell, step, dockerExec []float64
			inShell := "for ((i = 0; i < 200; i++)); do s=${EPOCHREALTIME/./}; bash " + flag + " true </dev/null >/dev/null 2>&1; e=${EPOCHREALTIME/./}; echo $((e - s)); done"
			for range 4 * b.N {
				for s := range strings.FieldsSeq(dockerOutput(b, "exec", container, "bash", "-c", inShell)) {
					us, err := strconv.ParseFloat(s, 64)
					if err != nil {
						b.Fatal(err)
					}
					shell = append(shell, us/1e3)
				}
				commands := benchRun{workers: 1, steps: 200, shell: flag, command: "true"}.run(b).commands[0]
				for i, c := range commands[1:] {
					step = append(step, milliseconds(c.start.Sub(commands[i].start)))
				}
				for range 8 {
					start := time.Now()
					dockerOutput(b, "exec", container, "bash", flag, "true")
					dockerExec = append(dockerExec, milliseconds(time.Since(start)))
				}
			}
			b.ReportMetric(median(shell), "ms-shell")
			b.ReportMetric(median(step), "ms-step")
			b.ReportMetric(median(dockerExec), "ms-docker-exec")
			b.ReportMetric(median(step)/median(shell), "step/shell")
			b.ReportMetric(median(dockerExec)/median(step), "docker-exec/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkBatch measures runs with several workers and a model that takes 50 ms.
func BenchmarkBatch(b *testing.B) {
	const latency = 50 * time.Millisecond
	for _, workers := range []int{1, 4, 16, 32, 64} {
		steps := 300
		if workers < 16 {
			steps = 100
		}
		b.Run(fmt.Sprintf("%d-workers", workers), func(b *testing.B) {
			for b.Loop() {
				res := benchRun{workers: workers, steps: steps, shell: "-c", command: "true", latency: latency}.run(b)
				rate := res.rate(b)
				b.ReportMetric(rate, "steps/s")
				b.ReportMetric(100*rate*latency.Seconds()/float64(workers), "%ideal")
				b.ReportMetric(milliseconds(res.cpu)/float64(workers*(steps+1)), "ms-CPU/step")
				b.ReportMetric(res.memory, "MB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// rate returns the steps per second while all workers were busy: from the first step of the worker
// that started last to the last step of the worker that finished first.
func (r result) rate(b *testing.B) float64 {
	b.Helper()
	last := func(commands []command) time.Time { return commands[len(commands)-1].recorded }
	from, to := r.commands[0][0].recorded, last(r.commands[0])
	for _, commands := range r.commands {
		if from.Before(commands[0].recorded) {
			from = commands[0].recorded
		}
		if to.After(last(commands)) {
			to = last(commands)
		}
	}
	count := 0
	for _, c := range slices.Concat(r.commands...) {
		if c.recorded.After(from) && !c.recorded.After(to) {
			count++
		}
	}
	if count == 0 {
		b.Fatal("the workers were never all busy: too few steps")
	}
	return float64(count) / to.Sub(from).Seconds()
}

// BenchmarkOutput measures a command with 200 MB of output.
func BenchmarkOutput(b *testing.B) {
	var alone, inStep, memory []float64
	for range 3 * b.N {
		for command, seconds := range map[string]*[]float64{
			"head -c 200000000 /dev/zero | cat >/dev/null": &alone,
			"head -c 200000000 /dev/zero":                  &inStep,
		} {
			res := benchRun{workers: 1, steps: 1, shell: "-c", command: command}.run(b)
			first := res.commands[0][0]
			*seconds = append(*seconds, first.recorded.Sub(first.start).Seconds())
			memory = append(memory, res.memory)
		}
	}
	b.ReportMetric(median(alone), "s-head-alone")
	b.ReportMetric(median(inStep)-median(alone), "s-more")
	b.ReportMetric(median(memory), "MB")
	b.ReportMetric(0, "ns/op")
}

func dockerOutput(b *testing.B, args ...string) string {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), "docker", args...).CombinedOutput()
	if err != nil {
		b.Fatalf("docker %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func median(figures []float64) float64 {
	return slices.Sorted(slices.Values(figures))[len(figures)/2]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
