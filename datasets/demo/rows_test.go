package demo_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
)

var update = flag.Bool("update", false, "write rows.jsonl anew")

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
		if err := e.Encode(compose(t, folder)); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile("rows.jsonl", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
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
	if err := demo.Unpack(t.Context(), id, dir); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(map[byte]int{'"': 3, '[': 2}, forms); diff != "" {
		t.Errorf("FAIL_TO_PASS as string and as list (-want +got):\n%s", diff)
	}
}

func instances(t *testing.T) []datasets.Instance {
	t.Helper()
	rows := demo.Rows()
	if *update {
		rows = []byte(file(t, "rows.jsonl")) // the embedded rows are from before the update
	}
	src := datasets.Embedded("demo", rows)
	set, err := datasets.Load(t.Context(), []datasets.Source{src}, datasets.AllRows)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Instances) != 5 {
		t.Fatalf("%d instances, want 5", len(set.Instances))
	}
	return set.Instances
}

func file(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func text(t *testing.T, list []string) string {
	t.Helper()
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
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
