//go:build kubernetes

package kubetest

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetDown stops or restarts the API server: requests fail with status 503 and watches
// end. Exec streams stay, see CutStreams, and so do pods.
func (c *Cluster) SetDown(down bool) {
	c.mu.Lock()
	c.down = down
	c.mu.Unlock()
	if down {
		c.closeWatches()
	}
}

// CutStreams closes the connections of all exec streams. The commands go on; their
// stdin ends.
func (c *Cluster) CutStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close() // the peer may have closed it
	}
}

// SetPending keeps pods from being scheduled as long as f returns a reason, such as
// "Unschedulable" or "SchedulingGated", for them. f is called repeatedly, with pods as
// they were created. Pods that are scheduled do not change. A nil f schedules all pods.
func (c *Cluster) SetPending(f func(*v1.Pod) (reason, message string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = f
}

// Disrupt does what a drain, a preemption or the loss of a node does: it adds the
// condition DisruptionTarget with the reason, kills the container and deletes the pod.
func (c *Cluster) Disrupt(podName, reason string) {
	c.t.Helper()
	p := c.findPod(podName)
	if p == nil {
		return
	}
	c.update(p, func(pod *v1.Pod) {
		setCondition(pod, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: reason, Message: "the pod is disrupted by a test",
		})
	})
	c.kill(p)
	c.fake.Lock()
	defer c.fake.Unlock()
	if err := c.delete(podResource, p.key.Namespace, p.key.Name); err != nil {
		c.t.Errorf("disrupt pod: %v", err)
	}
}

// Evict does what the kubelet does with a pod that exceeds its own limits of storage:
// it kills the container and sets the phase Failed, the reason Evicted and the
// message. For a node under pressure, the kubelet also sets the condition
// DisruptionTarget with the reason TerminationByKubelet, which may be in conditions.
func (c *Cluster) Evict(podName, message string, conditions ...v1.PodCondition) {
	c.t.Helper()
	p := c.findPod(podName)
	if p == nil {
		return
	}
	evict := func(pod *v1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = v1.PodFailed, "Evicted", message
		for _, condition := range conditions {
			setCondition(pod, condition)
		}
	}
	c.mu.Lock()
	p.atEnd = evict
	c.mu.Unlock()
	c.kill(p)
	c.update(p, evict) // a pod that has not started ends without a status
}

// KillContainer kills the container of a running pod with SIGKILL and returns when the
// pod has failed.
func (c *Cluster) KillContainer(podName string) {
	c.t.Helper()
	p := c.findPod(podName)
	if p == nil {
		return
	}
	if p.containerID(c) == "" {
		c.t.Errorf("kill container: pod %s is not running", podName)
		return
	}
	c.kill(p)
}

func (c *Cluster) findPod(name string) *pod {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[types.NamespacedName{Namespace: c.Namespace, Name: name}]
	if p == nil {
		c.t.Errorf("pod %s does not exist", name)
	}
	return p
}

// kill kills the containers of a pod and returns when they are removed.
func (c *Cluster) kill(p *pod) {
	c.mu.Lock()
	p.killed = true
	id := p.container
	c.mu.Unlock()
	if id == "" {
		p.cancel()
	} else if err := c.docker.ContainerKill(context.WithoutCancel(c.ctx), id, "SIGKILL"); err != nil &&
		!cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) { // neither if it has ended
		c.t.Errorf("kill container: %v", err)
	}
	<-p.done
}
