package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// fakeSandbox is a sandbox without a shell: every command succeeds with a fixed output.
type fakeSandbox struct {
	output string
	err    error
	block  bool // commands end only with their context
	closed func()
}

func (r *fakeSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if slices.Equal(c.Interpreter, []string{env.RepositoryProgram}) {
		return env.Result{ExitCode: 127}, nil // there is none
	}
	if r.block {
		<-ctx.Done()
		return env.Result{ExitCode: -1}, context.Cause(ctx)
	}
	return env.Result{Output: []byte(r.output), Chars: int64(len(r.output))}, r.err
}

func (r *fakeSandbox) Info() env.Info {
	return env.Info{Dir: "/", Image: "img", ImageID: "sha256:1", NetworkProof: "proven: DNS"}
}

func (r *fakeSandbox) Close(context.Context) error {
	if r.closed != nil {
		r.closed()
	}
	return nil
}

type starter func(ctx context.Context, in datasets.Instance) (env.Environment, error)

func (s starter) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	return s(ctx, in)
}

// constantModel gives the same reply to every call.
type constantModel struct{ err error }

func (m constantModel) For(datasets.Instance) (model.Model, error) { return m, nil }

func (m constantModel) Query(context.Context, []model.Message) (model.Reply, error) {
	return model.Reply{
		Message:      model.Message{Role: model.Assistant, Content: "```bash\nwork\n```"},
		FinishReason: model.FinishStop, Cost: 0.01, Tries: 1,
	}, m.err
}

func submits(context.Context, datasets.Instance) (env.Environment, error) {
	return &fakeSandbox{output: "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nthe patch\n"}, nil
}

func batch(t *testing.T, dir string, s starter) *runner.Batch {
	t.Helper()
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() }) // does nothing more if the test has closed it
	a, err := agent.New(agent.Config{
		SystemTemplate: "s", InstanceTemplate: "{{.task}}", ObservationTemplate: "{{.output}}{{.exception}}", FormatErrorTemplate: "{{.error}}",
		StepLimit: 5, Timeout: time.Minute, Autosubmit: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &runner.Batch{
		Folder: folder, Agent: a, Sandboxes: s, Models: constantModel{}, ModelName: "m",
		Header: trajectories.Header{Config: json.RawMessage(`{}`)}, Workers: 2, MaxTries: 3, Log: runner.NewLog(folder, nil),
	}
}

func rows(ids ...string) []datasets.Instance {
	var list []datasets.Instance
	for _, id := range ids {
		list = append(list, datasets.Instance{ID: id, ProblemStatement: "p"})
	}
	return list
}

func results(t *testing.T, dir string) map[string]runs.Result {
	t.Helper()
	var r runs.Results
	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Instances
}

func preds(t *testing.T, dir string) map[string]string {
	t.Helper()
	p, err := trajectories.ReadPredictions(filepath.Join(dir, "preds.json"))
	if err != nil {
		t.Fatal(err)
	}
	patches := map[string]string{}
	for _, one := range p.List {
		patches[one.InstanceID] = one.Patch
	}
	return patches
}

// Attempts that fail in the sandbox or at the provider are made three times, unless a retry
// would fail in the same way. Two disruptions are not counted.
func TestRetries(t *testing.T) {
	tests := []struct {
		name     string
		start    starter
		model    error
		attempts int
		status   string
	}{
		{"sandbox", func(context.Context, datasets.Instance) (env.Environment, error) {
			return nil, &env.Error{Status: env.StartFailed, Op: "start"}
		}, nil, 3, "StartFailed"},
		{"sandbox dies", func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{err: &env.Error{Status: env.ContainerDied, Op: "run"}}, nil
		}, nil, 3, "ContainerDied"},
		{"sandbox disrupted", func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{err: &env.Error{Status: env.SandboxDisrupted, Op: "run"}}, nil
		}, nil, 5, "SandboxDisrupted"},
		{"sandbox limit exceeded", func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{err: &env.Error{Status: env.SandboxLimitExceeded, Op: "run"}}, nil
		}, nil, 1, "SandboxLimitExceeded"},
		{"missing image", func(context.Context, datasets.Instance) (env.Environment, error) {
			return nil, &env.Error{Status: env.ImageNotFound, Op: "pull"}
		}, nil, 1, "ImageNotFound"},
		{"refused repository", func(context.Context, datasets.Instance) (env.Environment, error) {
			return nil, &env.Error{Status: env.RepositoryRefused, Op: "prepare"}
		}, nil, 1, "RepositoryRefused"},
		{"provider", submits, &model.Error{Status: model.RateLimited, Retryable: true}, 3, "RateLimited"},
		{"wrong key", submits, &model.Error{Status: model.AuthenticationError}, 1, "AuthenticationError"},
		{"defect", submits, errors.New("surprise"), 1, "InternalError"},
		{"result", submits, nil, 1, "Submitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				b := batch(t, dir, tt.start)
				b.Models, b.MaxDisruptions = constantModel{tt.model}, 2
				sum, err := b.Run(t.Context(), rows("a"))
				if err != nil {
					t.Fatal(err)
				}
				r := results(t, dir)["a"]
				if r.Attempts != tt.attempts || r.ExitStatus != tt.status {
					t.Errorf("%d attempts, %s; want %d, %s", r.Attempts, r.ExitStatus, tt.attempts, tt.status)
				}
				if counts := tt.status == "Submitted" || tt.status == "SandboxLimitExceeded"; sum.Complete() != counts || (len(preds(t, dir)) == 1) != counts {
					t.Errorf("complete %v, predictions %v", sum.Complete(), preds(t, dir))
				}
				if r.Class.IsResult() && r.NetworkProof != "proven: DNS" {
					t.Errorf("network proof %q", r.NetworkProof)
				}
				for n := 1; n <= tt.attempts; n++ {
					if _, ok, err := trajectories.ReadOutcome(filepath.Join(dir, "a", "attempts", fmt.Sprint(n), "journal.jsonl")); !ok || err != nil {
						t.Errorf("attempt %d has no outcome: %v", n, err)
					}
				}
			})
		})
	}
}

func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	b := batch(t, dir, submits)
	if _, err := b.Run(t.Context(), rows("a", "b")); err != nil {
		t.Fatal(err)
	}
	if err := b.Folder.Close(); err != nil {
		t.Fatal(err)
	}

	// A killed process leaves c without an outcome and no derived files.
	torn := filepath.Join(dir, "c", "attempts", "1")
	if err := os.MkdirAll(torn, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(torn, "journal.jsonl"), []byte(`{"id":1,"parent_id":0,"type":"header","time":"2026-01-01T00:00:00Z","data":{"format":"mini-1"}}`+"\n"+`{"id":2,"par`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"results.json", "preds.json", "a/a.traj.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	var started []string
	var mu sync.Mutex
	again := batch(t, dir, func(ctx context.Context, in datasets.Instance) (env.Environment, error) {
		mu.Lock()
		defer mu.Unlock()
		started = append(started, in.ID)
		return submits(ctx, in)
	})
	sum, err := again.Run(t.Context(), rows("a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c"}, started); diff != "" || sum.Skipped != 2 || !sum.Complete() {
		t.Errorf("started (-want +got):\n%s%+v", diff, sum)
	}
	want := map[string]string{"a": "the patch\n", "b": "the patch\n", "c": "the patch\n"}
	if diff := cmp.Diff(want, preds(t, dir)); diff != "" {
		t.Errorf("predictions (-want +got):\n%s", diff)
	}
	if r := results(t, dir)["c"]; r.Attempt != 2 {
		t.Errorf("c has attempt %d selected, want 2", r.Attempt)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "a.traj.json")); err != nil {
		t.Errorf("the derived trajectory was not made again: %v", err)
	}
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		ctx, cancel := context.WithCancelCause(t.Context())
		closed := 0
		var mu sync.Mutex
		b := batch(t, dir, func(context.Context, datasets.Instance) (env.Environment, error) {
			return &fakeSandbox{block: true, closed: func() { mu.Lock(); closed++; mu.Unlock() }}, nil
		})
		go func() {
			synctest.Wait() // both workers are running a command
			cancel(agent.ErrInterrupted)
		}()
		sum, err := b.Run(ctx, rows("a", "b", "c", "d"))
		if err != nil {
			t.Fatal(err)
		}
		if sum.Classes[trajectories.Interrupted] != 2 || sum.Unstarted != 2 || closed != 2 {
			t.Errorf("%+v, %d sandboxes closed", sum, closed)
		}
	})
}

func TestFolderLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	batch(t, dir, submits)
	_, err := runner.Open(dir)
	locked, ok := errors.AsType[*runner.LockedError](err)
	if !ok || locked.PID != fmt.Sprint(os.Getpid()) {
		t.Errorf("second mini: %v", err)
	}
}

func TestManifestSessions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	b := batch(t, dir, submits)
	for i, session := range []struct {
		config, name, sum string
		changed           []string
	}{
		{"a: 1\n", "d", "x", nil},
		{"a: 1\n", "a copy of d", "x", nil},
		{"a: 2\n", "e", "y", []string{"configuration (a)", "dataset (a copy of d, now e)"}},
		{"a: 2\nrun: {workers: 8, eval: true, total_calls: 9}\neval: {workers: 2}\n", "e", "y", nil},
		{"agent: {step_limit: 3, cost_limit: 1}\nmodel: {name: m}\n", "e", "y", []string{"configuration (a, agent.cost_limit, agent.step_limit and 1 more)"}},
		{"agent: {step_limit: 4, cost_limit: 1}\nmodel: {name: n}\n", "e", "y", []string{"configuration (agent.step_limit, model.name)"}},
		{"agent: {step_limit: 4}\nmodel: {name: m, b: 1, c: [1]}\n", "e", "y", []string{"configuration (agent.cost_limit, model.b, model.c and 1 more)"}},
		{"not: [yaml", "e", "y", []string{"configuration"}},
	} {
		changed, err := b.Folder.StartSession(runs.Manifest{MiniVersion: "v", Dataset: runs.Dataset{
			Name: session.name, Editions: []datasets.SourceInfo{{SHA256: session.sum}},
		}}, []byte(session.config))
		if diff := cmp.Diff(session.changed, changed); err != nil || diff != "" {
			t.Errorf("session %d: changed (-want +got):\n%s%v", i, diff, err)
		}
		sum, err := b.Run(t.Context(), rows("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Folder.EndSession(sum); err != nil {
			t.Fatal(err)
		}
	}
	var m runs.Manifest
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Sessions) != 8 || m.Sessions[7].Ended == nil || m.Images["img"] != "sha256:1" || m.Format != trajectories.Format {
		t.Errorf("manifest: %s", data)
	}
}
