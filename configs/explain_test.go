package configs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func merged(t *testing.T, base string, args ...string) *configs.Resolved {
	t.Helper()
	layers := []configs.Layer{builtin(t, base)}
	for _, arg := range args {
		l, err := configs.ReadArg(arg)
		require.NoError(t, err)
		layers = append(layers, l)
	}
	cfg, err := configs.Merge(layers...)
	require.NoError(t, err)
	return cfg
}

func TestAnnotatedYAMLOrigins(t *testing.T) {
	mine := file(t, "mine.yaml", "agent:\n  step_limit: 7\n  system_template: |\n    one\n    # two\nenvironment:\n  env: {A: one}\n  forward_env: [X,\n    B]\n")
	cfg := merged(t, "swebench", mine, "model.model_name=a b", "environment.env.MY_TOKEN=s3cret", "model.model_kwargs.extra={\"a\": {\"b\": 1}, \"c\": []}")
	data, err := cfg.AnnotatedYAML()
	require.NoError(t, err)
	text := string(data)
	for _, want := range []string{
		"  step_limit: 7 # " + mine + ":2\n",
		"  system_template: | # " + mine + ":3\n    one\n    # two\n",
		"  cost_limit: 3 # default\n",
		"    A: one # " + mine + ":7\n",
		"    PAGER: cat # default\n",
		"  forward_env: [X, B] # " + mine + ":8\n",
		"    MY_TOKEN: null # not shown; -c environment.env.MY_TOKEN\n",
		"  model_name: a b # -c model.model_name=a b\n",
		"        b: 1 # -c model.model_kwargs.extra\n",
		"      c: [] # -c model.model_kwargs.extra\n",
		"  base_url: \"\" # default\n",
		"  cap_drop: [ALL] # default\n",
	} {
		assert.Contains(t, text, want)
	}
	if strings.Contains(text, "s3cret") || strings.Contains(text, "shipped:") {
		t.Error("the text contains a secret, or the name of a built-in file")
	}
	if t.Failed() {
		t.Log(text)
	}
	for _, key := range configs.Keys() {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if !strings.Contains(text, " "+last+":") && !strings.Contains(text, ` "`+last+`":`) {
			t.Errorf("%s is missing", key)
		}
	}
	// The text reads back as the same configuration, except for the redacted secret.
	again := merged(t, "swebench", file(t, "again.yaml", text))
	delete(cfg.Environment.Env, "MY_TOKEN")
	assert.NoDiff(t, cmp.Diff(withoutDefaults(cfg), withoutDefaults(again)), "read back (-first +second)")
}

func TestAnnotatedDefaultsReadBack(t *testing.T) {
	for _, base := range []string{"mini", "swebench"} {
		cfg := merged(t, base)
		data, err := cfg.AnnotatedYAML()
		require.NoError(t, err)
		again := merged(t, base, file(t, "again.yaml", string(data)))
		for _, key := range defaulted {
			entries, err := again.Entries(key)
			if err != nil || entries[0].Value == "" {
				t.Errorf("%s: %s is shown as %v: %v", base, key, entries, err)
			}
		}
		assert.NoDiff(t, cmp.Diff(withoutDefaults(cfg), withoutDefaults(again)), "%s read back (-first +second)", base)
	}
}

// defaulted are settings that may be empty; explanations show the default that then
// applies.
var defaulted = []string{"agent.protocol", "agent.mode", "agent.observation.keep", "model.images"}

func TestEntriesUnderAPrefix(t *testing.T) {
	cfg := merged(t, "swebench", "agent.step_limit=9", "environment.env.A_KEY=s3cret")
	for _, tt := range []struct {
		prefix string
		want   []configs.Entry
	}{
		{"agent.step_limit", []configs.Entry{{"agent.step_limit", 9, "-c agent.step_limit=9"}}},
		{"environment.env.PAGER", []configs.Entry{{"environment.env.PAGER", "cat", "default"}}},
		{"environment.env.A_KEY", []configs.Entry{{"environment.env.A_KEY", "(not shown)", "-c environment.env.A_KEY"}}},
		{"model.model_kwargs", []configs.Entry{{"model.model_kwargs", map[string]any{}, "default"}}},
		{"eval", []configs.Entry{
			{"eval.workers", 0, "default"},
			{"eval.timeout", 1800, "default"},
			{"eval.network", "bridge", "default"},
			{"eval.rerun_failed", 0, "default"},
			{"eval.cache", "", "default"},
		}},
	} {
		got, err := cfg.Entries(tt.prefix)
		require.NoError(t, err)
		assert.Equal(t, tt.want, got, "%s", tt.prefix)
	}
	for prefix, want := range map[string]string{
		"agent.stp_limit":      "unknown key agent.stp_limit; did you mean agent.step_limit?",
		"step_limit":           "unknown key step_limit; step_limit belongs under agent",
		"agent.steps":          "did you mean agent.step_limit?",
		"agnt":                 "did you mean agent?",
		"model.price.in":       "did you mean model.price.input?",
		"run.workers.x":        "unknown key run.workers.x",
		"environment.env.NOPE": "environment.env.NOPE is not set",
	} {
		_, err := cfg.Entries(prefix)
		assert.ErrorContains(t, err, want, "%s", prefix)
	}
}

// The name of a file may contain a line end, but a comment must not.
func TestCommentsStayOnTheirLine(t *testing.T) {
	path := file(t, "odd\nagent: {step_limit: 1}\n.yaml", "agent: {cost_limit: 1}\n")
	data, err := merged(t, "mini", path).AnnotatedYAML("agent.cost_limit")
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(data), "\n"), "lines in\n%s", data)
}

// withoutDefaults returns a configuration without the settings in defaulted.
func withoutDefaults(r *configs.Resolved) configs.Config {
	c := r.Config
	c.Agent.Protocol, c.Agent.Mode, c.Agent.Observation.Keep, c.Model.Images = "", "", "", ""
	return c
}

// TestSettingsInDocuments checks that the YAML examples in the documentation are valid
// configurations.
func TestSettingsInDocuments(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for page, minBlocks := range map[string]int{"docs/tools.md": 8, "docs/compaction.md": 2, "docs/models.md": 1, "docs/sandbox.md": 1, "README.md": 1} {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
		require.NoError(t, err)
		all := block.FindAllStringSubmatch(string(text), -1)
		if len(all) < minBlocks {
			t.Errorf("%s: %d, want %d", page, len(all), minBlocks)
		}
		for i, m := range all {
			l, err := configs.ReadFile(file(t, fmt.Sprintf("%d.yaml", i), m[1]))
			if err == nil {
				_, err = configs.Merge(builtin(t, "mini"), l)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, m[1])
			}
		}
	}
}
