package runner

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// resultStore holds the attempt numbers of all instances in a run's folder and the
// outcomes of the selected attempts. It writes results.json and preds.json.
type resultStore struct {
	folder    *Folder
	modelName string

	mu         sync.Mutex
	instances  map[string]*instanceResults
	cost       model.Cost // of the attempts recorded since opening
	unpriced   int64      // calls of unknown cost in these attempts
	written    time.Time  // last write of the derived files
	readErrors []error    // of journals that are ignored and trajectories not written
}

// instanceResults holds the results of one instance.
type instanceResults struct {
	lastAttempt    int         // highest attempt number
	newestAttempts map[int]int // repetition -> newest attempt, ended or not
	repetitions    map[int]*repetition
}

// repetition is one of the requested results of an instance; retries after a
// failure belong to the same repetition. Files with room for one result per instance
// have the first repetition, which was chosen before any verdict was known.
type repetition struct {
	attempt int // the attempt that counts
	model   string
	outcome trajectories.Outcome
}

// flushInterval is the minimum time between two writes of results.json and
// preds.json while attempts are recorded. Each write replaces the whole files.
const flushInterval = time.Second

// openResultStore reads the outcomes of the attempts in the folder. It ignores
// attempts without an outcome, whose process was killed.
func (f *Folder) openResultStore(modelName string) (*resultStore, error) {
	rs := &resultStore{folder: f, modelName: modelName, instances: map[string]*instanceResults{}}
	ids, err := f.instanceIDs()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		numbers, err := f.attempts(id)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			if err := rs.load(id, n); err != nil {
				return nil, err
			}
		}
	}
	rs.refreshTrajectories()
	return rs, rs.flush()
}

// load adds one attempt from its journal. It ignores a journal without a header:
// its process was killed while creating it.
func (rs *resultStore) load(id string, n int) error {
	out, ok, err := lastOutcome(rs.folder.Journal(id, n))
	if err != nil {
		return fmt.Errorf("read %s: %w", attemptName(id, n), err)
	}
	ir := rs.instance(id)
	ir.lastAttempt = max(ir.lastAttempt, n)
	h := headerOf(rs.folder.Journal(id, n))
	if h.Format == "" {
		if ok {
			rs.readErrors = append(rs.readErrors, fmt.Errorf("%s is ignored: its journal has no header", attemptName(id, n)))
		}
		return nil
	}
	rep := repetitionOf(h)
	ir.newestAttempts[rep] = n
	if ok && ir.add(rep, n, out) {
		ir.repetitions[rep].model = h.ModelName
	}
	return nil
}

// refreshTrajectories writes trajectories that are missing or older than their
// journal. This happens if the process was killed after it wrote the journal.
func (rs *resultStore) refreshTrajectories() {
	for id, ir := range rs.instances {
		selected := ir.repetitions[1]
		if selected == nil {
			continue
		}
		journal, err := os.Lstat(rs.folder.Journal(id, selected.attempt))
		if err != nil {
			continue
		}
		trajectory, err := os.Lstat(rs.folder.trajectoryPath(id))
		if err == nil && !trajectory.ModTime().Before(journal.ModTime()) {
			continue
		}
		if err := rs.writeTrajectory(id, selected.attempt); err != nil {
			rs.readErrors = append(rs.readErrors, fmt.Errorf("%s: %w", attemptName(id, selected.attempt), err))
		}
	}
}

// headerOf returns the header of a journal, or an empty one if it cannot be read.
func headerOf(journal string) trajectories.Header {
	h, err := trajectories.ReadHeader(journal)
	if err != nil {
		return trajectories.Header{}
	}
	return h
}

// repetitionOf returns the repetition in a journal's header. It is 1 in headers of
// older versions, which lack the repetition, and at most MaxRepetitions.
func repetitionOf(h trajectories.Header) int { return min(max(1, h.Repetition), MaxRepetitions) }

func (rs *resultStore) instance(id string) *instanceResults {
	ir := rs.instances[id]
	if ir == nil {
		ir = &instanceResults{newestAttempts: map[int]int{}, repetitions: map[int]*repetition{}}
		rs.instances[id] = ir
	}
	return ir
}

// add records an ended attempt and reports whether it becomes the selected attempt
// of its repetition. The selected attempt is the newest one whose class counts as a
// result or, if there is none, the newest.
func (ir *instanceResults) add(rep, n int, out trajectories.Outcome) bool {
	ir.lastAttempt = max(ir.lastAttempt, n)
	selected := ir.repetitions[rep]
	if selected != nil && !out.Class.IsResult() && selected.outcome.Class.IsResult() {
		return false
	}
	ir.repetitions[rep] = &repetition{attempt: n, outcome: out}
	return true
}

// nextAttempt reserves the number of a new attempt of a task.
func (rs *resultStore) nextAttempt(t task) int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instance(t.ID)
	ir.lastAttempt++
	ir.newestAttempts[t.repetition] = ir.lastAttempt
	return ir.lastAttempt
}

// nextRepetition reserves the next attempt number n and a new repetition for it.
// rep equals n, unless a repetition with this or a higher number exists.
func (rs *resultStore) nextRepetition(id string) (n, rep int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instance(id)
	ir.lastAttempt++
	rep = ir.lastAttempt
	for used := range ir.newestAttempts {
		rep = max(rep, used+1)
	}
	return ir.lastAttempt, rep
}

// hasResult reports whether a repetition of an instance has a result.
func (rs *resultStore) hasResult(id string, rep int) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instances[id]
	return ir != nil && ir.repetitions[rep] != nil && ir.repetitions[rep].outcome.Class.IsResult()
}

// record adds the outcome of an attempt. It writes the trajectory if the attempt is
// the selected one of the first repetition, and the other derived files if
// flushInterval has passed since the last write.
func (rs *resultStore) record(id string, rep, n int, out trajectories.Outcome) error {
	rs.mu.Lock()
	ir := rs.instance(id)
	selected := ir.add(rep, n, out)
	if selected {
		ir.repetitions[rep].model = rs.modelName
	}
	rs.cost, rs.unpriced = rs.cost+out.Cost, rs.unpriced+out.Usage.Unpriced
	due := time.Since(rs.written) >= flushInterval
	rs.mu.Unlock()

	if selected && rep == 1 {
		if err := rs.writeTrajectory(id, n); err != nil {
			return err
		}
	}
	if due {
		return rs.flush()
	}
	return nil
}

func (rs *resultStore) writeTrajectory(id string, n int) error {
	err := rs.folder.root.Replace(rs.folder.trajectoryPath(id), func(w io.Writer) error {
		return trajectories.WriteTraj(w, rs.folder.Journal(id, n))
	})
	if err != nil {
		return fmt.Errorf("write trajectory: %w", err)
	}
	return nil
}

// summary counts the outcomes of the requested repetitions by class.
func (rs *resultStore) summary(instances []datasets.Instance, repetitions int) Summary {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	summary := Summary{
		Instances: len(instances), Classes: map[trajectories.Class]int{},
		Cost: rs.cost.IfKnown(model.Usage{Unpriced: rs.unpriced}), Unpriced: rs.unpriced,
	}
	if repetitions > 1 {
		summary.Repetitions = repetitions
	}
	for _, in := range instances {
		for rep := 1; rep <= repetitions; rep++ {
			if ir := rs.instances[in.ID]; ir != nil && ir.repetitions[rep] != nil {
				summary.Classes[ir.repetitions[rep].outcome.Class]++
			} else {
				summary.Unstarted++
			}
		}
	}
	return summary
}
