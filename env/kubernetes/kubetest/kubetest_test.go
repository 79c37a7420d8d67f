//go:build kubernetes

package kubetest_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

const timeout = 3 * time.Minute

// newPod returns a pod that runs a script in mini-base.
func newPod(t *testing.T, name, script string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyNever,
			Containers:    []v1.Container{{Name: "main", Image: dockertest.Image(t), Command: []string{"bash", "-c", script}}},
		},
	}
}

const sleep = "exec sleep 1000"

func create(t *testing.T, c *kubetest.Cluster, pod *v1.Pod) *v1.Pod {
	t.Helper()
	created, err := c.Client.CoreV1().Pods(c.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

// startPod creates a pod and waits until it runs.
func startPod(t *testing.T, c *kubetest.Cluster, pod *v1.Pod) *v1.Pod {
	t.Helper()
	create(t, c, pod)
	return waitFor(t, c, pod.Name, func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
}

// waitFor watches a pod until a condition holds.
func waitFor(t *testing.T, c *kubetest.Cluster, name string, condition func(*v1.Pod) bool) *v1.Pod {
	t.Helper()
	history := watchPod(t, c, name, condition)
	return history[len(history)-1]
}

// watchPod returns the states of a pod until a condition holds.
func watchPod(t *testing.T, c *kubetest.Cluster, name string, condition func(*v1.Pod) bool) []*v1.Pod {
	t.Helper()
	w, err := c.Client.CoreV1().Pods(c.Namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	defer w.Stop()
	var history []*v1.Pod
	deadline := time.After(timeout)
	for {
		select {
		case e := <-w.ResultChan():
			pod, ok := e.Object.(*v1.Pod)
			if !ok {
				t.Fatalf("event %v", e)
			}
			history = append(history, pod)
			if condition(pod) {
				return history
			}
		case <-deadline:
			t.Fatalf("pod %s has not the expected state after %s: %+v", name, timeout, history)
		}
	}
}

func ended(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded
}

// noContainers waits until the engine has no container of the cluster.
func noContainers(t *testing.T, c *kubetest.Cluster) {
	t.Helper()
	for deadline := time.Now().Add(timeout); c.Leftovers() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("containers are left")
		}
	}
}

func TestStatus(t *testing.T) {
	c := kubetest.New(t)
	created := create(t, c, newPod(t, "p", sleep))
	if created.UID == "" || created.Status.Phase != v1.PodPending || created.CreationTimestamp.IsZero() {
		t.Errorf("created: %+v", created)
	}
	running := waitFor(t, c, "p", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
	s := running.Status.ContainerStatuses[0]
	if !strings.HasPrefix(s.ContainerID, "docker://") || s.ImageID == "" || s.State.Running == nil || running.Status.PodIP == "" {
		t.Errorf("status: %+v", running.Status)
	}
	for _, want := range []v1.PodConditionType{v1.PodScheduled, v1.PodReady} {
		if condition(running, want).Status != v1.ConditionTrue {
			t.Errorf("condition %s: %+v", want, running.Status.Conditions)
		}
	}
	c.KillContainer("p")
	p := get(t, c, "p")
	if end := p.Status.ContainerStatuses[0].State.Terminated; p.Status.Phase != v1.PodFailed || end == nil || end.ExitCode != 137 || end.Reason != "Error" {
		t.Errorf("killed: %+v", p.Status)
	}
	noContainers(t, c)
	assert.Equal(t, 1, c.RequestCount()["create pods"], "requests to create pods")
}

func get(t *testing.T, c *kubetest.Cluster, name string) *v1.Pod {
	t.Helper()
	p, err := c.Client.CoreV1().Pods(c.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return p
}

func condition(p *v1.Pod, name v1.PodConditionType) v1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return v1.PodCondition{}
}

func TestEnd(t *testing.T) {
	tests := []struct {
		name   string
		script string
		memory string
		phase  v1.PodPhase
		reason string
		code   int32
	}{
		{name: "completed", script: "exit 0", phase: v1.PodSucceeded, reason: "Completed"},
		{name: "error", script: "exit 3", phase: v1.PodFailed, reason: "Error", code: 3},
		{name: "memory", script: "exec python3 -c 'x = b\"x\" * (1 << 30)'", memory: "32Mi", phase: v1.PodFailed, reason: "OOMKilled", code: 137},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := kubetest.New(t)
			pod := newPod(t, "p", tt.script)
			if tt.memory != "" {
				pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse(tt.memory)}
			}
			create(t, c, pod)
			p := waitFor(t, c, "p", ended)
			end := p.Status.ContainerStatuses[0].State.Terminated
			if p.Status.Phase != tt.phase || end.Reason != tt.reason || end.ExitCode != tt.code {
				t.Errorf("phase %s, %+v", p.Status.Phase, end)
			}
		})
	}
}

func TestImageMissing(t *testing.T) {
	c := kubetest.New(t)
	pod := newPod(t, "p", sleep)
	pod.Spec.Containers[0].Image = "mini-does-not-exist:1"
	create(t, c, pod)
	var reasons []string
	for _, p := range watchPod(t, c, "p", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting.Reason == "ImagePullBackOff"
	}) {
		for _, s := range p.Status.ContainerStatuses {
			reasons = append(reasons, s.State.Waiting.Reason+": "+s.State.Waiting.Message)
		}
	}
	all := strings.Join(reasons, "\n")
	for _, want := range []string{`Back-off pulling image "mini-does-not-exist:1"`, `failed to pull and unpack image "mini-does-not-exist:1"`, ": not found"} {
		assert.Contains(t, all, want)
	}
}

func TestQuota(t *testing.T) {
	c := kubetest.New(t)
	quota := &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec:       v1.ResourceQuotaSpec{Hard: v1.ResourceList{v1.ResourcePods: resource.MustParse("1")}},
	}
	_, err := c.Client.CoreV1().ResourceQuotas(c.Namespace).Create(t.Context(), quota, metav1.CreateOptions{})
	require.NoError(t, err)
	pods := c.Client.CoreV1().Pods(c.Namespace)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	_, err = pods.Create(t.Context(), newPod(t, "dry", sleep), dryRun)
	require.NoError(t, err)
	if _, err := pods.Get(t.Context(), "dry", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the dry run has created the pod: %v", err)
	}
	startPod(t, c, newPod(t, "one", sleep))
	for name, options := range map[string]metav1.CreateOptions{"two": {}, "dry": dryRun} {
		_, err := pods.Create(t.Context(), newPod(t, name, sleep), options)
		if want := "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	c.KillContainer("one") // pods that have ended do not count
	create(t, c, newPod(t, "two", sleep))
}

func TestDelete(t *testing.T) {
	tests := map[string]func(*testing.T, *kubetest.Cluster) error{
		"delete": func(t *testing.T, c *kubetest.Cluster) error {
			return c.Client.CoreV1().Pods(c.Namespace).Delete(t.Context(), "p", metav1.DeleteOptions{})
		},
		"collection": func(t *testing.T, c *kubetest.Cluster) error {
			return c.Client.CoreV1().Pods(c.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=p"})
		},
		"owner": func(t *testing.T, c *kubetest.Cluster) error {
			return c.Client.CoreV1().ConfigMaps(c.Namespace).Delete(t.Context(), "run", metav1.DeleteOptions{})
		},
		"disruption": func(_ *testing.T, c *kubetest.Cluster) error {
			c.Disrupt("p", "PreemptionByScheduler")
			return nil
		},
	}
	for name, remove := range tests {
		t.Run(name, func(t *testing.T) {
			c := kubetest.New(t)
			owner, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "run"}}, metav1.CreateOptions{})
			require.NoError(t, err)
			owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "run", UID: owner.UID}}
			policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny", OwnerReferences: owners}}
			_, err = c.Client.NetworkingV1().NetworkPolicies(c.Namespace).Create(t.Context(), policy, metav1.CreateOptions{})
			require.NoError(t, err)
			pod := newPod(t, "p", sleep)
			pod.OwnerReferences = owners
			startPod(t, c, pod)
			create(t, c, newPod(t, "other", sleep))
			if c.Leftovers() == 0 {
				t.Fatal("no container runs")
			}
			w, err := c.Client.CoreV1().Pods(c.Namespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=p"})
			require.NoError(t, err)
			defer w.Stop()
			require.NoError(t, remove(t, c))
			for e := range w.ResultChan() {
				if e.Type == "DELETED" {
					if last, ok := e.Object.(*v1.Pod); name == "disruption" && (!ok || condition(last, v1.DisruptionTarget).Reason != "PreemptionByScheduler") {
						t.Errorf("last state: %+v", e.Object)
					}
					break
				}
			}
			_, err = c.Client.NetworkingV1().NetworkPolicies(c.Namespace).Get(t.Context(), "deny", metav1.GetOptions{})
			assert.Equal(t, name == "owner", apierrors.IsNotFound(err), "policy of the owner: %v", err)
			get(t, c, "other")
			require.NoError(t, c.Client.CoreV1().Pods(c.Namespace).Delete(t.Context(), "other", metav1.DeleteOptions{}))
			noContainers(t, c)
		})
	}
}

func TestEvict(t *testing.T) {
	c := kubetest.New(t)
	for name, started := range map[string]bool{"running": true, "pending": false} {
		pod := newPod(t, name, sleep)
		if started {
			startPod(t, c, pod)
		} else {
			pod.Spec.Containers[0].Image = "mini-does-not-exist:1"
			create(t, c, pod)
		}
		const message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
		c.Evict(name, message)
		for _, p := range watchPod(t, c, name, ended) {
			if p.Status.Phase == v1.PodFailed && (p.Status.Reason != "Evicted" || p.Status.Message != message) {
				t.Errorf("%s: %+v", name, p.Status)
			}
		}
	}
}

func TestPending(t *testing.T) {
	c := kubetest.New(t)
	const message = "0/1 nodes are available: 1 Insufficient memory."
	c.SetPending(func(p *v1.Pod) (reason, m string) {
		if p.Name == "p" {
			return v1.PodReasonUnschedulable, message
		}
		return "", ""
	})
	startPod(t, c, newPod(t, "other", sleep))
	create(t, c, newPod(t, "p", sleep))
	p := waitFor(t, c, "p", func(p *v1.Pod) bool { return condition(p, v1.PodScheduled).Status == v1.ConditionFalse })
	if got := condition(p, v1.PodScheduled); got.Reason != v1.PodReasonUnschedulable || got.Message != message {
		t.Errorf("condition: %+v", got)
	}
	c.SetPending(nil)
	waitFor(t, c, "p", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
}

func TestDown(t *testing.T) {
	c := kubetest.New(t)
	startPod(t, c, newPod(t, "p", sleep))
	w, err := c.Client.CoreV1().Pods(c.Namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	c.SetDown(true)
	for range w.ResultChan() {
		continue // until it ends
	}
	if _, err := c.Client.CoreV1().Pods(c.Namespace).Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("get: %v", err)
	}
	c.SetDown(false)
	get(t, c, "p")
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The pings of a WebSocket end up to five seconds after it.
		goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"),
		// A SPDY connection reports for a second that it was closed before.
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}
