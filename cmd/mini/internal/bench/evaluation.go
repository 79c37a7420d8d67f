package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/rewards"
	"github.com/minibench/mini/trajectories"
)

// checkGradable finds the rows that --eval cannot grade. It prints a note with the reason for the
// first one and the number of the others, before the run.
func (j *Job) checkGradable(w io.Writer) {
	if !j.Config.Run.Eval {
		return
	}
	j.ungradable = map[string]bool{}
	tasks := make([]evaluate.Task, len(j.Input.Rows))
	for i, in := range j.Input.Rows {
		tasks[i] = evaluate.NewTask(in, modelopen.Name(j.Config), nil)
	}
	for i, err := range j.evalConfig().CheckTasks(tasks) {
		if err != nil {
			if j.ungradable[tasks[i].Instance.ID] = true; j.ungradableWhy == "" {
				j.ungradableWhy = err.Error()
			}
		}
	}
	if n := len(j.ungradable); n > 1 {
		j.ungradableWhy += fmt.Sprintf(" (and %d more like it)", n-1)
	}
	switch {
	case envopen.IsHostClass(j.Config.Environment.Class):
		j.printNoVerdicts(w, j.Config.Environment.Class)
	case j.ungradableWhy != "":
		_, _ = fmt.Fprintf(w, "mini: note: %s; the run continues without that verdict\n", text.Printable(j.ungradableWhy))
	}
}

// printNoVerdicts prints a note that sandboxes of class do not allow verdicts during the run.
func (j *Job) printNoVerdicts(w io.Writer, class string) {
	dir := j.Dir
	if j.combination != nil { // the same for all combinations, so that it is printed once
		dir = filepath.Join(j.topFolder(), "COMBINATION")
	}
	_, _ = fmt.Fprintf(w, "mini: note: verdicts need containers, and the sandboxes are %s; run mini eval -p %s later\n",
		class, text.Printable(text.ShellQuote(dir)))
}

// evalConfig returns the configuration of the evaluation without folder, log, sandboxes and
// signing key.
func (j *Job) evalConfig() evaluate.Config {
	c := eval.EvaluateConfig(j.Config)
	c.Selected, c.Editions = instanceIDs(j.Input.Rows), j.Input.Dataset.Editions
	return c
}

// openEvaluation opens the evaluation of --eval, unless there is no container engine or no row can be
// graded.
func (j *Job) openEvaluation(ctx context.Context, notes, display io.Writer) error {
	switch {
	case !j.Config.Run.Eval, len(j.ungradable) == len(j.Input.Rows):
		return nil
	case !j.sandboxes.HasImages():
		if !envopen.IsHostClass(j.Config.Environment.Class) { // otherwise checkGradable has printed it
			j.printNoVerdicts(notes, j.sandboxes.Class)
		}
		return nil
	}
	sandboxes, err := eval.NewSandboxes(ctx, j.sandboxes, j.Config, j.Dir)
	if err != nil {
		return usage.Wrap(err)
	}
	c := j.evalConfig()
	c.Folder, c.Log, c.Sandboxes = j.folder, j.log.Load(), sandboxes
	if c.SigningKey, err = eval.EnsureKey(ctx); err == nil {
		j.evaluator, err = evaluate.Open(c)
	}
	if err != nil {
		return usage.Wrap(err)
	}
	j.batch.Evaluate, j.batch.EvaluationWorkers = j.evaluate, c.Workers
	j.batch.OnAttemptsEnd = func(pending int) {
		if pending > 0 {
			_, _ = fmt.Fprintf(display, "mini: the agent has finished; %s still to evaluate\n", text.Count(pending, "patch"))
		}
	}
	return nil
}

// rewardsTimeout limits the wait for rewards at the end of a run.
const rewardsTimeout = time.Minute

// openRewards opens the sender of rewards, if run.reward_url is set.
func (j *Job) openRewards() error {
	c := j.Config.Run
	if c.RewardURL == "" {
		return nil
	}
	body, err := rewards.ParseBody(c.RewardBody)
	if err != nil {
		return err
	}
	j.rewards, err = rewards.Open(rewards.Config{
		Folder: j.folder, URL: c.RewardURL, Body: body, IsOwn: eval.IsSignedByUser,
		IsEvaluated: func(id string) bool { return j.evaluator != nil && !j.ungradable[id] },
		Warn: func(id string, err error) {
			j.log.Load().Emit(runner.Event{Type: runner.Warning, Instance: id, Text: err.Error()})
		},
	})
	return err
}

// closeRewards waits for the rewards that are being sent.
func (j *Job) closeRewards(ctx context.Context) {
	if j.rewards == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rewardsTimeout)
	defer cancel()
	j.rewards.Close(ctx)
}

// checkRewards returns an error for settings of rewards that cannot be used.
func checkRewards(c configs.Run) error {
	if c.RewardURL == "" {
		if c.RewardBody != "" {
			return usage.Errorf("run.reward_body is for run.reward_url, which is not set")
		}
		return nil
	}
	if err := rewards.CheckURL(c.RewardURL); err != nil {
		return usage.Errorf("run.reward_url: %w", err)
	}
	_, err := rewards.ParseBody(c.RewardBody)
	return usage.Wrap(err)
}

// evaluate returns the work that evaluates a submission, or nil if its instance is ungradable. It is
// the runner.Batch.Evaluate of the batch.
func (j *Job) evaluate(in datasets.Instance, repetition int, p trajectories.Prediction) runner.Work {
	if j.ungradable[in.ID] {
		return nil
	}
	task := eval.NewTask(in, p)
	if j.Config.Run.Attempts > 1 {
		task.Repetition = repetition
	}
	w, err := j.evaluator.Job(task)
	if err != nil {
		j.log.Load().Emit(runner.Event{Type: runner.Warning, Instance: in.ID, Text: err.Error()})
		return nil
	}
	return w
}
