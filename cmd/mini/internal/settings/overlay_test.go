package settings_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/configs"
)

var update = flag.Bool("update", false, "rewrite testdata/settings.golden")

// shown are the settings that the golden file has: those that a flag or a variable implies.
var shown = []string{
	"model.model_class", "model.model_name", "model.base_url", "model.api_key_env", "model.route.kind", "agent.cost_limit", "agent.step_limit",
}

// TestImpliedSettings compares what names of models, flags and variables imply, with the origin of
// each value, with a golden file.
func TestImpliedSettings(t *testing.T) {
	home := t.TempDir()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "MSWEA_") || strings.HasSuffix(name, "_API_BASE") ||
			strings.HasPrefix(name, "OPENAI_") || strings.HasPrefix(name, "ANTHROPIC_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("XDG_CONFIG_HOME", home)
	if err := os.MkdirAll(filepath.Join(home, "mini"), 0o700); err != nil {
		t.Fatal(err)
	}
	userFile := filepath.Join(home, "mini", "config.yaml")
	var got strings.Builder
	for _, user := range []string{"", "model: {model_name: anthropic/mine, base_url: http://mine.example}\nagent: {step_limit: 7}\n"} {
		if err := os.WriteFile(userFile, []byte(user), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"", "-m gpt-5", "-m claude-opus", "-m openai/gpt-5", "-m openrouter/a/b", "-m openrouter/a/b --model-class openai", "-m ollama/q", "-m azure/x",
			"-m openrouter/a/b -c model.base_url=http://c.example", "-m deepseek/x -c model.api_key_env=FOO", "--model-class anthropic", "--model-class litellm -m deepseek/d",
			"--model-class openrouter -m a/b", "-c model.model_name=gemini/g --profile coder", "-c swebench_xml", "-c model.route.kind=roulette -c model.route.models=[{model_name:a},{model_name:b}] -m x",
			"OPENAI_BASE_URL=http://e.example", "OPENAI_API_BASE=https://api.cerebras.ai/v1 -m cerebras/x", "ANTHROPIC_BASE_URL=http://b.example ANTHROPIC_MODEL=claude-x --model-class anthropic",
			"MSWEA_MODEL_NAME=deepseek/chat", "MSWEA_MODEL_NAME=openai/gpt-5 OPENAI_BASE_URL=http://e.example", "MSWEA_GLOBAL_COST_LIMIT=1.5 MSWEA_GLOBAL_CALL_LIMIT=9",
			"MSWEA_GLOBAL_CALL_LIMIT=x", "-c agent.step_limit=-1 -c agent.nosuch=1", "-c model.max_tries=0",
		} {
			for _, builtins := range [][]string{{"swebench"}, {"mini"}, {"swebench", "demo", settings.Scripted}} {
				fmt.Fprintf(&got, "%s of %v, user %t\n", line, builtins, user != "")
				got.WriteString(strings.ReplaceAll(resolved(t, line, builtins), userFile, "USER"))
			}
		}
	}
	const golden = "testdata/settings.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

// resolved returns the shown settings of a command line that begins with variables, or the error.
func resolved(t *testing.T, line string, builtins []string) string {
	t.Helper()
	args := strings.Fields(line)
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, value, _ := strings.Cut(args[0], "=")
		before := os.Getenv(name)
		t.Setenv(name, value)
		defer t.Setenv(name, before)
		args = args[1:]
	}
	flags := &settings.Flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	cfg, err := flags.Merge(t.Context(), builtins...)
	if err != nil {
		return fmt.Sprintf("    %v\n", err)
	}
	entries, err := cfg.Entries("model", "agent")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, key := range shown {
		for _, e := range entries {
			if e.Key == key && e.Value != "" {
				fmt.Fprintf(&b, "    %s: %v (%s)\n", key, e.Value, e.Origin)
			}
		}
	}
	if err := settings.CheckModelNames(cfg); err != nil {
		fmt.Fprintf(&b, "    %v\n", err)
	}
	return b.String()
}

// A sweep reads the files of its settings once.
func TestCollect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("agent: {step_limit: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := &settings.Flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlags(set)
	if err := set.Parse([]string{"-c", file}); err != nil {
		t.Fatal(err)
	}
	if err := flags.Collect("swebench"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for limit := 1; limit < 3; limit++ {
		one := *flags
		l, err := configs.ParseSetting("--vary", "agent.cost_limit", fmt.Sprint(limit))
		if err != nil {
			t.Fatal(err)
		}
		one.Combination = []configs.Layer{l}
		cfg, err := one.Merge(t.Context(), "swebench")
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Agent.StepLimit != 7 || cfg.Agent.CostLimit != float64(limit) {
			t.Errorf("limits %d and %v", cfg.Agent.StepLimit, cfg.Agent.CostLimit)
		}
	}
}
