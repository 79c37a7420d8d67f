package runner_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// panicking is a model and a sandbox that panic.
type panicking struct {
	fakeSandbox
	info bool // Info panics, outside the agent's recover
}

func (p *panicking) Info() env.Info {
	if p.info {
		panic("a defect in Info")
	}
	return p.fakeSandbox.Info()
}

func (p *panicking) For(datasets.Instance) (model.Model, error) { return p, nil }

func (p *panicking) Query(context.Context, []model.Message) (model.Reply, error) {
	panic("a defect in Query")
}

// A panic ends only its attempt, and its sandbox is closed.
func TestPanicClosesSandbox(t *testing.T) {
	for name, info := range map[string]bool{"of a model": false, "of a sandbox": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var opened, closed atomic.Int32
			b := batch(t, dir, func(context.Context, datasets.Instance) (env.Environment, error) {
				opened.Add(1)
				return &panicking{fakeSandbox: fakeSandbox{closed: func() { closed.Add(1) }}, info: info}, nil
			})
			b.Models = &panicking{}
			sum, err := b.Run(t.Context(), rows("a", "b"))
			if err != nil || sum.Classes[trajectories.Internal] != 2 {
				t.Errorf("%+v, %v; want two internal errors", sum, err)
			}
			if opened.Load() == 0 || opened.Load() != closed.Load() {
				t.Errorf("%d sandboxes opened, %d closed", opened.Load(), closed.Load())
			}
		})
	}
}
