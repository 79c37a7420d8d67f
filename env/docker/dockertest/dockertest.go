// Package dockertest gives tests a real container engine, and skips tests without
// one.
//
// With MINI_REQUIRE_DOCKER=1 in the environment, a missing engine or image fails the
// test instead, so that a run meant to cover containers cannot pass without them.
package dockertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/helper/binaries"
)

// BaseImage is the image that Image returns; scripts/base-image.sh builds it.
const BaseImage = "mini-base:latest"

// Engine connects to the engine for the length of the test, with a helper built from
// the current source.
func Engine(t testing.TB) *docker.Engine {
	t.Helper()
	return EngineWith(t, docker.EngineConfig{})
}

// EngineWith is Engine with a configuration. It sets HelperDir if that is empty.
func EngineWith(t testing.TB, cfg docker.EngineConfig) *docker.Engine {
	t.Helper()
	Client(t) // skips before anything is built
	if cfg.HelperDir == "" {
		cfg.HelperDir = HelperDir(t)
	}
	e, err := docker.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Client returns a plain Docker client. It may be called in cleanup functions.
func Client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if _, err := c.Ping(ctx); err != nil {
		missing(t, "no container engine answers: %v", err)
	}
	return c
}

// Image returns the name of a local image with bash, git and python3.
func Image(t testing.TB) string {
	t.Helper()
	if _, err := Client(t).ImageInspect(t.Context(), BaseImage); err != nil {
		missing(t, "image %s is missing, scripts/base-image.sh makes it: %v", BaseImage, err)
	}
	return BaseImage
}

func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("MINI_REQUIRE_DOCKER") == "1" {
		t.Fatalf(format+" (MINI_REQUIRE_DOCKER=1)", args...)
	}
	t.Skipf(format, args...)
}

// HelperDir returns a directory with the helper for this processor.
func HelperDir(t testing.TB) string {
	t.Helper()
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, binaries.Name(runtime.GOARCH)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// HelperVariable is the environment variable with the path of a helper binary. `make
// test` builds the helper once and sets it.
const HelperVariable = "MINI_TEST_HELPER"

// build reads the helper that HelperVariable names, or else compiles it like
// scripts/helper.sh, once per test process.
var build = sync.OnceValues(func() (_ []byte, err error) {
	if file := os.Getenv(HelperVariable); file != "" {
		return os.ReadFile(file) //nolint:gosec // named by the developer
	}
	dir, err := os.MkdirTemp("", "mini-helper-")
	if err != nil {
		return nil, fmt.Errorf("build helper: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the temporary directory
	file := filepath.Join(dir, "helper")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", //nolint:gosec // no outside input
		"-ldflags", "-s -w -buildid=", "-o", file, "github.com/minibench/mini/cmd/mini-helper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOAMD64=v1", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build helper: %w: %s", err, out)
	}
	return os.ReadFile(file) //nolint:gosec // created above
})
