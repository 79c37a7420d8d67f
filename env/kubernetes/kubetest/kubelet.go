//go:build kubernetes

package kubetest

import (
	"context"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is what runs a pod.
type pod struct {
	key    types.NamespacedName
	spec   *v1.Pod // as created
	cancel context.CancelFunc
	done   chan struct{} // closed when the containers are removed

	// Cluster.mu guards these.
	container string        // the id of the container that runs; empty before and after
	killed    bool          // by a fault
	atEnd     func(*v1.Pod) // changes the final status
}

func (p *pod) containerID(c *Cluster) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.container
}

// startPod starts the goroutine of a pod that has been created.
func (c *Cluster) startPod(spec *v1.Pod) {
	ctx, cancel := context.WithCancel(c.ctx)
	p := &pod{
		key:    types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name},
		spec:   spec,
		cancel: cancel,
		done:   make(chan struct{}),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[p.key] = p
	c.wg.Go(func() {
		defer close(p.done)
		defer cancel()
		c.runPod(ctx, p)
	})
}

// stopPod kills the container of a pod that has been deleted.
func (c *Cluster) stopPod(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pods[key]; p != nil {
		p.cancel()
		delete(c.pods, key)
	}
}

// update changes a pod in the clientset, unless it has been deleted. It holds the
// clientset's lock, so that no change of a client is lost.
func (c *Cluster) update(p *pod, change func(*v1.Pod)) {
	c.fake.Lock()
	defer c.fake.Unlock()
	obj, err := c.fake.Tracker().Get(podResource, p.key.Namespace, p.key.Name)
	if err != nil {
		return // deleted
	}
	current, ok := obj.(*v1.Pod)
	if !ok || current.UID != p.spec.UID {
		return // deleted, and another has the name
	}
	change(current)
	if err := c.fake.Tracker().Update(podResource, current, p.key.Namespace); err != nil {
		c.t.Errorf("update pod: %v", err)
	}
}

// runPod runs a pod until it ends or ctx is cancelled. It removes the containers.
//
// Requests to the engine do not get the cancellation of ctx: an engine may finish a
// cancelled request, and its container would remain.
func (c *Cluster) runPod(ctx context.Context, p *pod) {
	if !c.schedule(ctx, p) {
		return
	}
	c.update(p, setCreating)
	volumes, err := c.newVolumes(ctx, p)
	defer volumes.remove(ctx)
	if err != nil {
		c.wait(ctx, p, mainStatus, "ContainerCreating", err.Error()) // the kubelet waits for missing ConfigMaps
		return
	}
	for i := range p.spec.Spec.InitContainers {
		status := func(pod *v1.Pod) *v1.ContainerStatus { return &pod.Status.InitContainerStatuses[i] }
		end, ok := c.runContainer(ctx, p, &p.spec.Spec.InitContainers[i], status, volumes, nil)
		if !ok {
			return
		}
		if end.ExitCode != 0 {
			c.end(p, func(pod *v1.Pod) { setInitFailed(pod, i, end) })
			return
		}
		c.update(p, func(pod *v1.Pod) { setInitDone(pod, i, end) })
	}
	spec := &p.spec.Spec.Containers[0]
	end, ok := c.runContainer(ctx, p, spec, mainStatus, volumes, func(id, imageID string) {
		ip := c.nextIP()
		c.update(p, func(pod *v1.Pod) { setRunning(pod, id, imageID, ip) })
	})
	if ok {
		c.end(p, func(pod *v1.Pod) { setTerminated(pod, end) })
	}
}

// schedule waits until the pod may be scheduled and reports whether that happened
// before ctx was cancelled.
func (c *Cluster) schedule(ctx context.Context, p *pod) bool {
	for last := ""; ; {
		c.mu.Lock()
		pending := c.pending
		c.mu.Unlock()
		reason, message := "", ""
		if pending != nil {
			reason, message = pending(p.spec.DeepCopy())
		}
		if reason == "" {
			break
		}
		if reason+message != last {
			last = reason + message
			c.update(p, func(pod *v1.Pod) {
				setCondition(pod, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: reason, Message: message})
			})
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(10 * time.Millisecond): // the function cannot tell when its result changes
		}
	}
	c.update(p, func(pod *v1.Pod) {
		pod.Spec.NodeName = "node-1"
		setCondition(pod, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	})
	return ctx.Err() == nil
}

// statusOf returns a part of a pod: the status of one container.
type statusOf func(*v1.Pod) *v1.ContainerStatus

func mainStatus(pod *v1.Pod) *v1.ContainerStatus { return &pod.Status.ContainerStatuses[0] }

// wait sets the reason why a container waits, and blocks until the pod is deleted:
// nothing is tried again.
func (c *Cluster) wait(ctx context.Context, p *pod, status statusOf, reason, message string) {
	c.update(p, func(pod *v1.Pod) { setWaiting(status(pod), reason, message) })
	<-ctx.Done()
}

// end sets the final status of a pod.
func (c *Cluster) end(p *pod, change func(*v1.Pod)) {
	c.mu.Lock()
	atEnd := p.atEnd
	c.mu.Unlock()
	c.update(p, func(pod *v1.Pod) {
		change(pod)
		if atEnd != nil {
			atEnd(pod)
		}
	})
}

// runContainer runs a container to its end and removes it. started is called when it
// runs; a nil started means an init container. The result is false if there is no end:
// ctx was cancelled.
func (c *Cluster) runContainer(ctx context.Context, p *pod, spec *v1.Container, status statusOf, volumes *volumes, started func(id, imageID string)) (end v1.ContainerStateTerminated, ok bool) {
	image, err := c.docker.ImageInspect(context.WithoutCancel(ctx), spec.Image)
	switch {
	case cerrdefs.IsNotFound(err):
		message := fmt.Sprintf(`rpc error: code = NotFound desc = failed to pull and unpack image "%[1]s": failed to resolve reference "%[1]s": %[1]s: not found`, spec.Image)
		c.update(p, func(pod *v1.Pod) { setWaiting(status(pod), "ErrImagePull", message) })
		c.wait(ctx, p, status, "ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", spec.Image, message))
		return end, false
	case err != nil:
		c.wait(ctx, p, status, "ErrImagePull", err.Error())
		return end, false
	}
	mounts, err := volumes.of(spec)
	if err != nil {
		c.wait(ctx, p, status, "CreateContainerConfigError", err.Error())
		return end, false
	}
	config, host := c.containerConfig(p.spec, spec, mounts)
	created, err := c.docker.ContainerCreate(context.WithoutCancel(ctx), config, host, nil, nil, "")
	if err != nil {
		c.wait(ctx, p, status, "CreateContainerError", err.Error())
		return end, false
	}
	defer c.removeContainer(ctx, created.ID)
	if ctx.Err() != nil {
		return end, false
	}
	if err := c.docker.ContainerStart(context.WithoutCancel(ctx), created.ID, container.StartOptions{}); err != nil {
		// As containerd reports a command that cannot be executed.
		return v1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: now(), FinishedAt: now()}, true
	}
	if started != nil {
		c.setContainer(p, created.ID)
		defer c.setContainer(p, "")
		started(created.ID, image.ID)
	}
	ended, failed := c.docker.ContainerWait(ctx, created.ID, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case err := <-failed:
		if ctx.Err() == nil {
			c.t.Errorf("wait for container: %v", err)
		}
		return end, false
	}
	return c.terminated(ctx, p, spec, created.ID), true
}

func (c *Cluster) setContainer(p *pod, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.container = id
}

// oomDelay is how long after the end of a container the engine may learn that it was
// killed for memory. These are two events without an order.
const oomDelay = 5 * time.Second

// terminated returns how a container ended.
func (c *Cluster) terminated(ctx context.Context, p *pod, spec *v1.Container, id string) v1.ContainerStateTerminated {
	_, limited := spec.Resources.Limits[v1.ResourceMemory]
	end := v1.ContainerStateTerminated{Reason: "Error", StartedAt: now(), FinishedAt: now(), ContainerID: "docker://" + id}
	for deadline := time.Now().Add(oomDelay); ; {
		info, err := c.docker.ContainerInspect(context.WithoutCancel(ctx), id)
		if err != nil {
			c.t.Errorf("inspect container: %v", err)
			return end
		}
		end.ExitCode = int32(info.State.ExitCode)
		if started, err := time.Parse(time.RFC3339Nano, info.State.StartedAt); err == nil {
			end.StartedAt.Time = started
		}
		c.mu.Lock()
		killed := p.killed
		c.mu.Unlock()
		switch {
		case info.State.OOMKilled:
			end.Reason = "OOMKilled"
		case end.ExitCode == 0:
			end.Reason = "Completed"
		case end.ExitCode == 137 && limited && !killed && ctx.Err() == nil && time.Now().Before(deadline):
			time.Sleep(10 * time.Millisecond)
			continue
		}
		return end
	}
}

// removeContainer kills and removes a container.
func (c *Cluster) removeContainer(ctx context.Context, id string) {
	err := c.docker.ContainerRemove(context.WithoutCancel(ctx), id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !cerrdefs.IsNotFound(err) {
		c.t.Errorf("remove container: %v", err)
	}
}

// nextIP returns an address that no other pod has. It is not reachable: containers
// have no network unless Cluster.Network is set.
func (c *Cluster) nextIP() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ips++
	return fmt.Sprintf("10.244.%d.%d", c.ips/250, c.ips%250+1)
}
