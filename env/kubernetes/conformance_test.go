//go:build kubernetes

package kubernetes

import (
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/envtest"
)

func TestConformance(t *testing.T) {
	image := dockertest.Image(t)
	c, _ := newFake(t, func(s *Settings) { s.MaxStarts = 4 }) // many at once take too long here
	envtest.Run(t, func(t *testing.T) env.Environment {
		return startPod(t, c, Config{Image: image})
	}, envtest.WithMemory(func(t *testing.T) env.Environment {
		return startPod(t, c, Config{Image: image, MemoryBytes: 96 << 20, ShmBytes: 16 << 20})
	}))
}
