package agent_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env"
)

var update = flag.Bool("update", false, "write golden files anew")

// What a model is told by the shipped prompts, in every protocol, to the byte:
// those of text are what results are compared by, and must not change.
func TestShippedPrompts(t *testing.T) {
	for _, name := range []string{"mini", "swebench"} {
		for _, speaks := range protocol.Names {
			t.Run(name+"-"+speaks, func(t *testing.T) {
				got := prompts(t, name, speaks)
				file := filepath.Join("testdata", "prompts", name+"-"+speaks+".golden")
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("the prompts changed (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func prompts(t *testing.T, name, speaks string) string {
	t.Helper()
	layer, err := configs.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Merge(layer)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Agent.Protocol, cfg.Agent.Timeout = speaks, time.Minute
	a, err := agent.New(cfg.Agent)
	if err != nil {
		t.Fatal(err)
	}
	info := env.Info{System: "Linux", Release: "6.1", Machine: "x86_64", Dir: "/testbed"}
	system, task, err := a.Prompts(agent.Task{Text: "It is broken."}, info)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := a.FormatError("your reply is wrong", 0, "stop", false)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := a.FormatError("your reply was cut", 0, "length", true)
	if err != nil {
		t.Fatal(err)
	}
	observed, err := a.Observations()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append([]string{system, task, wrong, cut}, observed...), "\n=====\n")
}
