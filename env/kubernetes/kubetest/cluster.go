//go:build kubernetes

// Package kubetest gives tests a cluster without Kubernetes: the objects are in
// client-go's fake clientset, and the pods are containers of the local Docker engine.
//
// A Cluster does what the API server, the scheduler, the kubelet and the garbage
// collector do for a namespace with plain pods, as far as package kubernetes depends
// on it. It has faults on request: an unreachable API server, cut streams, pods that
// stay unschedulable, evictions.
//
// These differ from a real cluster: a pod is removed at once when it is deleted, the
// fake clientset ignores resource versions and field selectors of lists, a write to a
// pod may change its status, NetworkPolicies have no effect (containers have no
// network unless Cluster.Network is set), and probes, restarts, containers beside the
// first and the fields of a pod that are not named in this package are ignored.
//
// Containers and volumes have the label mini.kubetest; its value begins with the name of
// the test. They remain only if the test process is killed.
package kubetest

import (
	"context"
	"maps"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/docker/docker/client"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/minibench/mini/env/docker/dockertest"
)

// Cluster is a cluster of one namespace and one node. Its methods may be called
// concurrently.
type Cluster struct {
	Client    kubernetes.Interface // the fake clientset
	REST      *rest.Config         // of the server for pods/exec, which serves nothing else
	Namespace string               // "default"

	// Network is the Docker network mode of pods that are created later. New sets
	// "none".
	Network string

	t      testing.TB
	host   string // of REST, as New sets it
	fake   *fake.Clientset
	docker *client.Client
	dir    string             // the files of ConfigMap volumes
	ctx    context.Context    // ends all pods
	cancel context.CancelFunc // cancels ctx
	wg     sync.WaitGroup     // all goroutines

	// mu may be acquired while the lock of the clientset is held, not the reverse.
	mu       sync.Mutex
	pods     map[types.NamespacedName]*pod
	ips      int                   // pods that have an address
	conns    map[net.Conn]struct{} // of requests for pods/exec
	watches  []watch.Interface
	pending  func(*v1.Pod) (reason, message string)
	down     bool
	requests map[string]int
}

// New starts a cluster, which ends with the test. It skips the test if no container
// engine answers.
func New(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{
		Namespace: "default",
		Network:   "none",
		t:         t,
		fake:      fake.NewSimpleClientset(), // field management costs time and is not needed
		docker:    dockertest.Client(t),
		dir:       t.TempDir(),
		pods:      map[types.NamespacedName]*pod{},
		conns:     map[net.Conn]struct{}{},
		requests:  map[string]int{},
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(t.Context()))
	c.Client = c.fake
	c.fake.PrependReactor("*", "*", c.react)
	c.fake.PrependWatchReactor("*", c.watch)
	server := httptest.NewUnstartedServer(c.execHandler())
	server.Config.ConnContext = withConn
	server.Start()
	c.host = server.URL
	c.REST = &rest.Config{Host: server.URL, QPS: -1}
	t.Cleanup(func() {
		server.Close() // waits for the requests that are not streams yet
		c.CutStreams()
		c.closeWatches()
		c.cancel()
		c.wg.Wait()
	})
	return c
}

// RequestCount returns the number of requests by verb and resource, such as "create
// pods" or "get pods/exec". A request counts even if it failed.
func (c *Cluster) RequestCount() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}

// admit counts a request and reports whether the API server answers.
func (c *Cluster) admit(verb, resource, subresource string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := verb + " " + resource
	if subresource != "" {
		key += "/" + subresource
	}
	c.requests[key]++
	return !c.down
}
