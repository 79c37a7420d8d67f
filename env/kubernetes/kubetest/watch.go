//go:build kubernetes

package kubetest

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// A watch of the fake clientset panics when more events than this wait to be read, as
// they do on a busy machine. The default is 100.
func init() { watch.DefaultChanSize = 10_000 }

// watch handles a watch request. Unlike the watches of the fake clientset, this one
// follows selectors.
func (c *Cluster) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	if !c.admit(action.GetVerb(), action.GetResource().Resource, action.GetSubresource()) {
		return true, nil, errDown
	}
	a, ok := action.(clienttesting.WatchActionImpl)
	if !ok {
		return true, nil, fmt.Errorf("watch: unknown action %T", action)
	}
	source, err := c.fake.Tracker().Watch(a.GetResource(), a.GetNamespace(), a.ListOptions)
	if err != nil {
		return true, nil, err
	}
	w := &filteredWatch{source: source, result: make(chan watch.Event), done: make(chan struct{})}
	r := a.GetWatchRestrictions()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down { // since admit
		w.Stop()
	}
	c.watches = append(c.watches, w)
	c.wg.Go(func() {
		w.copy(func(e watch.Event) bool { return matches(e.Object, r.Labels, r.Fields) })
	})
	return true, w, nil
}

// closeWatches ends all watches, as a stopped API server does.
func (c *Cluster) closeWatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watches {
		w.Stop()
	}
	c.watches = nil
}

// filteredWatch passes some events of a watch on. Its goroutine ends with Stop even if
// an event is not received, which is not so with watch.Filter.
type filteredWatch struct {
	source watch.Interface
	result chan watch.Event
	done   chan struct{} // closed by Stop
	once   sync.Once
}

// ResultChan implements watch.Interface.
func (w *filteredWatch) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *filteredWatch) Stop() {
	w.once.Do(func() {
		close(w.done)
		w.source.Stop()
	})
}

func (w *filteredWatch) copy(keep func(watch.Event) bool) {
	defer close(w.result)
	for e := range w.source.ResultChan() {
		if !keep(e) {
			continue
		}
		select {
		case w.result <- e:
		case <-w.done:
			return
		}
	}
}
