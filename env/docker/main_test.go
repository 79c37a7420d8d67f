package docker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
)

// childVar makes the test binary run a sandbox until it is killed. Its value is a
// childConfig as JSON.
const childVar = "MINI_DOCKER_TEST_CHILD"

type childConfig struct {
	Host      string // of the engine; empty means the machine's
	HelperDir string
	Config    docker.Config
}

func TestMain(m *testing.M) {
	if s := os.Getenv(childVar); s != "" {
		if err := child(context.Background(), s); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child starts a sandbox, prints its name and runs a command, until it is killed or its
// stdin ends. It then exits without closing the sandbox.
func child(ctx context.Context, config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	e, err := docker.Open(ctx, docker.EngineConfig{Host: c.Host, HelperDir: c.HelperDir})
	if err != nil {
		return err
	}
	sandbox, err := e.Start(ctx, c.Config)
	if err != nil {
		return err
	}
	fmt.Println(sandbox.Name())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, err = sandbox.Execute(ctx, env.Command{Script: "sleep 1000", Timeout: time.Hour})
	return err
}
