package configs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func profile(t *testing.T, name string, dirs ...string) configs.Layer {
	t.Helper()
	l, err := configs.ReadProfile(name, dirs...)
	require.NoError(t, err)
	return l
}

// Every profile sets all tools, skills, notes and subagents explicitly, so that it
// inherits none from the user's settings or from the parent of a subagent.
func TestBuiltinProfilesSetEverything(t *testing.T) {
	for _, name := range []string{"benchmark", "coder", "reviewer"} {
		for _, base := range []string{"mini", "swebench"} {
			t.Run(name+" on "+base, func(t *testing.T) {
				cfg, err := configs.Merge(builtin(t, base), profile(t, name))
				require.NoError(t, err)
				if _, err := agent.New(cfg.Agent); err != nil {
					t.Error(cfg.Locate(err))
				}
				for _, key := range configs.Keys() {
					section, rest, _ := strings.Cut(key, ".")
					bound := slices.Contains([]string{"timeout", "max_output", "paths", "depth", "max", "step_limit", "cost_limit"}, rest)
					if key != "agent.compaction" && key != "agent.tail_template" && !slices.Contains([]string{"tools", "skills", "memory", "agents"}, section) || bound || rest == "profiles" && !cfg.Agents.Enabled {
						continue
					}
					if o, ok := cfg.Origin(key); !ok || o.String() != "--profile "+name {
						t.Errorf("%s is from %q", key, o)
					}
				}
			})
		}
	}
}

func TestBuiltinProfiles(t *testing.T) {
	for name, want := range map[string]struct {
		files, children bool
		skills          []string
		notes           string
		allow           []string
		submission      string
	}{
		"benchmark": {notes: "off", skills: []string{}, allow: []string{}, submission: "patch"},
		"coder":     {files: true, children: true, skills: []string{"*"}, notes: "workspace", allow: []string{}, submission: "patch"},
		"reviewer":  {files: true, skills: []string{"large-repositories"}, notes: "off", allow: []string{"read", "skill"}, submission: "text"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := configs.Merge(builtin(t, "swebench"), profile(t, name))
			require.NoError(t, err)
			got := []any{cfg.Tools.Files, cfg.Agents.Enabled, cfg.Skills.Use, cfg.Memory.Notes, cfg.Tools.Allow, cfg.Agent.Submission}
			assert.Equal(t, []any{want.files, want.children, want.skills, want.notes, want.allow, want.submission}, got, "the result")
		})
	}
}

// The profile benchmark equals the defaults of a batch.
func TestBenchmarkChangesNothing(t *testing.T) {
	plain, err := configs.Merge(builtin(t, "swebench"))
	require.NoError(t, err)
	cfg, err := configs.Merge(builtin(t, "swebench"), profile(t, "benchmark"))
	require.NoError(t, err)
	cfg.Agent.Protocol = plain.Agent.Protocol // "text" is what "" means
	assert.NoDiff(t, cmp.Diff(plain.Config, cfg.Config), "(-plain +benchmark)")
}

func TestProfilesAreListed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"coder.yaml": "# Mine.\nagent: {step_limit: 7}\n", "fast.yaml": "agent: {step_limit: 1}\n",
		"notes.txt": "# no profile\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	all, err := configs.Profiles(dir, filepath.Join(dir, "nowhere"))
	require.NoError(t, err)
	var got []string
	for _, p := range all {
		got = append(got, p.Name)
		if strings.HasPrefix(p.Path, dir) != (p.Name == "coder" || p.Name == "fast") {
			t.Errorf("%s is from %q", p.Name, p.Path)
		}
		if want := map[string]string{"coder": "Mine.", "fast": ""}; p.Path != "" && p.Description != want[p.Name] || p.Path == "" && p.Description == "" {
			t.Errorf("%s is about %q", p.Name, p.Description)
		}
	}
	assert.Equal(t, []string{"benchmark", "coder", "fast", "reviewer"}, got, "the result")
	cfg, err := configs.Merge(builtin(t, "mini"), profile(t, "coder", dir))
	require.NoError(t, err)
	if o, _ := cfg.Origin("agent.step_limit"); cfg.Agent.StepLimit != 7 || o.String() != filepath.Join(dir, "coder.yaml")+":2" {
		t.Errorf("%d from %s: the user's profile must override the built-in one", cfg.Agent.StepLimit, o)
	}
}

func TestReadProfileRefuses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "typo.yaml"), []byte("agent:\n  stp_limit: 1\n"), 0o600))
	for name, want := range map[string]string{
		"codr":                      "--profile codr: unknown profile; did you mean coder?",
		"bench":                     "did you mean benchmark?",
		"zzzzzz":                    "use one of benchmark, coder, reviewer, typo, or FILE.yaml",
		"":                          "unknown profile",
		"..":                        "unknown profile",
		"typo":                      "typo.yaml:2: unknown key agent.stp_limit; did you mean agent.step_limit?",
		filepath.Join(dir, "a.yml"): "a.yml: no such file",
		"./coder":                   "--profile ./coder: no such file",
		"nope.yaml":                 "--profile nope.yaml: no such file",
	} {
		if _, err := configs.ReadProfile(name, dir); err == nil || !errors.Is(err, configs.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// A subagent with a profile has its parent's settings, except those that the profile sets.
func TestWith(t *testing.T) {
	limit, err := configs.ParseSetting("-c", "agent.step_limit", "9")
	require.NoError(t, err)
	name, err := configs.ParseSetting("-m", "model.model_name", "a")
	require.NoError(t, err)
	parent, err := configs.Merge(builtin(t, "mini"), profile(t, "coder"), limit, name)
	require.NoError(t, err)
	child, err := parent.With(profile(t, "reviewer"))
	require.NoError(t, err)
	got := []any{child.Agent.StepLimit, child.Model.Name, child.Memory.Notes, child.Agents.Enabled, parent.Agent.StepLimit, parent.Memory.Notes}
	assert.Equal(t, []any{60, "a", "off", false, 9, "workspace"}, got, "the result")
}
