package harborrun

import (
	"context"
	"slices"
	"testing"

	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

// calls is an environment that lists what is asked of it.
type calls struct {
	env.Environment
	list []string
}

func (c *calls) Execute(_ context.Context, cmd env.Command) (env.Result, error) {
	c.list = append(c.list, slices.Concat(cmd.Interpreter, []string{cmd.Script})[0])
	return env.Result{}, nil
}

func (c *calls) ChangeNetwork(_ context.Context, network string) error {
	c.list = append(c.list, "network "+network)
	return nil
}

// Processes are dead before the network changes, and services start after it.
func TestEndPhase(t *testing.T) {
	const service = "'serve' 'sh' '-c' 'sleep infinity' </dev/null >/dev/null 2>&1 &"
	for _, tt := range []struct {
		name          string
		run           string // network of the run
		current, mode string
		mayStay       bool
		want          []string
	}{
		{"opened", "bridge", "none", "public", false, []string{env.KillProgram, "network bridge", service}},
		{"opened, although processes may stay", "mine", "none", "public", true, []string{env.KillProgram, "network mine", service}},
		{"closed", "bridge", "bridge", "no-network", true, []string{env.KillProgram, "network none", service}},
		{"the same", "bridge", "bridge", "public", false, []string{env.KillProgram, service}},
		{"the same, and processes may stay", "bridge", "bridge", "public", true, nil},
		{"a run without a network", "none", "none", "public", true, nil},
		{"a run without a setting", "", "none", "public", true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &calls{}
			task := &harbor.Task{}
			a := &attempt{Tasks: &Tasks{Config{Base: docker.Config{Network: tt.run}}}, task: task, current: tt.current, image: docker.Image{Entrypoint: []string{"serve"}}}
			if err := a.endPhase(t.Context(), a.as(e, "app"), harbor.Phase{NetworkMode: tt.mode}, tt.mayStay); err != nil || !slices.Equal(e.list, tt.want) {
				t.Errorf("%v, %q, want %q", err, e.list, tt.want)
			}
		})
	}
}

// A task whose network changes tries it first.
func TestTryNetworks(t *testing.T) {
	for name, tt := range map[string]struct {
		agent, current string
		want           []string
	}{
		"the agent has none": {"no-network", "none", []string{"network bridge", "network none", "network none"}},
		"the agent has one":  {"public", "bridge", nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := &calls{}
			task := &harbor.Task{Steps: []harbor.Step{{StepConfig: harbor.StepConfig{Agent: harbor.Phase{NetworkMode: tt.agent}}}}}
			a := &attempt{Tasks: &Tasks{Config{Base: docker.Config{Network: "bridge"}}}, task: task, current: tt.current}
			if err := a.tryNetworks(t.Context(), e); err != nil || !slices.Equal(e.list, tt.want) {
				t.Errorf("%v, %q, want %q", err, e.list, tt.want)
			}
		})
	}
}
