package agent_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
)

// The shipped prompts, in every protocol, byte for byte. Those of the text
// protocol must not change, so that results stay comparable.
func TestShippedPrompts(t *testing.T) {
	for _, name := range []string{"mini", "swebench"} {
		for _, protocolName := range protocol.Names {
			t.Run(name+"-"+protocolName, func(t *testing.T) {
				checkGolden(t, name+"-"+protocolName, prompts(t, name, protocolName, agent.Capabilities{}))
			})
		}
	}
}

// The shipped prompts with capabilities: they describe the capabilities and are
// otherwise the same as without.
func TestShippedPromptsWithCapabilities(t *testing.T) {
	tools := []agent.Capability{
		{Name: "edit", Usage: "edit FILE OLD NEW", Description: "replaces a text that occurs once"},
		{Name: "note", Usage: "note add [--category C] TEXT\nnotes [--category C]", Description: "keeps what is to be known later,\nand tells it again"},
	}
	skills := []agent.Capability{{Name: "bisect", Usage: "skill bisect", Description: "find the commit that broke something"}}
	for name, caps := range map[string]agent.Capabilities{
		"tools": {Tools: tools}, "skills": {Skills: skills}, "all": {Tools: tools, Skills: skills},
	} {
		t.Run(name, func(t *testing.T) {
			got, off := prompts(t, "mini", "text", caps), prompts(t, "mini", "text", agent.Capabilities{})
			begun, rest, _ := strings.Cut(off, "\n\n=====")
			text, ok := strings.CutSuffix(strings.TrimPrefix(got, begun), rest)
			if !ok {
				t.Fatalf("more than the end of the system prompt is another:\n%s", got)
			}
			checkGolden(t, "abilities-"+name, strings.TrimSuffix(text, "\n\n====="))
			assert.Contains(t, prompts(t, "swebench", "tools", caps), text, "swebench says it otherwise")
		})
	}
}

// UnmentionedCapabilities finds capabilities that the user's prompts do not
// mention.
func TestUnmentionedCapabilities(t *testing.T) {
	all := agent.Capabilities{Tools: []agent.Capability{{Name: "read"}}, Skills: []agent.Capability{{Name: "pdf"}}}
	for _, tt := range []struct {
		system, instance string
		caps             agent.Capabilities
		want             string
	}{
		{"You are a clerk.", "{{.task}}", all, "tools skills"},
		{"You are a clerk.", "{{.task}}", agent.Capabilities{}, ""},
		{"{{range .tools}}{{.usage}}{{end}}", "{{.task}}", all, "skills"},
		{"Say mini-tool read FILE.", "{{.task}}{{range .skills}}{{.name}}{{end}}", all, ""},
		{"", "mini-tool skill pdf", agent.Capabilities{Skills: all.Skills}, ""},
		{"You are a mini-toolsmith.", "{{.task}}", agent.Capabilities{Tools: all.Tools}, "tools"},
	} {
		a, err := agent.New(agent.Config{SystemTemplate: tt.system, InstanceTemplate: tt.instance})
		require.NoError(t, err)
		assert.Equal(t, tt.want, strings.Join(a.UnmentionedCapabilities(tt.caps), " "), "%q, %q", tt.system, tt.instance)
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", "prompts", name+".golden"), got)
}

// prompts returns the rendered prompts of a built-in configuration.
func prompts(t *testing.T, name, protocolName string, caps agent.Capabilities) string {
	t.Helper()
	layer, err := configs.ReadBuiltin(name)
	require.NoError(t, err)
	cfg, err := configs.Merge(layer)
	require.NoError(t, err)
	cfg.Agent.Protocol, cfg.Agent.Timeout = protocolName, time.Minute
	a, err := agent.New(cfg.Agent)
	require.NoError(t, err)
	info := env.Info{System: "Linux", Release: "6.1", Machine: "x86_64", Dir: "/testbed"}
	system, task, err := a.RenderPrompts(agent.Task{Text: "It is broken."}, info, caps)
	require.NoError(t, err)
	formatError, err := a.FormatError("your reply is wrong", 0, "stop", false)
	require.NoError(t, err)
	truncated, err := a.FormatError("your reply was cut", 0, "length", true)
	require.NoError(t, err)
	observed, err := a.Observations()
	require.NoError(t, err)
	return strings.Join(append([]string{system, task, formatError, truncated}, observed...), "\n=====\n")
}
