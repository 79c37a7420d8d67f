package cli_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/model/fake"
)

// noRaceSleep prevents a program built with the race detector from sleeping for a
// second at its end. The tests start mini many times.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	name, value, _ := strings.Cut(noRaceSleep, "=")
	if err := os.Setenv(name, value); err != nil {
		panic(err)
	}
	// More tests than there are processors, because most wait for a container or a terminal.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	if os.Getenv(framesVariable) != "" {
		recordFrames()
	}
	mini := func() { os.Exit(cli.Main(cli.Arguments(os.Args), cmdutil.SystemStreams())) }
	testscript.Main(m, map[string]func(){
		"mini":           mini,
		"mini-e":         mini,
		"mini-extra":     mini,
		"mini-swe-agent": mini,
		"mini-test-mcp":  bookServer,
		"fake-model":     func() { os.Exit(fake.Main(os.Args[1:], os.Stdout, os.Stderr)) },

		"mini-golden-runs": goldenReader,
	})
}

// TestScripts runs the command line as users do. The scripts also document the
// commands; each begins with its subject.
func TestScripts(t *testing.T) {
	scripts(t, "testdata", nil)
}

// TestDockerScripts runs the main script that needs a container engine.
func TestDockerScripts(t *testing.T) {
	dockertest.Image(t)
	scripts(t, "testdata/docker", map[string]string{"HELPER": dockertest.HelperDir(t)})
}

// scripts runs the scripts of a folder, in parallel with all other parallel tests.
func scripts(t *testing.T, dir string, vars map[string]string) {
	t.Helper()
	t.Parallel()
	server := newOpenAI(t)
	untrusted := newUntrusted(t)
	local := localServers(t)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       updating(),
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"nokey": noKey},
		Setup: func(e *testscript.Env) error {
			home := e.WorkDir + "/home"
			e.Vars = append(e.Vars, noRaceSleep)
			e.Setenv("HOME", home)
			e.Setenv("XDG_CONFIG_HOME", home+"/.config")
			e.Setenv("XDG_STATE_HOME", home+"/.state")
			e.Setenv("SERVER", server.URL+"/v1")
			e.Setenv("SERVER_ROOT", server.URL)
			e.Setenv("SERVER_TLS", "https"+strings.TrimPrefix(server.URL, "http"))
			e.Setenv("SERVER_UNKNOWN", untrusted.URL)
			e.Setenv("SERVER_KEY", serverKey)
			e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
			for name, value := range local {
				e.Setenv(name, value)
			}
			for name, value := range vars {
				e.Setenv(name, value)
			}
			return os.MkdirAll(home, 0o755)
		},
	})
}
