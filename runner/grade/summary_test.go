package grade_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner/grade"
)

// write writes a file below dir.
func write(t *testing.T, text string, dir ...string) {
	t.Helper()
	path := filepath.Join(dir...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestSummarize(t *testing.T) {
	root := t.TempDir()
	run, err := grade.NewLayout(root, "r")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	var predictions []grade.Prediction
	for id, files := range map[string]map[string]string{
		"resolved":   {"report.json": `{"resolved": {"resolved": true}}`},
		"unresolved": {"report.json": `{"unresolved": {"resolved": false}}`, "test_output.txt": "fine", "run_instance.log": "no tests ran"},
		"null":       {"report.json": `null`},
		"list":       {"report.json": `[]`},
		"no key":     {"report.json": `{"no key": {}}`},
		"a string":   {"report.json": `{"a string": "resolved"}`},
		"no report":  {"test_output.txt": "Killed\r\n"},
		"nothing":    {},
	} {
		ids = append(ids, id)
		predictions = append(predictions, grade.Prediction{InstanceID: id, Model: "m/x"})
		for name, text := range files {
			write(t, text, root, "logs/run_evaluation/r/m__x", id, name)
		}
	}
	sum, err := run.Summarize(append(ids, "B", "a", "\ue000", "\U0001f600"), predictions)
	if err != nil {
		t.Fatal(err)
	}
	want := grade.Summary{
		Total:             12,
		Completed:         []string{"a string", "list", "no key", "null", "resolved", "unresolved"},
		Incomplete:        []string{"B", "a", "\ue000", "\U0001f600"},
		Submitted:         []string{"a string", "list", "no key", "no report", "nothing", "null", "resolved", "unresolved"},
		Resolved:          []string{"resolved"},
		Unresolved:        []string{"unresolved"},
		Errors:            []string{"a string", "list", "no key", "no report", "nothing", "null"},
		InfraFailures:     []string{"no report"},
		AmbiguousFailures: []string{"unresolved"},
		FailureReasons:    map[string]string{"no report": "out_of_memory", "unresolved": "no_tests_collected"},
	}
	if diff := cmp.Diff(string(want.JSON()), string(sum.JSON())); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestSummarizeRefuses(t *testing.T) {
	root := t.TempDir()
	run, err := grade.NewLayout(root, "r")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Summarize([]string{"a"}, []grade.Prediction{{InstanceID: "a", Model: ".."}}); !errors.Is(err, grade.ErrInvalidName) {
		t.Errorf("a model that leads elsewhere: %v", err)
	}
	write(t, "", root, "logs/run_evaluation/r/m/a/report.json/x")
	if _, err := run.Summarize([]string{"a"}, []grade.Prediction{{InstanceID: "a", Model: "m"}}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a report that is a folder: %v", err)
	}
}

func TestEmptySummary(t *testing.T) {
	got := string(grade.Summary{}.JSON())
	for _, want := range []string{"{\n    \"total_instances\": 0,\n", "\"completed_ids\": [],\n", "\"failure_reasons\": {},\n", "    \"schema_version\": 2\n}\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	got = string(grade.Summary{Total: 2, Errors: []string{"b", "a", "b"}}.JSON()) // a dataset may have a row twice
	if want := "\"error_instances\": 2,"; !strings.Contains(got, want) {
		t.Errorf("%q is not in\n%s", want, got)
	}
}
