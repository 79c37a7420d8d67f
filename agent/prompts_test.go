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

var update = flag.Bool("update", false, "update golden files")

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
			if batch := prompts(t, "swebench", "tools", caps); !strings.Contains(batch, text) {
				t.Errorf("swebench says it otherwise:\n%s", batch)
			}
		})
	}
}

// New returns an error for a wrong use of capabilities in a template.
func TestTemplatesAreCheckedWithCapabilities(t *testing.T) {
	for template, want := range map[string]string{
		"{{range .tools}}{{.nome}}{{end}}":             "unknown variable .nome",
		"{{if .skills}}{{(index .skills 0).x}}{{end}}": "unknown variable .x",
		"{{range .tolls}}{{.name}}{{end}}":             "unknown variable .tolls",
		"{{(index .tools 0).name}}":                    "index out of range",
	} {
		_, err := agent.New(agent.Config{SystemTemplate: template})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", template, err, want)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(a.UnmentionedCapabilities(tt.caps), " "); got != tt.want {
			t.Errorf("%q, %q: %q, want %q", tt.system, tt.instance, got, tt.want)
		}
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "prompts", name+".golden")
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
}

// prompts returns the rendered prompts of a built-in configuration.
func prompts(t *testing.T, name, protocolName string, caps agent.Capabilities) string {
	t.Helper()
	layer, err := configs.ReadBuiltin(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Merge(layer)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Agent.Protocol, cfg.Agent.Timeout = protocolName, time.Minute
	a, err := agent.New(cfg.Agent)
	if err != nil {
		t.Fatal(err)
	}
	info := env.Info{System: "Linux", Release: "6.1", Machine: "x86_64", Dir: "/testbed"}
	system, task, err := a.RenderPrompts(agent.Task{Text: "It is broken."}, info, caps)
	if err != nil {
		t.Fatal(err)
	}
	formatError, err := a.FormatError("your reply is wrong", 0, "stop", false)
	if err != nil {
		t.Fatal(err)
	}
	truncated, err := a.FormatError("your reply was cut", 0, "length", true)
	if err != nil {
		t.Fatal(err)
	}
	observed, err := a.Observations()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append([]string{system, task, formatError, truncated}, observed...), "\n=====\n")
}
