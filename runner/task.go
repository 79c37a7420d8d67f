package runner

import "github.com/minibench/mini/datasets"

// MaxSamples bounds how many results an instance can have.
const MaxSamples = 10_000

// task is one result that a run is to have: a sample of an instance.
type task struct {
	datasets.Instance
	sample int  // from 1 on
	one    bool // nobody asked for more than one
	anew   bool // a new attempt is made, whatever there is
}

// tasks are those of a run, in order. The samples of an instance stand together:
// its image is pulled once.
func (b *Batch) tasks(instances []datasets.Instance) []task {
	n := max(1, b.Samples)
	all := make([]task, 0, n*len(instances))
	for _, in := range instances {
		for k := 1; k <= n; k++ {
			all = append(all, task{Instance: in, sample: k, one: n == 1})
		}
	}
	return all
}

// several is how many results each instance is to have, 0 where it is one.
func (b *Batch) several() int {
	if b.Samples <= 1 {
		return 0
	}
	return b.Samples
}

// event says whose it is.
func (t task) event(e Event) Event {
	e.Instance = t.ID
	if !t.one {
		e.Sample = t.sample
	}
	return e
}

// pending leaves out what has a result, unless that is to be done again.
func (b *Batch) pending(book *book, all []task) []task {
	var todo []task
	for _, t := range all {
		if b.Redo || !book.counts(t.ID, t.sample) {
			todo = append(todo, t)
		}
	}
	return todo
}

// instancesOf are the instances of tasks, in order, each once.
func instancesOf(tasks []task) []datasets.Instance {
	var all []datasets.Instance
	for _, t := range tasks {
		if n := len(all); n == 0 || all[n-1].ID != t.ID {
			all = append(all, t.Instance)
		}
	}
	return all
}
