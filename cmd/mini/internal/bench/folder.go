package bench

import (
	"errors"
	"os"

	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/datasets"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
)

// ReadEarlierRun reads the run that the folder contains already.
func (j *Job) ReadEarlierRun() (err error) {
	if err := runner.CheckFolder(j.Dir); err != nil {
		return err
	}
	j.EarlierRun, err = runs.Read(j.Dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, runs.ErrNotRunFolder) {
		j.EarlierRun, err = &runs.Run{}, nil
	}
	return err
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
		if j.Options.RedoExisting && selected[in.ID] {
			continue // new results take the place of the earlier ones
		}
		if selected[in.ID] && in.MissingResults(k) == 0 {
			left--
		}
		for _, r := range in.Repetitions {
			if !r.Class.IsResult() || r.Repetition > k {
				continue
			}
			a := in.Attempt(r.Attempt)
			if a != nil && a.Model != "" && a.Model != modelopen.Name(j.Config) {
				return usage.Errorf("%s has results of the model %.80s; a run cannot mix predictions of two models: pass another folder with -o, or that model with -m", j.Dir, a.Model)
			}
		}
	}
	return doctor.CheckOpenFiles(min(j.Config.Run.Workers, left))
}

// checkRepositories returns an error if rows have a repository but the sandboxes use no images,
// which contain the repositories: attempts would begin in an empty folder. It also checks the
// settings of sandboxes without images. It checks nothing for the demo and with --empty-folder.
func (j *Job) checkRepositories() error {
	if !envopen.IsHostClass(j.Config.Environment.Class) || j.Options.isDemo() || j.Options.emptyFolder {
		return nil
	}
	if err := envopen.CheckSettings(j.Config, j.Config.Environment.Class); err != nil {
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
	return j.Options.isDemo() && envopen.IsDefaultClass(j.Config) && os.Getenv("DOCKER_HOST") == ""
}

// doneIDs returns the ids of the instances that have all their results. With --redo-existing, no
// instance is done.
func (j *Job) doneIDs() map[string]bool {
	done := map[string]bool{}
	for _, in := range j.EarlierRun.Instances {
		done[in.ID] = !j.Options.RedoExisting && in.MissingResults(j.Config.Run.Attempts) == 0
	}
	return done
}

// missingAttempts returns the number of attempts that still need a result: all of them with
// --redo-existing.
func (j *Job) missingAttempts() int {
	k := j.Config.Run.Attempts
	n := k * len(j.Input.Rows)
	if j.Options.RedoExisting {
		return n
	}
	earlier := map[string]runs.Instance{}
	for _, in := range j.EarlierRun.Instances {
		earlier[in.ID] = in
	}
	for _, in := range j.Input.Rows {
		n -= k - earlier[in.ID].MissingResults(k)
	}
	return n
}

// remainingRows returns the rows of the instances that are not done.
func (j *Job) remainingRows() (rows []datasets.Instance) {
	done := j.doneIDs()
	for _, in := range j.Input.Rows {
		if !done[in.ID] {
			rows = append(rows, in)
		}
	}
	return rows
}
