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

// The bars of a command that asks.
const (
	askOverPlain     = 3    // ms
	allowedOverPlain = 0.25 // ms, of a command that may ask and does not
)

// ask measures commands that ask beside those that do not, in one container, by
// turns.
func (b *bench) ask(ctx context.Context) (err error) {
	b.title("one call of mini-tool: %s, answered at once; medians", b.image)
	engine, err := docker.Open(ctx, docker.EngineConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	box, err := engine.Start(ctx, docker.Config{Image: b.image, Env: map[string]string{"BASH_ENV": ""}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close(context.WithoutCancel(ctx))) }()
	tools := &env.Tools{Answer: func(context.Context, env.ToolRequest) env.ToolAnswer {
		return env.ToolAnswer{Output: []byte("pong\n")}
	}}
	for _, flag := range []string{"-c", "-lc"} {
		shell := []string{"bash", flag}
		figures := map[string][]float64{}
		for range 40 * rounds {
			for name, c := range map[string]env.Command{
				"plain":   {Script: "true", Interpreter: shell},
				"allowed": {Script: "true", Interpreter: shell, Tools: tools},
				"asks":    {Script: "mini-tool ping", Interpreter: shell, Tools: tools},
			} {
				start := time.Now()
				r, err := box.Execute(ctx, c)
				took := time.Since(start)
				if err == nil && (r.ExitCode != 0 || name == "asks" && string(r.Output) != "pong\n") {
					err = fmt.Errorf("%s: exit code %d, output %.200q, %s", name, r.ExitCode, r.Output, r.Failure)
				}
				if err != nil {
					return err
				}
				figures[name] = append(figures[name], took.Seconds()*1e3)
			}
		}
		plain, allowed, asks := median(figures["plain"]), median(figures["allowed"]), median(figures["asks"])
		b.row("bash "+flag+": a plain command", plain, "ms")
		b.row("bash "+flag+": a command that may ask", allowed, "ms")
		b.row("bash "+flag+": a command that asks once", asks, "ms")
		b.atMost("bash "+flag+": may ask, over the plain command", allowed-plain, allowedOverPlain, "ms")
		b.atMost("bash "+flag+": asks once, over the plain command", asks-plain, askOverPlain, "ms")
	}
	return nil
}
