package evaluate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade/logs"
	"github.com/minibench/mini/runner/grade/script"
	"github.com/minibench/mini/runner/verdicts"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// regradedRow is an instance with tests a and b.
func regradedRow() datasets.Instance {
	return datasets.Instance{
		ID: "x__y-1", Repo: "x/y", Image: "image", EvalScript: "#!/bin/bash\n: '>>>>> Start Test Output'\ntests\n: '>>>>> End Test Output'\n",
		LogParser: "parse_log_pytest", EvalType: "pass_and_fail", FailToPass: []string{"t.py::a"}, PassToPass: []string{"t.py::b"},
	}
}

// logWith is a log with the result of test a.
func logWith(status string) string {
	return "+ : '>>>>> Start Test Output'\n" + status + " t.py::a\nPASSED t.py::b\n+ : '>>>>> End Test Output'\n"
}

const official = "logs/run_evaluation/r/m/x__y-1"

// folder writes an evaluation with a class and a log.
func folder(t *testing.T, class verdicts.Class, log string, change func(*verdicts.Record)) string {
	t.Helper()
	dir := t.TempDir()
	s, err := script.For(regradedRow())
	if err != nil {
		t.Fatal(err)
	}
	r := verdicts.Record{
		Format: verdicts.Format, Instance: "x__y-1", Model: "m", RunID: "r", Class: class, Resolution: "RESOLVED_NO", Reason: "as it was",
		Basis: verdicts.Basis{
			Key: "old", RowSHA256: "old", ImageID: "sha256:aa", Image: "image", PatchSHA256: "p", PatchBytes: 1,
			ScriptSHA256: s.SHA256(), Parser: "parse_log_pytest", ParserRelease: "4.0.0", EvalType: "pass_and_fail",
		},
		Runs: []verdicts.TestRun{{Purpose: verdicts.ForVerdict, Class: class, Resolution: "RESOLVED_NO", Dir: official}},
	}
	if change != nil {
		change(&r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "verdicts/r/m/x__y-1.json"), string(data))
	put(t, filepath.Join(dir, "verdicts/r.json"), `{"submitted":1,"by_class":{"`+string(class)+`":["x__y-1"]},"official_summary":"m.r.json"}`)
	put(t, filepath.Join(dir, "m.r.json"), `{"submitted_ids":["x__y-1"],"completed_ids":["x__y-1"],"incomplete_ids":["x__y-2"],"empty_patch_ids":[],"error_ids":[]}`)
	put(t, filepath.Join(dir, official, "report.json"), `{"x__y-1":{"resolved":false}}`)
	put(t, filepath.Join(dir, official, "test_output.txt"), log)
	put(t, filepath.Join(dir, official, "run_instance.log"), "")
	return dir
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// filesIn returns all files in a folder by path.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func regrade(t *testing.T, dir string, in datasets.Instance, dry bool) evaluate.Regraded {
	t.Helper()
	found, err := verdicts.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	res, err := evaluate.Regrade(t.Context(), evaluate.RegradeConfig{
		Dir: dir, Verdicts: found.Verdicts, Instances: map[string]datasets.Instance{in.ID: in}, DryRun: dry, Now: now,
		Editions: []datasets.SourceInfo{{Name: "d", SHA256: "new"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// format formats a result in one line.
func format(r evaluate.Regraded) string {
	var parts []string
	for _, c := range r.Changed {
		parts = append(parts, fmt.Sprintf("%s -> %s", c.From, c.To))
	}
	if r.Updated > 0 {
		parts = append(parts, fmt.Sprintf("%d renewed", r.Updated))
	}
	for _, k := range r.Failed {
		parts = append(parts, fmt.Sprintf("kept %s: %s", k.Class, k.Reason))
	}
	return strings.Join(parts, "; ")
}

func TestRegrade(t *testing.T) {
	rerun := func(class verdicts.Class, dir string) func(*verdicts.Record) {
		return func(r *verdicts.Record) {
			r.Runs = append(r.Runs, verdicts.TestRun{Purpose: verdicts.ForRerun, Class: class, Dir: dir})
		}
	}
	tests := []struct {
		name   string
		class  verdicts.Class
		log    string
		record func(*verdicts.Record)
		row    func(*datasets.Instance)
		file   func(t *testing.T, dir string)
		want   string
	}{
		{name: "the parser sees more now", class: verdicts.Unresolved, log: logWith("PASSED"), want: "unresolved -> resolved"},
		{name: "as it was", class: verdicts.Unresolved, log: logWith("FAILED"), want: "1 renewed"},
		{
			name: "the row asks for less", class: verdicts.Unresolved, log: logWith("FAILED"),
			row: func(in *datasets.Instance) { in.FailToPass = nil }, want: "unresolved -> resolved",
		},
		{name: "a crash is mended", class: verdicts.Error, log: logWith("PASSED"), want: "error -> resolved"},
		{
			name: "the parser crashes now", class: verdicts.Unresolved, log: logWith("PASSED") + "FAIL:\n",
			row: func(in *datasets.Instance) { in.LogParser = "parse_log_django"; in.FailToPass = []string{"c"} },
			file: func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, official, "test_output.txt"), "'>>>>> Start Test Output'\nFAIL:\n'>>>>> End Test Output'")
			},
			want: "kept unresolved: x__y-1 cannot be regraded: run 1: parse log with parse_log_django: a FAIL: or ERROR: line has no test name",
		},
		{
			name: "another script", class: verdicts.Unresolved, log: logWith("PASSED"), row: func(in *datasets.Instance) { in.EvalScript += "more\n" },
			want: "kept unresolved: x__y-1 cannot be regraded: the row's evaluation script has changed since the log was made; run the tests with mini eval",
		},
		{
			name: "another image", class: verdicts.Unresolved, log: logWith("PASSED"), row: func(in *datasets.Instance) { in.Image = "other" },
			want: "kept unresolved: x__y-1 cannot be regraded: the row's image has changed since the log was made; run the tests with mini eval",
		},
		{
			name: "no tests in the row", class: verdicts.Resolved, log: logWith("PASSED"), row: func(in *datasets.Instance) { in.FailToPass, in.PassToPass = nil, nil },
			want: "kept resolved: x__y-1 cannot be graded: FAIL_TO_PASS and PASS_TO_PASS are empty",
		},
		{
			name: "no row", class: verdicts.Resolved, log: logWith("PASSED"), row: func(in *datasets.Instance) { in.ID = "x__y-2" },
			want: "kept resolved: x__y-1 has no row in the dataset",
		},
		{name: "a time-out stays", class: verdicts.TimedOut, log: logWith("PASSED"), want: "1 renewed"},
		{name: "the machine's failure stays", class: verdicts.Infrastructure, log: logWith("PASSED"), record: func(r *verdicts.Record) {
			r.Runs[0].Resolution = ""
		}, want: ""},
		{name: "nothing was run", class: verdicts.Empty, record: func(r *verdicts.Record) { r.Runs = nil }, want: ""},
		{
			name: "a rerun of the same kind", class: verdicts.Unresolved, log: logWith("PASSED"),
			record: rerun(verdicts.Unresolved, "verdicts/r/m/x__y-1/2"),
			file: func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, "verdicts/r/m/x__y-1/2/test_output.txt"), logWith("PASSED"))
			},
			want: "unresolved -> resolved",
		},
		{
			name: "a rerun that differs", class: verdicts.Unresolved, log: logWith("PASSED"),
			record: rerun(verdicts.Unresolved, "verdicts/r/m/x__y-1/2"),
			file: func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, "verdicts/r/m/x__y-1/2/test_output.txt"), logWith("FAILED"))
			},
			want: "unresolved -> unstable",
		},
		{
			name: "a rerun whose log is gone", class: verdicts.Unresolved, log: logWith("PASSED"), record: rerun(verdicts.Unresolved, ""),
			want: "kept unresolved: x__y-1 cannot be regraded: the verdict would be unstable, but the log of another run is missing",
		},
		{
			name: "a record that leads elsewhere", class: verdicts.Unresolved, log: logWith("PASSED"),
			record: func(r *verdicts.Record) { r.Runs[0].Dir = "../../elsewhere" },
			want:   `kept unresolved: x__y-1 cannot be regraded: run 1: "../../elsewhere" is not a folder of this record`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, tt.class, tt.log, tt.record)
			if tt.file != nil {
				tt.file(t, dir)
			}
			in := regradedRow()
			if tt.row != nil {
				tt.row(&in)
			}
			before := filesIn(t, dir)
			if got := format(regrade(t, dir, in, true)); got != tt.want {
				t.Errorf("dry:  %s\nwant: %s", got, tt.want)
			}
			if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
				t.Errorf("a dry run writes:\n%s", diff)
			}
			if got := format(regrade(t, dir, in, false)); got != tt.want {
				t.Errorf("got:  %s\nwant: %s", got, tt.want)
			}
			after := filesIn(t, dir)
			if strings.HasPrefix(tt.want, "kept") || tt.want == "" {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("a verdict that failed was written:\n%s", diff)
				}
				return
			}
			if again := format(regrade(t, dir, in, false)); again != "" {
				t.Errorf("the second time: %s", again)
			}
			if diff := cmp.Diff(after, filesIn(t, dir)); diff != "" {
				t.Errorf("the second time writes:\n%s", diff)
			}
		})
	}
}

// TestWrittenFiles checks the report, the record with its previous verdict, and both
// summaries.
func TestRegradedFiles(t *testing.T) {
	dir := folder(t, verdicts.Unresolved, logWith("PASSED"), nil)
	res := regrade(t, dir, regradedRow(), false)
	files := filesIn(t, dir)
	for path, want := range map[string][]string{
		official + "/report.json":     {`"resolved": true`, `"t.py::a"`},
		"m.r.json":                    {`"total_instances": 2`, `"resolved_instances": 1`, `"unresolved_instances": 0`, `"incomplete_ids": [` + "\n        \"x__y-2\""},
		"verdicts/r.json":             {`"resolved": [`, `"trusted_resolved": 1`},
		"verdicts/r/m/x__y-1.json":    {`"parser_release": "` + logs.HarnessRelease + `"`, `"class": "resolved"`},
		official + "/test_output.txt": {"PASSED t.py::a"},
	} {
		for _, w := range want {
			if !strings.Contains(files[path], w) {
				t.Errorf("%s has no %s:\n%s", path, w, files[path])
			}
		}
	}
	var r verdicts.Record
	if err := json.Unmarshal([]byte(files["verdicts/r/m/x__y-1.json"]), &r); err != nil {
		t.Fatal(err)
	}
	want := []verdicts.PreviousVerdict{{
		Time: now, Class: verdicts.Unresolved, Resolution: "RESOLVED_NO", Reason: "as it was",
		RowSHA256: "old", Parser: "parse_log_pytest", ParserRelease: "4.0.0", EvalType: "pass_and_fail",
	}}
	if diff := cmp.Diff(want, r.Previous); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.Reason != "" || r.Basis.Key == "old" || r.Basis.RowSHA256 == "old" || len(r.Basis.Editions) != 1 || r.Basis.ImageID != "sha256:aa" {
		t.Errorf("the record: %+v", r)
	}
	if len(res.Records) != 1 || res.Records[0].Class != verdicts.Resolved {
		t.Errorf("the result has %+v", res.Records)
	}
}

func TestRegradeInterrupted(t *testing.T) {
	dir := folder(t, verdicts.Unresolved, logWith("PASSED"), nil)
	before := filesIn(t, dir)
	found, err := verdicts.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = evaluate.Regrade(ctx, evaluate.RegradeConfig{Dir: dir, Verdicts: found.Verdicts, Instances: map[string]datasets.Instance{"x__y-1": regradedRow()}, Now: now})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Errorf("it writes:\n%s", diff)
	}
}

// TestSignature checks that a regraded record has the user's signature only if it had it
// before.
func TestRegradedSignature(t *testing.T) {
	key := []byte("the user's")
	for _, own := range []bool{true, false} {
		dir := folder(t, verdicts.Unresolved, logWith("PASSED"), func(r *verdicts.Record) {
			signer := key
			if !own {
				signer = []byte("another")
			}
			signed, err := r.WithSignature(signer)
			if err != nil {
				t.Fatal(err)
			}
			*r = signed
		})
		found, err := verdicts.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = evaluate.Regrade(t.Context(), evaluate.RegradeConfig{
			Dir: dir, Verdicts: found.Verdicts, Instances: map[string]datasets.Instance{"x__y-1": regradedRow()}, Now: now, SigningKey: key,
		}); err != nil {
			t.Fatal(err)
		}
		if found, err = verdicts.Read(dir); err != nil || found.Verdicts[0].Class != verdicts.Resolved || found.Verdicts[0].IsSignedBy(key) != own {
			t.Errorf("own %v: %+v, %v", own, found.Verdicts, err)
		}
	}
}
