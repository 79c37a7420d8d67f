package docker_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// A running container enters and leaves networks, however often.
func TestChangeNetwork(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	for _, first := range []string{"none", "bridge"} {
		t.Run("from "+first, func(t *testing.T) {
			sandbox := start(t, e, docker.Config{Image: image, Network: first})
			for _, network := range []string{"bridge", "none", "none", "default", "bridge", "none"} {
				if err := sandbox.ChangeNetwork(t.Context(), network); err != nil {
					t.Fatalf("%s: %v", network, err)
				}
				hasInterface := output(t, sandbox, "ls /sys/class/net") != "lo\n"
				hasRoute := strings.Count(output(t, sandbox, "cat /proc/net/route"), "\n") > 1
				if want := network != "none"; hasInterface != want || hasRoute != want {
					t.Errorf("%s: has an interface: %v, has a route: %v", network, hasInterface, hasRoute)
				}
			}
		})
	}
	sandbox := start(t, e, docker.Config{Image: image})
	for _, network := range []string{"host", "container:" + sandbox.Name(), "no-such-network"} {
		if err := sandbox.ChangeNetwork(t.Context(), network); err == nil {
			t.Errorf("%s: no error", network)
		}
		if got := output(t, sandbox, "ls /sys/class/net"); got != "lo\n" {
			t.Errorf("%s: %s", network, got)
		}
	}
}

// KillProgram needs nothing of the image.
func TestKillProgramWithoutShell(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	sandbox := start(t, e, docker.Config{Image: image})
	output(t, sandbox, "sleep 300 & setsid nohup sleep 300 > /dev/null 2>&1 & mkdir /moved && /bin/mv /usr/bin/* /moved/")
	res, err := sandbox.Execute(t.Context(), env.Command{Interpreter: []string{env.KillProgram}})
	if err != nil || res.Failure != "" || res.Killed != 2 || res.Survivors != 0 {
		t.Errorf("%v, %+v", err, res)
	}
}
