//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

// Limits of the overhead of tools.
const (
	maxCallOverhead  = 3    // ms, of one call
	maxToolsOverhead = 0.25 // ms, for a command that may call tools but calls none
)

// toolCall compares commands that call a tool with those that do not, alternating in
// one container.
func (b *bench) toolCall(ctx context.Context) (err error) {
	b.title("one call of mini-tool with an immediate response, image %s; medians", b.image)
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	sandbox, err := engine.Start(ctx, docker.Config{Image: b.image, Env: map[string]string{"BASH_ENV": ""}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandbox.Close(context.WithoutCancel(ctx))) }()
	tools := &env.Tools{Handle: func(context.Context, env.ToolRequest) env.ToolResponse {
		return env.ToolResponse{Stdout: []byte("pong\n")}
	}}
	for _, flag := range []string{"-c", "-lc"} {
		shell := []string{"bash", flag}
		figures := map[string][]float64{}
		for range 40 * rounds {
			for name, c := range map[string]env.Command{
				"plain":   {Script: "true", Interpreter: shell},
				"allowed": {Script: "true", Interpreter: shell, Tools: tools},
				"calling": {Script: "mini-tool ping", Interpreter: shell, Tools: tools},
			} {
				start := time.Now()
				r, err := sandbox.Execute(ctx, c)
				duration := time.Since(start)
				if err == nil && (r.ExitCode != 0 || name == "calling" && string(r.Output) != "pong\n") {
					err = fmt.Errorf("%s: exit code %d, output %.200q, %s", name, r.ExitCode, r.Output, r.Failure)
				}
				if err != nil {
					return err
				}
				figures[name] = append(figures[name], duration.Seconds()*1e3)
			}
		}
		plain, allowed, calling := median(figures["plain"]), median(figures["allowed"]), median(figures["calling"])
		b.row("bash "+flag+": a plain command", plain, "ms")
		b.row("bash "+flag+": a command that may call tools", allowed, "ms")
		b.row("bash "+flag+": a command with one tool call", calling, "ms")
		b.atMost("bash "+flag+": overhead of tools without a call", allowed-plain, maxToolsOverhead, "ms")
		b.atMost("bash "+flag+": overhead of one tool call", calling-plain, maxCallOverhead, "ms")
	}
	return nil
}
