package bench

import (
	"errors"
	"os"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/setup"
)

// Job is a batch that is ready to run.
type Job struct {
	*Options
	Config *configs.Resolved
	Input  Input
	Agent  runner.Agent
	Models *modelopen.Models
	Dir    string
	// EarlierRun is the run that Dir already contains. It has no instances if Dir contains no run.
	EarlierRun *runner.Run
	// tools are the optional tools; capabilities describes them for the prompts.
	tools        *setup.Tools
	capabilities agent.Capabilities
	// Progress is the kind of progress display.
	Progress string
	// Branch makes mini replay continue recorded attempts; nil for mini bench.
	Branch *runner.Branch
	// obstacle is the error that would prevent the batch from starting. Only dry runs set it.
	obstacle error
	// evaluated is the result of --eval; nil before the end, or if nothing was evaluated.
	evaluated *evaluate.Summary
}

// isComplete reports whether every instance has a result and, with --eval, whether every
// submission has a verdict.
func (j *Job) isComplete(sum runner.Summary) bool {
	return sum.Complete() && (j.evaluated == nil || j.evaluated.IsComplete())
}

// ReadEarlierRun reads the run in dir. It returns an empty run if dir contains none.
func ReadEarlierRun(dir string) (*runner.Run, error) {
	if err := runner.CheckFolder(dir); err != nil {
		return nil, err
	}
	run, err := runner.ReadRun(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, runner.ErrNotRunFolder) {
		return &runner.Run{}, nil
	}
	return run, err
}

// agentFolderSHA256 returns the hash of the folder of another agent; "" if it has none.
func (j *Job) agentFolderSHA256() string {
	other, ok := j.Agent.(*external.Agent)
	if !ok {
		return ""
	}
	return other.FolderSHA256()
}

// CheckFolder returns an error if the folder keeps results of another model (repetitions beyond
// the configured number do not count) or of another content of the agent's folder, or if the limit of open files is too low for the workers.
func (j *Job) CheckFolder() error {
	if old := j.EarlierRun.Manifest.AgentFolderSHA256; old != "" && old != j.agentFolderSHA256() {
		return usage.Errorf("%s was made with another content of the agent's folder; a run cannot mix two agents: pass another folder with -o", j.Dir)
	}
	selected := map[string]bool{}
	for _, in := range j.Input.Rows {
		selected[in.ID] = true
	}
	left, k := len(selected), max(1, j.Config.Run.Attempts)
	for _, in := range j.EarlierRun.Instances {
		if j.RedoExisting && selected[in.ID] {
			continue // new results take the place of the earlier ones
		}
		if selected[in.ID] && in.MissingResults(k) == 0 {
			left--
		}
		for _, r := range in.Repetitions {
			if !r.Class.IsResult() || r.Repetition > k {
				continue
			}
			if model := in.Model(r.Attempt); model != "" && model != modelopen.Name(j.Config) {
				return usage.Errorf("%s has results of the model %.80s; a run cannot mix predictions of two models: pass another folder with -o, or that model with -m", j.Dir, model)
			}
		}
	}
	return doctor.CheckOpenFiles(min(j.Config.Run.Workers, left))
}

// checkRepositories returns an error if rows have a repository but the sandboxes use no images,
// which contain the repositories: attempts would begin in an empty folder. It also checks the
// settings of sandboxes without images. It checks nothing for the demo and with --empty-folder.
func (j *Job) checkRepositories() error {
	if !envopen.IsHostClass(j.Config.Environment.Class) || j.isDemo() || j.emptyFolder {
		return nil
	}
	if err := envopen.CheckHostSettings(j.Config, j.Config.Environment.Class); err != nil {
		return err
	}
	var lacking []string
	for _, in := range j.Input.Rows {
		if in.Repo != "" {
			lacking = append(lacking, in.ID)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return usage.Errorf("%d of %s have a repository that the %s environment does not have, the first is %s; use --environment-class docker, or --empty-folder to begin in an empty folder",
		len(lacking), text.Count(len(j.Input.Rows), "row"), j.Config.Environment.Class, lacking[0])
}

// canUseHost reports whether mini may run the commands on this machine if no container engine
// responds. It may do so only for the demo with the default environment class and without
// DOCKER_HOST.
func (j *Job) canUseHost() bool {
	return j.isDemo() && envopen.IsDefaultClass(j.Config) && os.Getenv("DOCKER_HOST") == ""
}

// newBatch assembles the batch from the configuration.
func (j *Job) newBatch(sandboxes *envopen.Sandboxes, folder *runner.Folder, log *runner.EventLog) (*runner.Batch, error) {
	newApprover, err := setup.NewApprovers(j.Config, sandboxes.Class)
	if err != nil {
		return nil, err
	}
	ignore, err := replay.ParseIgnore(j.Config.Replay.Ignore)
	if err != nil {
		return nil, err
	}
	header, err := setup.NewHeader(j.Config, sandboxes.Class)
	if err != nil {
		return nil, err
	}
	c := j.Config.Run
	return &runner.Batch{
		Folder: folder, Agent: j.Agent, Sandboxes: sandboxes, Models: j.Models, ModelName: modelopen.Name(j.Config), Header: header, Log: log,
		NewApprover: newApprover, NewTools: j.tools.ForAttempt,
		Workers: c.Workers, Repetitions: c.Attempts, MaxTries: c.MaxTries, MaxProviderFailures: c.MaxProviderFailures,
		MaxDisruptions: j.Config.Environment.Kubernetes.DisruptionRetries,
		Budget:         runner.Budget{Cost: c.TotalCostLimit, Calls: c.TotalCallLimit},
		Redo:           j.RedoExisting, ResumeAttempts: c.ResumeAttempts, Force: j.force, Ignore: ignore, Branch: j.Branch,
		Sync: c.Fsync, KeepSandbox: envopen.KeepRule(c.Keep),
	}, nil
}
