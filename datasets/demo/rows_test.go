package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
)

// row is a line of rows.jsonl, its columns in the order of the official sets.
type row struct {
	Repo             string `json:"repo"`
	ID               string `json:"instance_id"`
	BaseCommit       string `json:"base_commit"`
	Patch            string `json:"patch"`
	TestPatch        string `json:"test_patch"`
	ProblemStatement string `json:"problem_statement"`
	Hints            string `json:"hints_text"`
	CreatedAt        string `json:"created_at"`
	Version          string `json:"version"`
	FailToPass       any    `json:"FAIL_TO_PASS"` // a list, or a string with the list as JSON: datasets have both
	PassToPass       any    `json:"PASS_TO_PASS"`
	SetupCommit      string `json:"environment_setup_commit"`
	Image            string `json:"image"`
	EvalScript       string `json:"eval_script"`
	LogParser        string `json:"log_parser"`
	EvalType         string `json:"eval_type"`
}

// instanceFile is the content of instance.json: the columns that no other file of the
// folder has.
type instanceFile struct {
	Version    string   `json:"version"`
	CreatedAt  string   `json:"created_at"`
	TestsAs    string   `json:"tests_as"`
	FailToPass []string `json:"FAIL_TO_PASS"`
	PassToPass []string `json:"PASS_TO_PASS"`
}

// TestRowsAreUpToDate rebuilds every repository and composes the rows from the folders.
// It fails if a base commit, patch or eval script in rows.jsonl is outdated.
func TestRowsAreUpToDate(t *testing.T) {
	folders, err := filepath.Glob("instances/*")
	if err != nil || len(folders) != 5 {
		t.Fatalf("folders of instances: %v, %v", folders, err)
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	for _, folder := range folders {
		require.NoError(t, e.Encode(compose(t, folder)))
	}
	if golden.Update() {
		require.NoError(t, os.WriteFile("rows.jsonl", want.Bytes(), 0o644))
		return
	}
	if diff := cmp.Diff(want.String(), string(demo.Rows())); diff != "" {
		t.Errorf("rows.jsonl differs from the folders; run go test ./datasets/demo -update (-folders +rows.jsonl):\n%s", diff)
	}
}

// compose returns the row of an instance, made from the files in its folder.
func compose(t *testing.T, folder string) row {
	t.Helper()
	id := filepath.Base(folder)
	owner, name, _ := strings.Cut(id, "__")
	name = name[:strings.LastIndex(name, "-")]
	var f instanceFile
	d := json.NewDecoder(strings.NewReader(file(t, folder, "instance.json")))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatalf("%s/instance.json: %v", folder, err)
	}
	dir := t.TempDir()
	require.NoError(t, demo.Unpack(t.Context(), id, dir))
	base := git(t, dir, "rev-parse", "HEAD~1")
	gold, tests := split(t, file(t, folder, "fix.patch"))
	r := row{
		Repo: owner + "/" + name, ID: id, BaseCommit: base, SetupCommit: base, Patch: gold, TestPatch: tests,
		ProblemStatement: file(t, folder, "problem.md"), Hints: file(t, folder, "hints.md"),
		Version: f.Version, CreatedAt: f.CreatedAt, FailToPass: f.FailToPass, PassToPass: f.PassToPass,
		Image: "mini-demo-" + name + ":latest", EvalScript: evalScript(base, tests),
		LogParser: "parse_log_pytest", EvalType: "pass_and_fail",
	}
	switch f.TestsAs {
	case "list":
	case "string":
		r.FailToPass, r.PassToPass = text(t, f.FailToPass), text(t, f.PassToPass)
	default:
		t.Fatalf("%s/instance.json: tests_as is %q", folder, f.TestsAs)
	}
	return r
}

// split splits the maintainers' commit into the solution and its tests, as the official
// datasets do with pull requests.
func split(t *testing.T, mail string) (gold, tests string) {
	t.Helper()
	const start = "diff --git "
	_, mail, found := strings.Cut(mail, "\n"+start)
	if !found {
		t.Fatal("fix.patch has no diff")
	}
	for part := range strings.SplitSeq(mail, "\n"+start) {
		part = start + strings.TrimSuffix(part, "\n") + "\n"
		if strings.HasPrefix(part, start+"a/tests/") {
			tests += part
		} else {
			gold += part
		}
	}
	return gold, tests
}

var changed = regexp.MustCompile(`(?m)^diff --git a/(\S+) `)

func evalScript(base, tests string) string {
	var names []string
	for _, m := range changed.FindAllStringSubmatch(tests, -1) {
		names = append(names, m[1])
	}
	files := strings.Join(names, " ")
	return strings.Join([]string{
		"#!/bin/bash",
		"set -uxo pipefail",
		"cd /testbed",
		"git config --global --add safe.directory /testbed",
		"git status",
		"git show",
		"git -c core.fileMode=false diff " + base,
		"git checkout " + base + " " + files,
		"git apply -v - <<'END_OF_TEST_PATCH'",
		tests + "END_OF_TEST_PATCH",
		": '>>>>> Start Test Output'",
		"python3 -m pytest -rA " + files,
		": '>>>>> End Test Output'",
		"git checkout " + base + " " + files,
		"",
	}, "\n")
}

// TestRowsDecode checks the rows as package datasets reads them.
func TestRowsDecode(t *testing.T) {
	for _, in := range instances(t) {
		t.Run(in.ID, func(t *testing.T) {
			for name, value := range map[string]string{
				"problem_statement": in.ProblemStatement, "patch": in.Patch, "test_patch": in.TestPatch,
				"version": in.Version, "created_at": in.CreatedAt,
			} {
				if value == "" {
					t.Errorf("%s is empty", name)
				}
			}
			if len(in.FailToPass) == 0 || len(in.PassToPass) == 0 {
				t.Errorf("%d tests to fix and %d to keep", len(in.FailToPass), len(in.PassToPass))
			}
			for _, name := range append(in.FailToPass, in.PassToPass...) {
				if strings.Contains(name, " ") || !strings.HasPrefix(name, "tests/") {
					t.Errorf("test name %q: the log parser would cut it", name)
				}
			}
			if strings.Contains(in.Patch, "a/tests/") || in.ImageName() != in.Image {
				t.Errorf("image %q, or tests in the patch:\n%s", in.Image, in.Patch)
			}
		})
	}
}

// TestBothFormsOfTestLists checks that the dataset has rows with both forms of test lists.
func TestBothFormsOfTestLists(t *testing.T) {
	forms := map[byte]int{}
	for _, in := range instances(t) {
		forms[in.Row["FAIL_TO_PASS"][0]]++
	}
	assert.Equal(t, map[byte]int{'"': 3, '[': 2}, forms, "FAIL_TO_PASS as string and as list")
}

func instances(t *testing.T) []datasets.Instance {
	t.Helper()
	rows := demo.Rows()
	if golden.Update() {
		rows = []byte(file(t, "rows.jsonl")) // the embedded rows are from before the update
	}
	src := datasets.Embedded("demo", rows)
	set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
	require.NoError(t, err)
	require.Equal(t, 5, len(set.Instances), "instances")
	return set.Instances
}

func file(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	return string(b)
}

func text(t *testing.T, list []string) string {
	t.Helper()
	b, err := json.Marshal(list)
	require.NoError(t, err)
	return string(b)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// TestUnpackMatchesOfficialImages checks that the repositories have the properties of
// those in the official images: a set-up commit on top of the base commit, earlier and
// later commits, no remote.
func TestUnpackMatchesOfficialImages(t *testing.T) {
	for _, in := range instances(t) {
		t.Run(in.ID, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new") // Unpack creates it
			require.NoError(t, demo.Unpack(t.Context(), in.ID, dir))
			got := map[string]string{
				"base":       git(t, dir, "rev-parse", "HEAD~1"),
				"set-up":     git(t, dir, "log", "-1", "--format=%an: %s"),
				"branch":     git(t, dir, "rev-parse", "--abbrev-ref", "HEAD"),
				"remotes":    git(t, dir, "remote"),
				"status":     git(t, dir, "status", "--porcelain"),
				"the future": git(t, dir, "rev-list", "--count", "next", "^HEAD"),
				"starts at":  git(t, dir, "rev-parse", "next~1"),
			}
			want := map[string]string{
				"base": in.BaseCommit, "set-up": "SWE-bench: SWE-bench", "branch": "main", "remotes": "", "status": "",
				"the future": "1", "starts at": in.BaseCommit,
			}
			assert.Equal(t, want, got, "repository")
			assert.Equal(t, 1, len(strings.Fields(git(t, dir, "diff", "--name-only", "HEAD~1"))), "the set-up commit edits tracked files")
			if past := git(t, dir, "tag", "--merged", "HEAD"); past == "" {
				t.Error("no tag in the past")
			}
			if future := git(t, dir, "tag", "--no-merged", "HEAD"); !strings.HasPrefix(future, "v") {
				t.Errorf("tags in the future: %q", future)
			}
			if n := git(t, dir, "rev-list", "--count", "HEAD"); n < "4" {
				t.Errorf("%s commits, want a history", n)
			}
		})
	}
}

// TestUnpackIgnoresUserSettings unpacks under settings that would change commits.
func TestUnpackIgnoresUserSettings(t *testing.T) {
	in := instances(t)[0]
	home := t.TempDir()
	settings := "[user]\n\tname = Somebody\n[commit]\n\tgpgSign = true\n[core]\n\tautocrlf = true\n\thooksPath = /nonexistent\n" +
		"[init]\n\tdefaultBranch = trunk\n[am]\n\tkeepcr = true\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600))
	startup := filepath.Join(home, "startup")
	require.NoError(t, os.WriteFile(startup, []byte("exit 7\n"), 0o600))
	dir := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "BASH_ENV": startup, "TZ": "Asia/Kathmandu",
		"GIT_DIR": "/nonexistent", "GIT_AUTHOR_NAME": "Somebody", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
	} {
		t.Setenv(name, value)
	}
	err := demo.Unpack(t.Context(), in.ID, dir)
	os.Unsetenv("GIT_DIR") //nolint:errcheck // t.Setenv restores the old value after the test
	require.NoError(t, err)
	assert.Equal(t, in.BaseCommit, git(t, dir, "rev-parse", "HEAD~1"), "base commit")
}

func TestUnpackRefuses(t *testing.T) {
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o600))
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	for name, tt := range map[string]struct {
		ctx  context.Context
		id   string
		dir  string
		path string
		want string
	}{
		"an unknown instance":    {id: "minidemo__nothing-1", want: `no instance "minidemo__nothing-1"`},
		"a folder above":         {id: "..", want: `no instance ".."`},
		"the folder itself":      {id: ".", want: `no instance "."`},
		"no name":                {id: "", want: `no instance ""`},
		"a part of an instance":  {id: "minidemo__ledger-17/base", want: "no instance"},
		"a folder in use":        {id: "minidemo__ledger-17", dir: full, want: "is not empty"},
		"a context that ended":   {ctx: ended, id: "minidemo__ledger-17", want: "no more"},
		"a machine without bash": {id: "minidemo__ledger-17", path: full, want: "install bash and git"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			if tt.dir == "" {
				tt.dir = t.TempDir()
			}
			if tt.path != "" {
				t.Setenv("PATH", tt.path)
			}
			assert.ErrorContains(t, demo.Unpack(tt.ctx, tt.id, tt.dir), tt.want)
		})
	}
}
