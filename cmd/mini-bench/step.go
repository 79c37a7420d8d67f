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

// The bars of a step.
const (
	stepOverFloor = 1.3 // times the floor of the same interpreter, at most
	execOverStep  = 30  // times less than docker exec, for bash -c
	loginOverStep = 12  // likewise for bash -lc
)

// rounds is how often all ways are measured in turn, so that a busy moment of
// the machine does not fall on one of them alone.
const rounds = 4

// step measures one command, `true`, in every way there is.
func (b *bench) step(ctx context.Context) error {
	b.title("one step: %s, the command is true; medians", b.image)
	plain, err := newPlain(ctx, b.image)
	if err != nil {
		return err
	}
	defer plain.close() //nolint:contextcheck // it cleans up, also after an interrupt
	for _, flag := range []string{"-c", "-lc"} {
		figures := map[string][]float64{}
		for range rounds {
			for _, way := range []struct {
				name string
				ms   func() ([]float64, error)
			}{
				{"floor", func() ([]float64, error) { return plain.floor(ctx, 200, "bash", flag, "true") }},
				{"mini", func() ([]float64, error) { return b.steps(ctx, flag, 200) }},
				{"command line", func() ([]float64, error) { return plain.commandLine(ctx, 8, flag) }},
				{"API", func() ([]float64, error) { return plain.api(ctx, 8, flag) }},
			} {
				ms, err := way.ms()
				if err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
				figures[way.name] = append(figures[way.name], ms...)
			}
		}
		floor, step, line, api := median(figures["floor"]), median(figures["mini"]), median(figures["command line"]), median(figures["API"])
		b.row("bash "+flag+": floor, fork and exec in the container", floor, "ms")
		b.row("bash "+flag+": mini, the whole step, journal on", step, "ms")
		b.row("bash "+flag+": docker exec, the command line", line, "ms")
		b.row("bash "+flag+": the engine's exec API", api, "ms")
		b.atMost("bash "+flag+": mini over the floor", step/floor, stepOverFloor, "times")
		limit := float64(execOverStep)
		if flag == "-lc" {
			limit = loginOverStep
		}
		b.atLeast("bash "+flag+": docker exec over mini", line/step, limit, "times")
	}
	return nil
}

// steps runs mini on n commands and returns how long each whole step took: from
// the start of a command to the start of the next, by the journal.
func (b *bench) steps(ctx context.Context, flag string, n int) ([]float64, error) {
	run, err := b.bench(ctx, options{instances: 1, steps: n, workers: 1, flag: flag, command: "true"})
	if err != nil {
		return nil, err
	}
	var ms []float64
	var last time.Time
	for x, err := range run.executions() {
		if err != nil {
			return nil, err
		}
		if !last.IsZero() {
			ms = append(ms, x.Start.Sub(last).Seconds()*1e3)
		}
		last = x.Start
	}
	return ms, nil
}

// plain is a container without mini: what others run commands in.
type plain struct {
	cli *client.Client
	id  string
}

func newPlain(ctx context.Context, image string) (*plain, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	made, err := cli.ContainerCreate(ctx,
		&container.Config{Image: image, Entrypoint: []string{"sleep", "infinity"}, Cmd: []string{}, StopSignal: "SIGKILL"},
		&container.HostConfig{
			NetworkMode: "none", AutoRemove: true, LogConfig: container.LogConfig{Type: "none"},
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: self, Target: "/floor", ReadOnly: true}},
		}, nil, nil, "")
	if err != nil {
		return nil, errors.Join(err, cli.Close())
	}
	p := &plain{cli, made.ID}
	if err := cli.ContainerStart(ctx, p.id, container.StartOptions{}); err != nil {
		p.close() //nolint:contextcheck // likewise
		return nil, err
	}
	return p, nil
}

func (p *plain) close() {
	_ = p.cli.ContainerRemove(context.Background(), p.id, container.RemoveOptions{Force: true, RemoveVolumes: true}) // it says of itself what went wrong
	_ = p.cli.Close()
}

// exec is a command by the engine's API, as its command line does it.
func (p *plain) exec(ctx context.Context, argv ...string) (string, error) {
	made, err := p.cli.ContainerExecCreate(ctx, p.id, container.ExecOptions{AttachStdout: true, AttachStderr: true, Cmd: argv})
	if err != nil {
		return "", err
	}
	conn, err := p.cli.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, io.Discard, conn.Reader); err != nil {
		return "", err
	}
	done, err := p.cli.ContainerExecInspect(ctx, made.ID)
	if err == nil && done.ExitCode != 0 {
		err = fmt.Errorf("%q: exit code %d", argv, done.ExitCode)
	}
	return out.String(), err
}

func (p *plain) floor(ctx context.Context, n int, argv ...string) ([]float64, error) {
	out, err := p.exec(ctx, append([]string{"/floor", floorCommand, strconv.Itoa(n)}, argv...)...)
	if err != nil {
		return nil, err
	}
	us, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	return []float64{us / 1e3}, err
}

func (p *plain) api(ctx context.Context, n int, flag string) ([]float64, error) {
	return timed(n, func() error {
		_, err := p.exec(ctx, "bash", flag, "true")
		return err
	})
}

func (p *plain) commandLine(ctx context.Context, n int, flag string) ([]float64, error) {
	return timed(n, func() error {
		return exec.CommandContext(ctx, "docker", "exec", p.id, "bash", flag, "true").Run() //nolint:gosec // no outside input
	})
}

// timed calls f n times and returns milliseconds.
func timed(n int, f func() error) ([]float64, error) {
	var ms []float64
	for range n {
		start := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		ms = append(ms, time.Since(start).Seconds()*1e3)
	}
	return ms, nil
}
