package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
)

// Outside names every program, address and mount of a configuration, and no key.
func TestOutside(t *testing.T) {
	for _, tt := range []struct {
		name, config string
		list         []string
		line         string
	}{
		{"defaults", "agent: {step_limit: 3}", nil, ""},
		{
			"the user's model", "model: {base_url: 'https://u:secret@models.example/v1?key=secret'}",
			[]string{"addresses: https://models.example/v1 (model.base_url)"},
			"",
		},
		{
			"tools", `
tools:
  search: [find-it, --fast]
  host: [{name: calc, command: [./calc]}]
  mcp: [{name: books, command: [npx, -y, books]}, {name: far, url: "https://far.example/mcp?token=secret"}]
policy: {decider: {command: [judge]}}
environment: {mounts: ["/data:/data", "/home:/h:rw"]}`,
			[]string{
				"programs: find-it --fast (tools.search), ./calc (tools.host calc), npx -y books (tools.mcp books), judge (policy.decider)",
				"addresses: https://far.example/mcp (tools.mcp far)",
				"mounts: /data:/data (environment.mounts), /home:/h:rw (environment.mounts)",
			},
			"starts find-it --fast (tools.search), ./calc (tools.host calc), npx -y books (tools.mcp books), judge (policy.decider); " +
				"connects to https://far.example/mcp (tools.mcp far); mounts /data:/data (environment.mounts), /home:/h:rw (environment.mounts)",
		},
		{
			"models of a route and of summaries", `
model:
  base_url: http://one.example
  route: {kind: random, models: [{model_name: a}, {model_name: b, base_url: "http://two.example"}]}
  summary: {base_url: "http://three.example"}`,
			[]string{"addresses: http://one.example (model.base_url), http://two.example (model.route), http://three.example (model.summary)"},
			"connects to http://two.example (model.route), http://three.example (model.summary)",
		},
		{
			"no sandbox", `
agent: {agent_class: ./agent.yaml}
environment: {environment_class: local, interpreter: [/tmp/sh, -c], helper_dir: /tmp/helper}
run: {env_startup_command: make deps}`,
			[]string{"programs: /tmp/helper (environment.helper_dir), make deps (run.env_startup_command), " +
				"./agent.yaml (agent.agent_class), /tmp/sh -c (environment.interpreter)"},
			"starts /tmp/helper (environment.helper_dir), make deps (run.env_startup_command), " +
				"./agent.yaml (agent.agent_class), /tmp/sh -c (environment.interpreter)",
		},
		{
			"in a sandbox", "agent: {agent_class: codex}\nenvironment: {interpreter: [sh, -c]}\nrun: {env_startup_command: make deps}", nil, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(file, []byte(tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			layer, err := configs.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			base, err := configs.ReadBuiltin("swebench")
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := configs.Merge(base, layer)
			if cfg == nil {
				t.Fatal(err)
			}
			o := cfg.Outside()
			if diff := cmp.Diff(tt.list, o.List()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.line, o.Line()); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(strings.Join(o.List(), " "), "secret") {
				t.Error("a key is shown")
			}
		})
	}
}
