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

// resultStore holds the attempts of every instance in a run's folder and the
// outcomes of the selected ones. results.json and preds.json are written from it.
type resultStore struct {
	folder    *Folder
	modelName string

	mu         sync.Mutex
	instances  map[string]*instanceResults
	cost       model.Cost // of the attempts recorded since opening
	unpriced   int64      // calls of unknown cost among them
	written    time.Time
	readErrors []error // files that are not valid attempts
}

// instanceResults holds the results of one instance.
type instanceResults struct {
	lastAttempt    int         // highest attempt number
	newestAttempts map[int]int // repetition -> newest attempt, ended or not
	repetitions    map[int]*repetition
}

// repetition is one of the requested results of an instance, with any number of
// retries. Where there is room for only one, the first counts: it was made before
// any verdict was known.
type repetition struct {
	attempt int // the attempt that counts
	model   string
	outcome trajectories.Outcome
}

// flushInterval is the minimum time between two writes of the derived files, which
// are always written whole.
const flushInterval = time.Second

// openResultStore reads the outcomes of the attempts in the folder. A journal
// without an outcome is from a killed process; its attempt is kept but ignored.
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

// load reads one attempt from its journal. A journal without a header is from a
// process killed while creating it.
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
// journal, because the process was killed between the two.
func (rs *resultStore) refreshTrajectories() {
	for id, ir := range rs.instances {
		s := ir.repetitions[1]
		if s == nil {
			continue
		}
		journal, err := os.Lstat(rs.folder.Journal(id, s.attempt))
		if err != nil {
			continue
		}
		traj, err := os.Lstat(rs.folder.trajectoryPath(id))
		if err == nil && !traj.ModTime().Before(journal.ModTime()) {
			continue
		}
		if err := rs.writeTrajectory(id, s.attempt); err != nil {
			rs.readErrors = append(rs.readErrors, fmt.Errorf("%s: %w", attemptName(id, s.attempt), err))
		}
	}
}

// headerOf returns the header of a journal; empty if it cannot be read.
func headerOf(journal string) trajectories.Header {
	h, err := trajectories.ReadHeader(journal)
	if err != nil {
		return trajectories.Header{}
	}
	return h
}

// repetitionOf returns the repetition of a journal; 1 for old journals without it.
func repetitionOf(h trajectories.Header) int { return min(max(1, h.Repetition), MaxRepetitions) }

func (rs *resultStore) instance(id string) *instanceResults {
	ir := rs.instances[id]
	if ir == nil {
		ir = &instanceResults{newestAttempts: map[int]int{}, repetitions: map[int]*repetition{}}
		rs.instances[id] = ir
	}
	return ir
}

// add records an attempt of a repetition and reports whether it is selected: the
// newest attempt that counts or, if none does, the newest.
func (ir *instanceResults) add(rep, n int, out trajectories.Outcome) bool {
	ir.lastAttempt = max(ir.lastAttempt, n)
	s := ir.repetitions[rep]
	if s != nil && !out.Class.Counts() && s.outcome.Class.Counts() {
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

// nextRepetition reserves an attempt as a new repetition, with the same number
// unless a higher one is in use.
func (rs *resultStore) nextRepetition(id string) (n, rep int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instance(id)
	ir.lastAttempt++
	rep = ir.lastAttempt
	for taken := range ir.newestAttempts {
		rep = max(rep, taken+1)
	}
	return ir.lastAttempt, rep
}

// hasResult reports whether a repetition of an instance has a result.
func (rs *resultStore) hasResult(id string, rep int) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ir := rs.instances[id]
	return ir != nil && ir.repetitions[rep] != nil && ir.repetitions[rep].outcome.Class.Counts()
}

// record adds the outcome of an attempt and writes the derived files.
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

// summary counts the requested results.
func (rs *resultStore) summary(instances []datasets.Instance, repetitions int) Summary {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	s := Summary{
		Instances: len(instances), Classes: map[trajectories.Class]int{},
		Cost: rs.cost.IfKnown(model.Usage{Unpriced: rs.unpriced}), Unpriced: rs.unpriced,
	}
	if repetitions > 1 {
		s.Repetitions = repetitions
	}
	for _, in := range instances {
		for rep := 1; rep <= repetitions; rep++ {
			if ir := rs.instances[in.ID]; ir != nil && ir.repetitions[rep] != nil {
				s.Classes[ir.repetitions[rep].outcome.Class]++
			} else {
				s.Unstarted++
			}
		}
	}
	return s
}
