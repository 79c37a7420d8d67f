package bench

import (
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
)

// doneIDs returns the ids of the instances that have all their results. With --redo-existing, no
// instance is done.
func (j *Job) doneIDs() map[string]bool {
	done := map[string]bool{}
	for _, in := range j.EarlierRun.Instances {
		done[in.ID] = !j.RedoExisting && in.MissingResults(j.Config.Run.Attempts) == 0
	}
	return done
}

// missingAttempts returns the number of attempts that still need a result: all of them with
// --redo-existing.
func (j *Job) missingAttempts() int {
	k := j.Config.Run.Attempts
	n := k * len(j.Input.Rows)
	if j.RedoExisting {
		return n
	}
	earlier := map[string]runner.Instance{}
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
