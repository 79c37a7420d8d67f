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

// trap is a model, and a sandbox, that panics.
type trap struct {
	room
	info bool // Info panics, which is outside of what the agent guards
}

func (p *trap) Info() env.Info {
	if p.info {
		panic("a defect in Info")
	}
	return p.room.Info()
}

func (p *trap) For(datasets.Instance) (model.Model, error) { return p, nil }

func (p *trap) Query(context.Context, []model.Message) (model.Reply, error) {
	panic("a defect in Query")
}

// A panic ends its attempt and no other, and the sandbox goes with it.
func TestPanicLeavesNoSandbox(t *testing.T) {
	for name, info := range map[string]bool{"of a model": false, "of a sandbox": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var opened, closed atomic.Int32
			b := batch(t, dir, func(context.Context, datasets.Instance) (env.Environment, error) {
				opened.Add(1)
				return &trap{room: room{closed: func() { closed.Add(1) }}, info: info}, nil
			})
			b.Models = &trap{}
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
