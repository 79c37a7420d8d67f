package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"

	"github.com/minibench/mini/env"
)

// Build describes an image to build.
type Build struct {
	Tag string
	// Context is a tar stream with the Dockerfile and the files that it copies.
	Context io.Reader
	Labels  map[string]string
	// MemoryBytes limits the memory of each command of the Dockerfile; 0 means no limit.
	MemoryBytes int64
	Network     string    // of each command: "none", or "" for the engine's default
	Log         io.Writer // gets the output of the build
}

// EnsureBuilt runs work, which builds an image if the engine lacks it, once for all concurrent
// callers with this tag.
func (e *Engine) EnsureBuilt(ctx context.Context, tag string, work func(context.Context) error) error {
	return e.builds.Do(ctx, tag, work)
}

// Build builds an image with the engine's classic builder. When ctx ends, the engine stops
// the build and removes its containers. A failure is an *env.Error with the status
// env.ImageBuildFailed.
func (e *Engine) Build(ctx context.Context, b Build) error {
	op := "build image " + b.Tag
	failed := func(err error) error {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &env.Error{Status: env.ImageBuildFailed, Op: op, Err: err}
	}
	resp, err := e.api.ImageBuild(ctx, b.Context, build.ImageBuildOptions{
		Tags: []string{b.Tag}, Labels: b.Labels, Memory: b.MemoryBytes, MemorySwap: b.MemoryBytes,
		NetworkMode: b.Network, Remove: true, ForceRemove: true, Version: build.BuilderV1,
	})
	if err != nil {
		return failed(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	for messages := json.NewDecoder(resp.Body); ; {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		err := messages.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && m.Error != "":
			err = errors.New(m.Error)
		case err == nil:
			_, err = io.WriteString(b.Log, m.Stream)
		}
		if err != nil {
			return failed(err)
		}
	}
}

// Image is what Inspect returns.
type Image struct {
	ID     string
	User   string // the user of commands, "" for root
	Labels map[string]string
	// Entrypoint is the program that the image starts; nil if it has none.
	Entrypoint []string
}

// Inspect returns an image of the engine by its name or id; nil if the engine lacks it.
func (e *Engine) Inspect(ctx context.Context, name string) (*Image, error) {
	found, err := e.api.ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, engineError(ctx, env.StartFailed, fmt.Sprintf("find image %.200s", name), err)
	}
	i := &Image{ID: found.ID}
	if found.Config != nil {
		i.User, i.Labels, i.Entrypoint = found.Config.User, found.Config.Labels, found.Config.Entrypoint
	}
	return i, nil
}
