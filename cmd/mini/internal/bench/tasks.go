package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/cmd/mini/internal/eval"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner/harborrun"
)

// checkTasks returns an error that names the tasks that cannot run, and why. It also sets what
// task folders imply: their verdicts are part of the attempts, and no diff is taken.
func checkTasks(cfg *configs.Resolved, rows []datasets.Instance) error {
	if slices.ContainsFunc(rows, func(in datasets.Instance) bool { return in.TaskDir == "" }) {
		return usage.Errorf("--subset: tasks in Harbor's form and rows of other datasets need runs of their own")
	}
	if cfg.Environment.Class != "docker" {
		return usage.Errorf("tasks in Harbor's form need images that are built here, and run in containers of Docker; leave --environment-class out")
	}
	if cfg.Run.ResumeAttempts {
		return usage.Errorf("--resume-attempts: attempts at Harbor tasks begin again, because their containers end with them; leave it out")
	}
	if cfg.Environment.Image != "" {
		return usage.Errorf("environment.image: Harbor tasks name their images; leave it out, or replace base images with environment.base_images")
	}
	var problems []string
	missing := map[string][]string{}
	for _, in := range rows {
		err := harbor.Problem(in)
		var task *harbor.Task
		if err == nil {
			task, err = harbor.Read(in.TaskDir)
		}
		if err == nil {
			err = checkTask(cfg, task)
		}
		if err != nil {
			problems = append(problems, text.Printable(fmt.Sprintf("%s: %v", in.ID, err)))
			continue
		}
		for _, name := range task.RequiredVariables() {
			if _, ok := lookupTaskVariable(cfg)(name); !ok {
				missing[name] = append(missing[name], in.ID)
			}
		}
	}
	if len(problems) > 0 {
		const shown = 10
		more := ""
		if n := len(problems) - shown; n > 0 {
			problems, more = problems[:shown], fmt.Sprintf("\n  and %d more", n)
		}
		return usage.Errorf("these tasks cannot run; select others with -i, --filter or --slice:\n  %s%s", strings.Join(problems, "\n  "), more)
	}
	for name, ids := range missing {
		return usage.Errorf("the task %s uses your environment variable %s; set it, and allow it with --task-env %[2]s", ids[0], name)
	}
	cfg.Run.Eval, cfg.Agent.SkipWorktree = false, true
	return nil
}

// checkTask returns why a task cannot run with these settings; nil if it can.
func checkTask(cfg *configs.Resolved, task *harbor.Task) error {
	isCheck := cfg.Agent.Class == configs.AgentOracle || cfg.Agent.Class == configs.AgentNop
	switch {
	case task.Trajectory != "" && !isCheck: // as in Harbor, which gives it to neither
		return fmt.Errorf("%s: mini starts no agent with the messages of a task", task.Trajectory)
	case task.MultiStep && cfg.Environment.PristineTests:
		return errors.New("environment.pristine_tests: a task with steps has no pristine container; leave it out")
	case task.ChangesNetwork() && !docker.CanChangeNetwork(cfg.Environment.Network):
		return fmt.Errorf("network_mode: the network of the container changes after the agent's work, which the network %.60s does not allow; use --network bridge", cfg.Environment.Network)
	}
	return nil
}

// lookupTaskVariable returns the function that looks up the variables of the host that tasks
// may use.
func lookupTaskVariable(cfg *configs.Resolved) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if !slices.Contains(cfg.Environment.TaskEnv, name) {
			return "", false
		}
		return os.LookupEnv(name)
	}
}

// images returns what builds images, with its logs in the run folder.
func (j *Job) images() *harborrun.Images {
	return &harborrun.Images{
		Engine: j.sandboxes.Engine, Bases: j.Config.Environment.BaseImages,
		Root: j.folder.Root, Dir: filepath.Join(j.folder.Dir, datasets.BuildsDir),
	}
}

// installAgent makes containers start from images in which the agent was installed, if its
// definition says how.
func (j *Job) installAgent() error {
	other, ok := j.Agent.(*external.Agent)
	if !ok || other.Definition().Install == "" {
		return nil
	}
	if j.sandboxes.UsesCluster() {
		return usage.Errorf("the agent %s is installed in images that are built here, which a cluster cannot pull; "+
			"use images that have it, and a definition without install", other.Definition().Name)
	}
	def := other.Definition()
	j.sandboxes.Install = (&harborrun.Installation{Images: j.images(), Script: def.Install, Network: def.InstallNetwork}).Container
	return nil
}

// runTasks makes the batch run tasks in Harbor's form.
func (j *Job) runTasks(ctx context.Context) error {
	base, err := envopen.ContainerConfig(j.Config, j.Dir)
	if err != nil {
		return err
	}
	key, err := eval.EnsureKey(ctx)
	if err != nil {
		return err
	}
	tasks := &harborrun.Tasks{Config: harborrun.Config{
		Agent: j.Agent, Base: base, KeepProcesses: j.Config.Environment.KeepProcesses, Pristine: j.Config.Environment.PristineTests, Start: func(ctx context.Context, c docker.Config) (env.Environment, error) {
			return j.sandboxes.StartContainer(ctx, c, 0)
		},
		Images: j.images(),
		Lookup: lookupTaskVariable(j.Config), Redact: j.redact, Folder: j.folder, Log: j.log.Load(), SigningKey: key,
		Repeated: j.Config.Run.Attempts > 1,
		RunID:    eval.DefaultRunID, Model: modelopen.Name(j.Config), MiniVersion: version.Version,
	}}
	j.sandboxes.ForTask, j.batch.NewAgent = tasks.Container, tasks.NewAgent
	return nil
}
