package submission_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/submission"
	"github.com/minibench/mini/trajectories"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// finishedRun is a run: a has a verdict, b did not apply, c is empty, d has no verdict, no
// trajectory and a link for a log, and e has no result.
func finishedRun(t *testing.T) *runs.Run {
	t.Helper()
	dir := t.TempDir()
	preds := map[string]trajectories.Prediction{}
	for id, patch := range map[string]string{"a": "diff <a>", "b": "diff b", "c": "", "d": "diff d"} {
		preds[id] = trajectories.Prediction{InstanceID: id, Model: "org/m: \"x\"", Patch: patch}
		if id != "d" {
			put(t, filepath.Join(dir, id, id+".traj.json"), "trajectory of "+id)
		}
	}
	if err := trajectories.WritePredictions(filepath.Join(dir, "preds.json"), preds); err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(dir, "logs/run_evaluation/first", `org__m: "x"`)
	for _, name := range []string{"patch.diff", "eval.sh", "run_instance.log", "test_output.txt", "report.json"} {
		put(t, filepath.Join(logs, "a", name), name+" of a")
	}
	put(t, filepath.Join(logs, "a", "secret"), "not asked for")
	put(t, filepath.Join(logs, "b", "run_instance.log"), "it does not apply")
	put(t, filepath.Join(logs, "d", "notes"), "")
	if err := os.Symlink("/etc/passwd", filepath.Join(logs, "d", "report.json")); err != nil {
		t.Fatal(err)
	}
	return &runs.Run{
		Dir: dir, Instances: []runs.Instance{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}},
		Manifest: runs.Manifest{MiniVersion: "v1", Dataset: runs.Dataset{Name: "verified"}, Model: runs.ClassAndName{Name: `org/m: "x"`}},
	}
}

// sizeOf returns the size of the files in a folder, in bytes.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			info, failed := e.Info()
			n, err = n+info.Size(), failed
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWrite(t *testing.T) {
	run := finishedRun(t)
	dir := filepath.Join(t.TempDir(), "new", "20260102_mine")
	c := submission.Config{Run: run, RunID: "first", Dir: dir, Name: "mine: # 1", Results: "1 of 5\n\nresolved\n", HasVerdict: map[string]bool{"a": true, "b": true}}
	res, err := submission.Write(c)
	if err != nil {
		t.Fatal(err)
	}
	want := submission.Result{Predictions: 4, Trajs: 3, Logs: 1, NoResult: []string{"e"}, NoTraj: []string{"d"}, NoVerdict: []string{"d"}}
	want.Bytes = sizeOf(t, dir)
	if diff := cmp.Diff(want, res); diff != "" || res.Complete() {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"README.md", "all_preds.jsonl", "logs/a/eval.sh", "logs/a/patch.diff", "logs/a/report.json", "logs/a/run_instance.log",
		"logs/a/test_output.txt", "logs/b/run_instance.log", "metadata.yaml", "trajs/a.traj", "trajs/b.traj", "trajs/c.traj",
	}, files); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := read("logs/a/test_output.txt"); got != "test_output.txt of a" {
		t.Errorf("the log is %q", got)
	}
	preds, err := trajectories.ReadPredictions(filepath.Join(dir, "all_preds.jsonl"))
	if err != nil || len(preds.List) != 4 || preds.List[0].Patch != "diff <a>" || strings.Count(read("all_preds.jsonl"), "\n") != 4 {
		t.Errorf("predictions: %+v, %v", preds, err)
	}
	var meta struct {
		Name string `yaml:"name"`
		Site string `yaml:"site"`
		Info struct{ Name string }
		Tags struct {
			Model  []string
			System struct{ Attempts string }
		}
		OSS      *bool `yaml:"oss"`
		Verified *bool `yaml:"verified"`
	}
	if err := yaml.Unmarshal([]byte(read("metadata.yaml")), &meta); err != nil {
		t.Fatal(err)
	}
	if meta.Name != "mine: # 1" || meta.Info.Name != meta.Name || meta.Site != "TODO" || meta.OSS == nil || meta.Verified == nil ||
		!slices.Equal(meta.Tags.Model, []string{`org/m: "x"`}) || meta.Tags.System.Attempts != "1" {
		t.Errorf("metadata: %+v\n%s", meta, read("metadata.yaml"))
	}
	for _, want := range []string{"# mine: # 1\n", "    1 of 5\n\n    resolved\n", "- no prediction: e\n", "- no verdict: d\n", "- [ ] One prediction for each instance"} {
		if !strings.Contains(read("README.md"), want) {
			t.Errorf("no %q in\n%s", want, read("README.md"))
		}
	}

	before := read("README.md")
	if _, err := submission.Write(c); !errors.Is(err, submission.ErrExists) || read("README.md") != before {
		t.Errorf("written to again: %v", err)
	}
}

// TestFailedWriteLeavesNothing checks that an error leaves no partial folder.
func TestFailedWriteLeavesNothing(t *testing.T) {
	for name, change := range map[string]func(*submission.Config){
		"a run id that leads elsewhere": func(c *submission.Config) { c.RunID = "../.." },
		"no predictions":                func(c *submission.Config) { c.Run.Dir = filepath.Dir(c.Dir) },
		"an instance that leads elsewhere": func(c *submission.Config) {
			put(t, filepath.Join(c.Run.Dir, "preds.json"), `{"../x": {"instance_id": "../x", "model_name_or_path": "m", "model_patch": "diff"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			c := submission.Config{Run: finishedRun(t), RunID: "first", Dir: filepath.Join(parent, "new")}
			change(&c)
			_, err := submission.Write(c)
			if !errors.Is(err, submission.ErrNoPredictions) && !errors.Is(err, grade.ErrInvalidName) {
				t.Errorf("the error is %v", err)
			}
			left, err := os.ReadDir(parent)
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// Files that are too large for GitHub are listed, and written.
func TestLargeFiles(t *testing.T) {
	run := finishedRun(t)
	if err := os.Truncate(filepath.Join(run.Dir, "a/a.traj.json"), 101<<20); err != nil {
		t.Fatal(err)
	}
	res, err := submission.Write(submission.Config{Run: run, RunID: "first", Dir: filepath.Join(t.TempDir(), "new")})
	if err != nil || !slices.Equal(res.TooLarge, []string{"trajs/a.traj"}) {
		t.Errorf("%v, %v", res.TooLarge, err)
	}
}
