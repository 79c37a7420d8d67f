package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
)

func TestInvalidSkills(t *testing.T) {
	for name, tt := range map[string]struct{ section, want string }{
		"a name in capitals": {"{use: [Bisect]}", `mine.yaml:1: skills.use: "Bisect": the name of a skill must consist of lower-case letters, digits and single hyphens`},
		"a name upwards":     {`{use: ["../x"]}`, `skills.use: "../x": the name of a skill must consist of`},
		"no name":            {`{use: [""]}`, `skills.use: "": the name of a skill is empty`},
		"twice":              {"{use: [a, a]}", "skills.use: a is listed twice"},
		"no folder":          {`{paths: [""]}`, `skills.paths: "" is not a valid directory name`},
		"no list":            {"{use: {a: b}}", "skills.use: it must be a list of strings"},
		"another key":        {"{used: [a]}", "unknown key skills.used; did you mean skills.use?"},
		"too many folders":   {"{paths: [" + strings.Repeat("a,", 51) + "]}", "skills.paths: 51 directories; at most 50 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := configs.ReadFile(file(t, "mine.yaml", "skills: "+tt.section+"\n"))
			if err == nil {
				_, err = configs.Merge(builtin(t, "mini"), l)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestSkillPaths checks that relative paths are relative to the file that sets them.
func TestSkillPaths(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	path := file(t, "mine.yaml", "skills:\n  use: ['*']\n  paths: [team, /abs, ~/own]\n")
	skillPaths := func(arg string) []string {
		l, err := configs.ReadArg(arg)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := configs.Merge(builtin(t, "swebench"), l)
		if err != nil {
			t.Fatal(err)
		}
		return cfg.SkillPaths()
	}
	if diff := cmp.Diff([]string{filepath.Join(filepath.Dir(path), "team"), "/abs", filepath.Join(home, "own")}, skillPaths(path)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"team"}, skillPaths(`skills.paths=["team"]`)); diff != "" {
		t.Error(diff)
	}
}
