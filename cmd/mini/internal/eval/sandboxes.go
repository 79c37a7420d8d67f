package eval

import (
	"context"
	"time"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/runner/evaluate"
)

// The profiles describe containerConfig in verdicts, without and with a cluster. Verdicts with different
// profiles are not comparable.
const (
	containerProfile = "root, SYS_ADMIN, no bound on memory"
	clusterProfile   = "root, pod"
)

// pidsLimit is more than any test suite needs, and few enough for any machine. The
// official containers have no limit.
const pidsLimit = 32768

// containerConfig returns the configuration of all evaluation containers. It follows
// the official harness. Of the agent's settings, only the platform applies, because it
// selects the images.
//
// As in the official harness, containers have SYS_ADMIN, which some browsers need. With
// it, a patch could forge the helper's reports. Verdicts therefore depend only on the
// log, and their flags mark suspicious logs.
//
// In a cluster, containers have the default capabilities only: few namespaces permit
// SYS_ADMIN. They also have the memory limit of the agent's sandboxes, which reserves
// that memory.
func containerConfig(cfg *configs.Resolved, run, network string) docker.Config {
	c := docker.Config{
		Platform:      cfg.Environment.Platform,
		User:          "root",
		Interpreter:   []string{"/bin/bash", "-c"},
		Network:       network,
		MemoryBytes:   -1,
		PIDs:          pidsLimit,
		CapDrop:       []string{}, // not nil: keep the engine's default capabilities
		CapAdd:        []string{"SYS_ADMIN"},
		NewPrivileges: true,
		AllowUnsafe:   true,
		Run:           envopen.RunLabel(run),
	}
	if configs.UsesCluster(cfg.Environment.Class) {
		c.CapAdd = []string{}
		c.MemoryBytes, _ = configs.ParseSize(cfg.Environment.Memory) // validated when the configuration was resolved
	}
	return c
}

// Sandboxes starts evaluation containers. It shares the engine and the images
// with the agent's sandboxes.
type Sandboxes struct {
	*envopen.Sandboxes
	base    docker.Config // of all containers; without instance and image
	timeout time.Duration // of the tests
}

// Start implements evaluate.Sandboxes.
func (s Sandboxes) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	c := s.base
	c.Instance, c.Image = in.ID, in.ImageName()
	return s.StartContainer(ctx, c, s.timeout)
}

// Identify implements evaluate.Identifying.
func (s Sandboxes) Identify(ctx context.Context, in datasets.Instance) (evaluate.Image, error) {
	if s.Images == nil {
		return evaluate.Image{}, nil // known when the container runs
	}
	img, present, err := s.Images.Lookup(ctx, imageRequest(s.base, in))
	if err != nil || !present {
		return evaluate.Image{}, err
	}
	return evaluate.Image{ID: img.ID, Digest: img.Digest, Arch: img.Arch}, nil
}

// Prefetch starts to pull the images of the pending instances; stop ends that.
func (s Sandboxes) Prefetch(ctx context.Context, pending []datasets.Instance) (stop func()) {
	if s.Images == nil {
		return func() {}
	}
	return s.Images.Prefetch(ctx, s.imageRequests(pending))
}

func (s Sandboxes) imageRequests(rows []datasets.Instance) []imagestore.Request {
	requests := make([]imagestore.Request, len(rows))
	for i, in := range rows {
		requests[i] = imageRequest(s.base, in)
	}
	return requests
}

// imageRequest returns the request for the instance's own image. environment.image does
// not apply to evaluations.
func imageRequest(c docker.Config, in datasets.Instance) imagestore.Request {
	return imagestore.Request{Ref: in.ImageName(), Platform: c.Platform, Requester: in.ID}
}

// NewSandboxes returns the evaluation sandboxes of a run. They use the engine of s.
func NewSandboxes(ctx context.Context, s *envopen.Sandboxes, cfg *configs.Resolved, run string) (Sandboxes, error) {
	sandboxes := Sandboxes{s, containerConfig(cfg, run, cfg.Eval.Network), configs.Duration(cfg.Eval.Timeout)}
	return sandboxes, s.CheckContainer(ctx, envopen.WithPlaceholderImage(sandboxes.base))
}
