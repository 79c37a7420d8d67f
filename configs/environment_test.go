package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestParseMount(t *testing.T) {
	for text, want := range map[string]configs.Mount{
		"/a:/b":           {Source: "/a", Target: "/b"},
		"/a:/b:ro":        {Source: "/a", Target: "/b"},
		"/a:/b:rw":        {Source: "/a", Target: "/b", ReadWrite: true},
		"/a b:/ü":         {Source: "/a b", Target: "/ü"},
		"a:b":             {Source: "a", Target: "b"}, // ParseMount does not check paths
		"":                {},
		"/a":              {},
		":/b":             {},
		"/a:":             {},
		"/a:/b:":          {},
		"/a:/b:rw,z":      {},
		"/a:/b:rw:more":   {},
		"/a:/b\n:rw:\x00": {},
	} {
		got, err := configs.ParseMount(text)
		assert.Equal(t, want != configs.Mount{}, err == nil, "%q: %v", text, err)
		if err == nil && got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

func TestParseUlimit(t *testing.T) {
	for text, want := range map[string]*configs.Ulimit{
		"1024":                 {Name: "n", Soft: 1024, Hard: 1024},
		"1024:4096":            {Name: "n", Soft: 1024, Hard: 4096},
		"0":                    {Name: "n"},
		"-1":                   {Name: "n", Soft: -1, Hard: -1},
		"5:unlimited":          {Name: "n", Soft: 5, Hard: -1},
		"unlimited":            {Name: "n", Soft: -1, Hard: -1},
		"":                     nil,
		"many":                 nil,
		"-2":                   nil,
		"1:2:3":                nil,
		"1.5":                  nil,
		"1:":                   nil,
		":1":                   nil,
		"99999999999999999999": nil,
	} {
		got, err := configs.ParseUlimit("n", text)
		if (err == nil) != (want != nil) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if want != nil && got != *want {
			t.Errorf("%q is %+v, want %+v", text, got, *want)
		}
	}
}

// FuzzParseMount checks that a parsed mount consists of parts of the text.
func FuzzParseMount(f *testing.F) {
	for _, s := range []string{"/a:/b", "/a:/b:rw", "/a:/b:ro", "::", "a:b:rw:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := configs.ParseMount(s)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		again := m.Source + ":" + m.Target
		if m.Source == "" || m.Target == "" || strings.Contains(m.Target, ":") || !strings.HasPrefix(s, again) {
			t.Errorf("%q is %+v", s, m)
		}
		back, err := configs.ParseMount(again + map[bool]string{true: ":rw"}[m.ReadWrite])
		if diff := cmp.Diff(m, back); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", s, err, diff)
		}
	})
}

// Free YAML is merged key by key, and a section for another class is no error.
func TestKubernetesSettings(t *testing.T) {
	first, err := configs.ReadFile(file(t, "first.yaml", `environment:
  kubernetes:
    security: restricted
    helper: image
    labels: {team: a}
    tolerations: [{key: spot, operator: Exists}]
    pod_patch: {spec: {hostAliases: [{ip: 10.0.0.1}], priority: 1}}
`))
	require.NoError(t, err)
	second, err := configs.ReadArg(`environment.kubernetes.pod_patch={spec: {priority: 2}}`)
	require.NoError(t, err)
	third, err := configs.ReadArg("environment.kubernetes.labels.cost=b")
	require.NoError(t, err)
	cfg, err := configs.Merge(builtin(t, "swebench"), first, second, third)
	require.NoError(t, err)
	k := cfg.Environment.Kubernetes
	got := []any{cfg.Environment.Class, k.NetworkRequired, k.ScheduleTimeout, k.Labels, k.Tolerations, k.PodPatch}
	want := []any{
		"docker", true, 1800.0,
		map[string]string{"team": "a", "cost": "b"},
		[]map[string]any{{"key": "spot", "operator": "Exists"}},
		map[string]any{"spec": map[string]any{"hostAliases": []any{map[string]any{"ip": "10.0.0.1"}}, "priority": 2}},
	}
	assert.Equal(t, want, got, "settings")
}

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
			require.NoError(t, os.WriteFile(file, []byte(tt.config), 0o600))
			layer, err := configs.ReadFile(file)
			require.NoError(t, err)
			base, err := configs.ReadBuiltin("swebench")
			require.NoError(t, err)
			cfg, err := configs.Merge(base, layer)
			if cfg == nil {
				t.Fatal(err)
			}
			o := cfg.Outside()
			assert.NoDiff(t, cmp.Diff(tt.list, o.List()))
			assert.NoDiff(t, cmp.Diff(tt.line, o.Line()))
			if strings.Contains(strings.Join(o.List(), " "), "secret") {
				t.Error("a key is shown")
			}
		})
	}
}
