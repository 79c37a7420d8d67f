package bench

import (
	"context"
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
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/version"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/harborrun"
)

// hasTasks reports whether a dataset has tasks in Harbor's form.
func (o *Options) hasTasks() bool { return slices.ContainsFunc(o.Subsets, datasetopen.IsTasks) }

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
func (a *activeJob) images() *harborrun.Images {
	return &harborrun.Images{
		Engine: a.sandboxes.Engine, Bases: a.Config.Environment.BaseImages,
		Root: a.folder.Root(), Dir: filepath.Join(a.folder.Dir(), datasets.BuildsDir),
	}
}

// installAgent makes containers start from images in which the agent was installed, if its
// definition says how.
func (a *activeJob) installAgent() error {
	other, ok := a.Agent.(*external.Agent)
	if !ok || other.Definition().Install == "" {
		return nil
	}
	if a.sandboxes.UsesCluster() {
		return usage.Errorf("the agent %s is installed in images that are built here, which a cluster cannot pull; "+
			"use images that have it, and a definition without install", other.Definition().Name)
	}
	def := other.Definition()
	a.sandboxes.Install = (&harborrun.Installation{Images: a.images(), Script: def.Install, Network: def.InstallNetwork}).Container
	return nil
}

// runTasks makes the batch run tasks in Harbor's form.
func (a *activeJob) runTasks(ctx context.Context, log *runner.EventLog) error {
	base, err := envopen.ContainerConfig(a.Config, a.Dir)
	if err != nil {
		return err
	}
	key, err := eval.EnsureKey(ctx)
	if err != nil {
		return err
	}
	tasks := &harborrun.Tasks{Config: harborrun.Config{
		Agent: a.Agent, Base: base, KeepProcesses: a.Config.Environment.KeepProcesses, Start: func(ctx context.Context, c docker.Config) (env.Environment, error) {
			return a.sandboxes.StartContainer(ctx, c, 0)
		},
		Images: a.images(),
		Lookup: lookupTaskVariable(a.Config), Redact: envopen.Redact(a.Config), Folder: a.folder, Log: log, SigningKey: key,
		Repeated: a.Config.Run.Attempts > 1,
		RunID:    eval.DefaultRunID, Model: modelopen.Name(a.Config), MiniVersion: version.Version,
	}}
	a.sandboxes.ForTask, a.batch.NewAgent = tasks.Container, tasks.NewAgent
	return nil
}
