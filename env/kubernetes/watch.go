//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watcher keeps the state of the process's pods up to date with one watch.
type watcher struct {
	mu      sync.Mutex
	changed sync.Cond // a pod was deleted; for those who wait for quota
	deleted int       // number of pods deleted so far
	states  map[string]*podState
}

// podState is what the watch knows about one pod.
type podState struct {
	mu      sync.Mutex
	pod     *corev1.Pod // nil before it was seen; the last state of a deleted one
	gone    bool        // deleted
	changed chan struct{}
}

// get returns the state, and a channel that is closed when it changes.
func (s *podState) get() (pod *corev1.Pod, gone bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pod, s.gone, s.changed
}

func (s *podState) set(pod *corev1.Pod, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.pod, s.gone = pod, gone
	close(s.changed)
	s.changed = make(chan struct{})
}

// add starts to follow a pod. It is called before the pod is created.
func (w *watcher) add(name string) *podState {
	s := &podState{changed: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.states == nil {
		w.states = map[string]*podState{}
	}
	w.states[name] = s
	return s
}

func (w *watcher) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.states, name)
}

func (w *watcher) update(obj any, gone bool) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	s := w.states[pod.Name]
	if gone {
		w.deleted++
		w.changed.Broadcast()
	}
	w.mu.Unlock()
	if s != nil {
		s.set(pod, gone)
	}
}

// deletions returns the number of pods deleted so far.
func (w *watcher) deletions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deleted
}

// waitForDeletion waits until more than seen pods were deleted, or ctx ends.
func (w *watcher) waitForDeletion(ctx context.Context, seen int) {
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.deleted == seen && ctx.Err() == nil {
		w.changed.Wait()
	}
}

// watchPods starts the watch of the owner's pods. It ends with the cluster.
func (c *Cluster) watchPods(ctx context.Context, o *owner) error {
	pods, selector := c.client.CoreV1().Pods(c.namespace), labelOwner+"="+o.name
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.LabelSelector = selector
			return pods.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.LabelSelector = selector
			return pods.Watch(ctx, opts)
		},
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(list, c.client),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { c.pods.update(obj, false) },
			UpdateFunc: func(_, obj any) { c.pods.update(obj, false) },
			DeleteFunc: func(obj any) { c.pods.update(obj, true) },
		},
		Transform: trimPod,
	})
	c.workers.Go(func() { controller.RunWithContext(c.ctx) })
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		if context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // a cause is compared
			return context.Cause(ctx)
		}
		return fmt.Errorf("watch pods in namespace %s: no answer in %s; %s", c.namespace, requestTimeout, hintRights)
	}
	return nil
}

// trimPod removes what is not needed from a pod of the watch, to save memory.
func trimPod(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields, pod.Annotations, pod.Spec = nil, nil, corev1.PodSpec{NodeName: pod.Spec.NodeName}
	}
	return obj, nil
}
