package runner

import "github.com/minibench/mini/datasets"

// MaxRepetitions is the maximum number of repetitions of an instance.
const MaxRepetitions = 10_000

// task is one repetition of an instance that a batch runs.
type task struct {
	datasets.Instance
	repetition int  // from 1
	single     bool // only one repetition is requested
	forceNew   bool // start a new attempt instead of resuming one
}

// tasks returns the tasks of a run in order. It places the repetitions of an instance
// next to each other, so that the instance's image is pulled once.
func (b *Batch) tasks(instances []datasets.Instance) []task {
	n := max(1, b.Repetitions)
	all := make([]task, 0, n*len(instances))
	for _, in := range instances {
		for rep := 1; rep <= n; rep++ {
			all = append(all, task{Instance: in, repetition: rep, single: n == 1})
		}
	}
	return all
}

// reportedRepetitions returns the number of repetitions, or 0 if there is only one.
func (b *Batch) reportedRepetitions() int {
	if b.Repetitions <= 1 {
		return 0
	}
	return b.Repetitions
}

// event returns e with the instance and repetition of the task.
func (t task) event(e Event) Event {
	e.Instance = t.ID
	if !t.single {
		e.Repetition = t.repetition
	}
	return e
}

// pending returns the tasks without a result, or all of them with Redo.
func (b *Batch) pending(store *resultStore, all []task) []task {
	var todo []task
	for _, t := range all {
		if b.Redo || !store.hasResult(t.ID, t.repetition) {
			todo = append(todo, t)
		}
	}
	return todo
}

// pendingInstances returns the instances that have a task to run in one of the batches.
func pendingInstances(batches []*Batch, instances []datasets.Instance) (pending []datasets.Instance) {
	isPending := map[string]bool{}
	for _, b := range batches {
		for _, t := range b.todo {
			isPending[t.ID] = true
		}
	}
	for _, in := range instances {
		if isPending[in.ID] {
			pending = append(pending, in)
		}
	}
	return pending
}
