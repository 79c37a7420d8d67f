package replay_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/trajectories"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open is a function that opens a sandbox whose folder has a small repository.
type open func(t *testing.T) (env.Environment, agent.Repository)

func inMemory(t *testing.T) (env.Environment, agent.Repository) {
	t.Helper()
	repo := agenttest.NewRepository(t)
	return repo.Sandbox, repo
}

func withGit(t *testing.T) (env.Environment, agent.Repository) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec",
		"git init -q .; echo one > a.txt; git add a.txt; git -c user.name=n -c user.email=n@example.org commit -qm first")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2024-01-01T00:00:00Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sandbox, err := local.New(t.Context(), local.Config{Dir: dir, Disposable: true, Helper: childtest.Program(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sandbox.Close(context.Background()) })
	return sandbox, agent.GitRepository{}
}

func command(script string) env.Command {
	return env.Command{Script: script, SubmissionMarkers: agent.SubmitMarkers}
}

// record runs commands like an attempt, one per step.
func record(t *testing.T, open open, commands ...string) *trajectories.Attempt {
	t.Helper()
	sandbox, repo := open(t)
	tree, err := repo.Open(t.Context(), sandbox, worktree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tr := &trajectories.Attempt{Outcome: &trajectories.Outcome{Class: trajectories.Submitted}}
	for i, c := range commands {
		res, err := sandbox.Execute(t.Context(), command(c))
		if err != nil {
			t.Fatal(err)
		}
		tr.Entries = append(tr.Entries, trajectories.Entry{
			Message: trajectories.Message{Cause: trajectories.CauseReply, Actions: []string{c}},
			Executions: []trajectories.Execution{{
				Record: 10 * (i + 1), ObservationEntry: 2*i + 1,
				Command: c, Output: res.Output, Bytes: res.Bytes, ExitCode: res.ExitCode,
			}},
		}, trajectories.Entry{Message: trajectories.Message{Cause: trajectories.CauseObservation}})
	}
	diff, err := tree.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tr.Diff = &trajectories.Diff{Base: tree.Base, Patch: diff.Patch}
	return tr
}

func again(t *testing.T, open open, c replay.Config) replay.Result {
	t.Helper()
	c.Environment, c.Repository = open(t)
	c.Command, c.Scrub = command, true
	res, err := replay.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// work has the commands of an attempt with noise in its outputs.
var work = []string{
	"cat a.txt; ls",
	"echo two >> a.txt; date; mktemp -u; echo pid $$",
	"false",
	"mkdir b; cp a.txt b/c; git add -A; git -c user.name=n -c user.email=n@example.org commit -qm x",
	"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; git diff HEAD~ -- a.txt b",
}

// TestChangedRecording changes a recording in one place and checks where it diverges.
func TestChangedRecording(t *testing.T) {
	tr := record(t, inMemory, work...)
	ran := func(step int) *trajectories.Execution { return &tr.Entries[2*(step-1)].Executions[0] }
	for _, c := range []struct {
		name   string
		step   int // 0: no command diverges
		change func()
		diff   replay.DiffState
	}{
		{"an output", 0, func() { ran(1).Output = []byte("two\na.txt\n") }, replay.Reproduced},
		{"a returncode", 3, func() { ran(3).ExitCode = 0 }, replay.Reproduced},
		{"a command", 0, func() { ran(2).Command = "echo three >> a.txt" }, replay.Differs},
		{"a tree", 2, func() { ran(2).Tree = strings.Repeat("0", 40) }, replay.Reproduced},
		{"the diff", 0, func() { tr.Diff.Patch = append(tr.Diff.Patch, '\n') }, replay.Differs},
		{"no diff", 0, func() { tr.Diff = nil }, replay.NotRecorded},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := *tr
			entries := append([]trajectories.Entry(nil), tr.Entries...)
			for i := range entries {
				entries[i].Executions = append([]trajectories.Execution(nil), entries[i].Executions...)
			}
			patch := append([]byte(nil), tr.Diff.Patch...)
			defer func() {
				*tr = kept
				tr.Entries = entries
				tr.Diff = &trajectories.Diff{Base: kept.Diff.Base, Patch: patch}
			}()
			c.change()
			res := again(t, inMemory, replay.Config{Attempt: tr})
			step := 0
			if first := res.FirstDiverged(); first != nil {
				step = first.Step
			}
			if step != c.step || res.Diff.State != c.diff || len(res.Commands) != len(work) {
				t.Errorf("diverged first at step %d, diff %+v; want %d, %s", step, res.Diff, c.step, c.diff)
			}
		})
	}
}

func TestStopAtFirst(t *testing.T) {
	tr := record(t, inMemory, work...)
	tr.Entries[2].Executions[0].ExitCode = 9
	res := again(t, inMemory, replay.Config{Attempt: tr, StopAtFirstDivergence: true})
	if len(res.Commands) != 2 || res.Diff.State != replay.NotTaken || res.Reproduced() {
		t.Errorf("%+v", res)
	}
}

// TestOutputDiffers checks a command with a different output and equal files.
func TestOutputDiffers(t *testing.T) {
	tr := record(t, inMemory, work...)
	sandbox, repo := inMemory(t)
	tree, err := repo.Open(t.Context(), sandbox, worktree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range work[:2] {
		if _, err := sandbox.Execute(t.Context(), command(text)); err != nil {
			t.Fatal(err)
		}
		if tr.Entries[2*i].Executions[0].Tree, err = tree.Hash(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tr.Entries[2].Executions[0].Output = []byte("another")
	res := again(t, inMemory, replay.Config{Attempt: tr})
	if !res.Reproduced() || res.Count(replay.OutputDiffers) != 1 || !strings.Contains(res.Commands[1].Difference, `recorded "another"`) {
		t.Errorf("%+v", res)
	}
	tr.Entries[2].Executions[0].Tree = tr.Entries[0].Executions[0].Tree
	res = again(t, inMemory, replay.Config{Attempt: tr})
	if first := res.FirstDiverged(); res.Reproduced() || first == nil || first.Step != 2 || !strings.Contains(first.Difference, "the working tree is ") {
		t.Errorf("%+v", res)
	}
}

// TestRunWithGit replays an attempt in a repository of git.
func TestRunWithGit(t *testing.T) {
	tr := record(t, withGit, work[1])
	if res := again(t, withGit, replay.Config{Attempt: tr}); !res.Reproduced() || res.Diff.State != replay.Reproduced {
		t.Errorf("%+v", res)
	}
}

// TestSubmission checks trajectories that have only a submission.
func TestSubmission(t *testing.T) {
	tr := record(t, inMemory, work...)
	tr.Diff = nil
	_, text, _ := strings.Cut(string(tr.Entries[8].Executions[0].Output), "\n")
	tr.Outcome.Submission = []byte(text)
	if res := again(t, inMemory, replay.Config{Attempt: tr}); res.Diff.State != replay.Reproduced || res.Diff.Source != "submission" {
		t.Errorf("%+v", res.Diff)
	}
	tr.Outcome.Submission = append(tr.Outcome.Submission, ' ')
	if res := again(t, inMemory, replay.Config{Attempt: tr}); res.Diff.State != replay.Differs || res.Diff.Difference == "" {
		t.Errorf("%+v", res.Diff)
	}
}

func TestInterruptedCommand(t *testing.T) {
	tr := record(t, inMemory, "echo a", "sleep 1000 & exec 2>&-; echo b")
	tr.Outcome.Class = trajectories.Interrupted
	tr.Entries[2].Executions[0].Command, tr.Entries[2].Executions[0].ObservationEntry = "sleep 1000", -1
	res := again(t, inMemory, replay.Config{Attempt: tr})
	if len(res.Commands) != 2 || res.Commands[1].Match != replay.Skipped || !res.Reproduced() {
		t.Errorf("%+v", res)
	}
}

func TestStopped(t *testing.T) {
	tr := record(t, inMemory, "echo a", "echo b")
	ctx, stop := context.WithCancelCause(t.Context())
	sandbox, repo := inMemory(t)
	res, err := replay.Run(ctx, replay.Config{
		Environment: sandbox, Repository: repo, Command: command, Attempt: tr,
		OnCommand: func(replay.Command) { stop(agent.ErrInterrupted) },
	})
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Commands) != 1 || res.Diff.State != replay.NotTaken {
		t.Errorf("%v, %+v", err, res)
	}
}
