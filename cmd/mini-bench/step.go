//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

// Limits of a step.
const (
	maxStepFactor      = 1.5 // step / baseline
	minExecFactor      = 25  // docker exec / step, for bash -c
	minLoginExecFactor = 12  // docker exec / step, for bash -lc
)

// rounds is how often the variants are measured in turn, so that a load peak of the
// machine affects all of them.
const rounds = 4

// step measures the command "true" in all variants.
func (b *bench) step(ctx context.Context) error {
	b.title("one step: command true, image %s; medians", b.image)
	plain, err := startPlainContainer(ctx, b.image)
	if err != nil {
		return err
	}
	defer plain.close() //nolint:contextcheck // it cleans up, also after an interrupt
	for _, flag := range []string{"-c", "-lc"} {
		figures := map[string][]float64{}
		for range rounds {
			for _, variant := range []struct {
				name string
				ms   func() ([]float64, error)
			}{
				{"baseline", func() ([]float64, error) { return plain.baseline(ctx, 200, "bash", flag, "true") }},
				{"mini", func() ([]float64, error) { return b.steps(ctx, flag, 200) }},
				{"command line", func() ([]float64, error) { return plain.commandLine(ctx, 8, flag) }},
				{"API", func() ([]float64, error) { return plain.api(ctx, 8, flag) }},
			} {
				ms, err := variant.ms()
				if err != nil {
					return fmt.Errorf("%s: %w", variant.name, err)
				}
				figures[variant.name] = append(figures[variant.name], ms...)
			}
		}
		baseline, step, cli, api := median(figures["baseline"]), median(figures["mini"]), median(figures["command line"]), median(figures["API"])
		b.row("bash "+flag+": baseline, fork and exec in the container", baseline, "ms")
		b.row("bash "+flag+": mini, complete step with journal", step, "ms")
		b.row("bash "+flag+": docker exec command", cli, "ms")
		b.row("bash "+flag+": exec API of the engine", api, "ms")
		b.atMost("bash "+flag+": mini / baseline", step/baseline, maxStepFactor, "times")
		limit := float64(minExecFactor)
		if flag == "-lc" {
			limit = minLoginExecFactor
		}
		b.atLeast("bash "+flag+": docker exec / mini", cli/step, limit, "times")
	}
	return nil
}

// steps runs mini with n commands and returns the duration of each complete step, in
// milliseconds: from the start of a command to the start of the next, according to the
// journal.
func (b *bench) steps(ctx context.Context, flag string, n int) ([]float64, error) {
	run, err := b.runBench(ctx, options{instances: 1, steps: n, workers: 1, bashFlag: flag, command: "true"})
	if err != nil {
		return nil, err
	}
	var ms []float64
	var last time.Time
	for e, err := range run.executions() {
		if err != nil {
			return nil, err
		}
		if !last.IsZero() {
			ms = append(ms, milliseconds(e.Start.Sub(last)))
		}
		last = e.Start
	}
	return ms, nil
}

// plainContainer is a container without mini's helper.
type plainContainer struct {
	cli *client.Client
	id  string
}

// startPlainContainer starts a container that also contains this program.
func startPlainContainer(ctx context.Context, image string) (*plainContainer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	created, err := cli.ContainerCreate(ctx,
		&container.Config{Image: image, Entrypoint: []string{"sleep", "infinity"}, Cmd: []string{}, StopSignal: "SIGKILL"},
		&container.HostConfig{
			NetworkMode: "none", AutoRemove: true, LogConfig: container.LogConfig{Type: "none"},
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: self, Target: "/mini-bench", ReadOnly: true}},
		}, nil, nil, "")
	if err != nil {
		return nil, errors.Join(err, cli.Close())
	}
	p := &plainContainer{cli, created.ID}
	if err := cli.ContainerStart(ctx, p.id, container.StartOptions{}); err != nil {
		p.close() //nolint:contextcheck // it cleans up
		return nil, err
	}
	return p, nil
}

// close removes the container and closes the client.
func (p *plainContainer) close() {
	_ = p.cli.ContainerRemove(context.Background(), p.id, container.RemoveOptions{Force: true, RemoveVolumes: true}) // errors do not affect the figures
	_ = p.cli.Close()
}

// exec runs a command with the engine's API, as the docker command does.
func (p *plainContainer) exec(ctx context.Context, argv ...string) (string, error) {
	created, err := p.cli.ContainerExecCreate(ctx, p.id, container.ExecOptions{AttachStdout: true, AttachStderr: true, Cmd: argv})
	if err != nil {
		return "", err
	}
	conn, err := p.cli.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, io.Discard, conn.Reader); err != nil {
		return "", err
	}
	done, err := p.cli.ContainerExecInspect(ctx, created.ID)
	if err == nil && done.ExitCode != 0 {
		err = fmt.Errorf("%q: exit code %d", argv, done.ExitCode)
	}
	return out.String(), err
}

// baseline returns the median duration, in milliseconds, of n runs of a command, as
// measured in the container.
func (p *plainContainer) baseline(ctx context.Context, n int, argv ...string) ([]float64, error) {
	out, err := p.exec(ctx, append([]string{"/mini-bench", baselineCommand, strconv.Itoa(n)}, argv...)...)
	if err != nil {
		return nil, err
	}
	us, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	return []float64{us / 1e3}, err
}

// api returns the durations of n commands that the engine's API runs, in milliseconds.
func (p *plainContainer) api(ctx context.Context, n int, flag string) ([]float64, error) {
	return timed(n, func() error {
		_, err := p.exec(ctx, "bash", flag, "true")
		return err
	})
}

// commandLine returns the durations of n commands that docker exec runs, in milliseconds.
func (p *plainContainer) commandLine(ctx context.Context, n int, flag string) ([]float64, error) {
	return timed(n, func() error {
		return exec.CommandContext(ctx, "docker", "exec", p.id, "bash", flag, "true").Run() //nolint:gosec // no outside input
	})
}

// timed calls f n times and returns the durations in milliseconds.
func timed(n int, f func() error) ([]float64, error) {
	var ms []float64
	for range n {
		start := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		ms = append(ms, milliseconds(time.Since(start)))
	}
	return ms, nil
}
