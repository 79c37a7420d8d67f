package bench

import (
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
)

// doneIDs returns the instances that have all their results.
func (j *Job) doneIDs() map[string]bool {
	done := map[string]bool{}
	for _, in := range j.Earlier.Instances {
		done[in.ID] = !j.Redo && in.Missing(j.Cfg.Run.Attempts) == 0
	}
	return done
}

// missingAttempts returns the number of results that the run has to produce.
func (j *Job) missingAttempts() int {
	k := j.Cfg.Run.Attempts
	n := k * len(j.Input.Rows)
	if j.Redo {
		return n
	}
	earlier := map[string]runner.Instance{}
	for _, in := range j.Earlier.Instances {
		earlier[in.ID] = in
	}
	for _, in := range j.Input.Rows {
		n -= k - earlier[in.ID].Missing(k)
	}
	return n
}

// remainingRows returns the rows to run.
func (j *Job) remainingRows() (rows []datasets.Instance) {
	done := j.doneIDs()
	for _, in := range j.Input.Rows {
		if !done[in.ID] {
			rows = append(rows, in)
		}
	}
	return rows
}
