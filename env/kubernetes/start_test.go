//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// reasons collects what the starts of pods waited for.
type reasons struct {
	mu   sync.Mutex
	list []string
}

func (r *reasons) add(instance, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, instance+": "+reason)
}

func (r *reasons) have(prefix string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.list {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func setQuota(t *testing.T, fake *kubetest.Cluster, pods int) {
	t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI)}},
	}
	_, err := fake.Client.CoreV1().ResourceQuotas(fake.Namespace).Create(t.Context(), quota, metav1.CreateOptions{})
	require.NoError(t, err)
}

// startMany starts n sandboxes at once. Each runs a command and is closed when use
// returns.
func startMany(t *testing.T, c *Cluster, n int, use func()) {
	t.Helper()
	image := dockertest.Image(t)
	var workers sync.WaitGroup
	for i := range n {
		workers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			p, err := c.Start(ctx, Config{Image: image, Instance: fmt.Sprint("i", i)})
			if err != nil {
				t.Errorf("start: %v", err)
				return
			}
			use()
			res, err := p.Execute(ctx, env.Command{Script: "echo $((6 * 7))"})
			if err != nil || string(res.Output) != "42\n" {
				t.Errorf("output %q, %v", res.Output, err)
			}
			assert.NoError(t, p.Close(ctx))
		})
	}
	workers.Wait()
}

// TestQuota: pods beyond the quota start as soon as others end.
func TestQuota(t *testing.T) {
	t.Parallel()
	var waits reasons
	c, fake := newFake(t, func(s *Settings) { s.Waiting = waits.add })
	setQuota(t, fake, 3)
	// The first three hold their places until another one has been told to wait.
	startMany(t, c, 8, func() {
		eventually(t, "a pod waits for quota", func() bool {
			waits.mu.Lock()
			defer waits.mu.Unlock()
			return strings.Contains(strings.Join(waits.list, "\n"), ": waiting for quota: exceeded quota: small, requested: pods=1, used: pods=3")
		})
	})
}

// TestMaxPods: mini's own limit has the same effect.
func TestMaxPods(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, func(s *Settings) { s.MaxPods = 2 })
	var running, most atomic.Int32
	startMany(t, c, 5, func() {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			continue
		}
	})
	if most.Load() > 2 {
		t.Errorf("%d pods at once, max_pods 2", most.Load())
	}
}

func TestQuotaTooSmall(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	setQuota(t, fake, 0)
	_, err := c.Start(t.Context(), Config{Image: "mini-base"})
	checkConfigError(t, err, "memory", "exceeded quota: small, requested: pods=1")
}

// TestNeverFits: a request above the quota as a whole waits in vain.
func TestNeverFits(t *testing.T) {
	for text, want := range map[string]bool{
		"exceeded quota: q, requested: limits.memory=4Gi,pods=1, used: limits.memory=6Gi,pods=2, limited: limits.memory=8Gi,pods=9": false,
		"exceeded quota: q, requested: limits.memory=16Gi,pods=1, used: limits.memory=0,pods=0, limited: limits.memory=8Gi,pods=9":  true,
		"exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=0, limited: requests.cpu=1":                           true,
		"exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=900m, limited: requests.cpu=1":                         false,
		"exceeded quota: q, of another form": false,
	} {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(text))
		if !isQuota(err) || neverFits(err) != want {
			t.Errorf("%s: %v, want %v", text, neverFits(err), want)
		}
	}
}

const noNode = "0/3 nodes are available: 3 Insufficient memory."

// hold keeps the pods of an instance from being scheduled.
func hold(fake *kubetest.Cluster, instance, reason string) {
	fake.SetPending(func(p *corev1.Pod) (string, string) {
		if p.Annotations[annotationInstance] == instance {
			return reason, noNode
		}
		return "", ""
	})
}

func TestScheduleTimeout(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, func(s *Settings) { s.ScheduleTimeout = 3 * time.Second })
	hold(fake, "", corev1.PodReasonUnschedulable)
	_, err := c.Start(t.Context(), Config{Image: "mini-base"})
	checkStatus(t, err, env.StartFailed, noNode, "schedule_timeout")
}

// TestUnschedulable: a pod without a node does not block others, and starts when there
// is one.
func TestUnschedulable(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		corev1.PodReasonUnschedulable:   "big: waiting for a node: " + noNode,
		corev1.PodReasonSchedulingGated: "big: waiting for the queue",
	} {
		t.Run(reason, func(t *testing.T) {
			var waits reasons
			c, fake := newFake(t, func(s *Settings) { s.MaxStarts, s.Waiting = 1, waits.add })
			hold(fake, "big", reason)
			started := make(chan error, 1)
			go func() {
				p, err := c.Start(t.Context(), Config{Image: dockertest.Image(t), Instance: "big"})
				if err == nil {
					closeAfter(t, p)
				}
				started <- err
			}()
			eventually(t, want, func() bool { return waits.have(want) })
			startPod(t, c, Config{Image: dockertest.Image(t)})
			select {
			case err := <-started:
				t.Fatalf("the pod has started without a node: %v", err)
			default:
			}
			fake.SetPending(nil)
			assert.NoError(t, <-started)
		})
	}
}

// TestCancel: the end of the context ends a start in each of its stages, and removes the
// pod.
func TestCancel(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, prepare := range map[string]func(*testing.T, *kubetest.Cluster){
		"waiting for a node": func(_ *testing.T, f *kubetest.Cluster) { hold(f, "x", corev1.PodReasonUnschedulable) },
		"waiting for quota": func(t *testing.T, f *kubetest.Cluster) {
			setQuota(t, f, 1)
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "other"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "mini-does-not-exist:1"}}},
			}
			pods := f.Client.CoreV1().Pods(f.Namespace)
			_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
			t.Cleanup(func() {
				assert.NoError(t, pods.Delete(context.WithoutCancel(t.Context()), "other", metav1.DeleteOptions{}))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c, fake := newFake(t, func(s *Settings) {
				s.Waiting = func(_, reason string) {
					if strings.HasPrefix(reason, name) {
						cancel(cause)
					}
				}
			})
			prepare(t, fake)
			if _, err := c.Start(ctx, Config{Image: "mini-base", Instance: "x"}); !errors.Is(err, cause) {
				t.Errorf("error %v, want the cause", err)
			}
			list, err := fake.Client.CoreV1().Pods(fake.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelOwner})
			if err != nil || len(list.Items) > 0 {
				t.Errorf("%d pods are left, %v", len(list.Items), err)
			}
		})
	}
}

func TestImageMissing(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, nil)
	_, err := c.Start(t.Context(), Config{Image: "mini-does-not-exist:1"})
	checkStatus(t, err, env.ImageNotFound, "mini-does-not-exist:1: not found", "image_pull_secrets")
}

// TestWaitingContainers: what the kubelet says about a container that does not run yet.
// A status without want is waited for, until the timeout.
func TestWaitingContainers(t *testing.T) {
	t.Parallel()
	for reason, tt := range map[string]struct {
		message string
		want    env.Status
	}{
		"ErrImagePull":               {`failed to pull image "x": pull access denied, repository does not exist or may require authorization`, env.ImageNotFound},
		"ErrImageNeverPull":          {"Container image is not present with pull policy of Never", env.ImageNotFound},
		"InvalidImageName":           {`couldn't parse image name "X"`, env.ImageNotFound},
		"CreateContainerConfigError": {"container has runAsNonRoot and image will run as root", env.StartFailed},
		"ImagePullBackOff":           {"dial tcp 10.0.0.1:443: i/o timeout", ""},
		"ContainerCreating":          {"", ""},
	} {
		t.Run(reason, func(t *testing.T) {
			c, fake := newFake(t, func(s *Settings) { s.PullTimeout, s.StartTimeout = 200*time.Millisecond, 100*time.Millisecond })
			hold(fake, "", corev1.PodReasonUnschedulable) // so that this test decides
			ended := make(chan error, 1)
			go func() {
				_, err := c.Start(t.Context(), Config{Image: "x:1"})
				ended <- err
			}()
			name := ""
			eventually(t, "the pod is unschedulable", func() bool {
				list, err := fake.Client.CoreV1().Pods(fake.Namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil || len(list.Items) == 0 || condition(&list.Items[0], corev1.PodScheduled) == nil {
					return false
				}
				name = list.Items[0].Name
				return true
			})
			begin := time.Now()
			changeStatus(t, fake, name, func(s *corev1.PodStatus) {
				s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
				s.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: "x:1", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: tt.message},
				}}}
			})
			err := <-ended
			want := tt.want
			if want == "" {
				want = env.PullFailed // a container in creation usually waits for its image
			}
			checkStatus(t, err, want, tt.message)
			if waited := time.Since(begin); tt.want == "" && waited < 250*time.Millisecond {
				t.Errorf("gave up after %s: %v", waited, err)
			}
		})
	}
}

// TestRefused: what admission refuses is a configuration error with the message.
func TestRefused(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for _, tt := range []struct {
		err       error
		key, text string
	}{
		{apierrors.NewForbidden(pods, "p", errors.New(`violates PodSecurity "restricted:latest": runAsNonRoot != true`)), "kubernetes.security", "choose another profile"},
		{apierrors.NewForbidden(pods, "p", errors.New("maximum memory usage per Container is 1Gi, but limit is 4Gi")), "kubernetes", "maximum memory usage per Container is 1Gi"},
		{apierrors.NewBadRequest(`admission webhook "x.example" denied the request: no queue label`), "kubernetes", "no queue label"},
		{apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), "kubernetes", "is invalid"},
		{apierrors.NewForbidden(pods, "", errors.New(`User "u" cannot create resource "pods" in API group ""`)), "kubernetes", "mini kubernetes rbac"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			c, fake := newFake(t, nil)
			failRequests(t, fake, "create", "pods", func() error { return tt.err })
			_, err := c.Start(t.Context(), Config{Image: "mini-base"})
			checkConfigError(t, err, tt.key, tt.text)
		})
	}
}

// failRequests makes requests fail as long as fail returns an error.
func failRequests(t *testing.T, fake *kubetest.Cluster, verb, resource string, fail func() error) {
	t.Helper()
	client, ok := fake.Client.(*k8sfake.Clientset)
	if !ok {
		t.Fatalf("the client is a %T", fake.Client)
	}
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		err := fail()
		return err != nil, nil, err
	})
}

// TestTransient: refusals that pass are waited for.
func TestTransient(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"too many requests": apierrors.NewTooManyRequestsError("slow down"),
		"unauthorized":      apierrors.NewUnauthorized("the token has expired"),
		"internal error":    apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
		"no response":       errors.New("connection refused"),
		"new namespace":     apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(`error looking up service account default/default: serviceaccount "default" not found`)),
	} {
		t.Run(name, func(t *testing.T) {
			c, fake := newFake(t, nil)
			var left atomic.Int32
			left.Store(2)
			failRequests(t, fake, "create", "pods", func() error {
				if left.Add(-1) >= 0 {
					return failure
				}
				return nil
			})
			run(t, startPod(t, c, Config{Image: dockertest.Image(t)}), "true")
		})
	}
}

// TestLostResponse: a pod whose creation succeeded without a response is used.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	client := fake.Client.(*k8sfake.Clientset) //nolint:errcheck // see failRequests
	var lost atomic.Bool
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !lost.CompareAndSwap(false, true) {
			return false, nil, nil
		}
		for _, r := range client.ReactionChain[1:] {
			if handled, _, err := r.React(a); handled {
				return true, nil, errors.Join(err, errors.New("connection reset"))
			}
		}
		return true, nil, errors.New("no reactor")
	})
	run(t, startPod(t, c, Config{Image: dockertest.Image(t)}), "true")
	if list, err := client.CoreV1().Pods(fake.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("%d pods, %v", len(list.Items), err)
	}
}

// TestDownAtStart: starts wait for an unreachable API server.
func TestDownAtStart(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	for _, request := range []string{"get configmaps", "create pods"} { // of the first pod, and of others
		fake.SetDown(true)
		before := fake.RequestCount()[request]
		started := make(chan error, 1)
		go func() {
			p, err := c.Start(t.Context(), Config{Image: dockertest.Image(t)})
			if err == nil {
				closeAfter(t, p)
			}
			started <- err
		}()
		eventually(t, "requests fail", func() bool { return fake.RequestCount()[request] >= before+2 })
		fake.SetDown(false)
		assert.NoError(t, <-started)
	}
}

// TestDownInStart: the API server disappears while a pod waits for a node.
func TestDownInStart(t *testing.T) {
	t.Parallel()
	var waits reasons
	c, fake := newFake(t, func(s *Settings) { s.Waiting = waits.add })
	hold(fake, "x", corev1.PodReasonUnschedulable)
	started := make(chan error, 1)
	go func() {
		p, err := c.Start(t.Context(), Config{Image: dockertest.Image(t), Instance: "x"})
		if err == nil {
			closeAfter(t, p)
		}
		started <- err
	}()
	eventually(t, "the pod waits", func() bool { return waits.have("x: waiting for a node: " + noNode) })
	watches := fake.RequestCount()["watch pods"]
	fake.SetDown(true)
	fake.SetPending(nil)
	eventually(t, "the watch is tried again", func() bool {
		return fake.RequestCount()["watch pods"] > watches || fake.RequestCount()["list pods"] > 1
	})
	fake.SetDown(false)
	assert.NoError(t, <-started)
}

func TestConformance(t *testing.T) {
	image := dockertest.Image(t)
	c, _ := newFake(t, func(s *Settings) { s.MaxStarts = 4 }) // many at once take too long here
	envtest.Run(t, func(t *testing.T) env.Environment {
		return startPod(t, c, Config{Image: image})
	}, envtest.WithMemory(func(t *testing.T) env.Environment {
		return startPod(t, c, Config{Image: image, MemoryBytes: 96 << 20, ShmBytes: 16 << 20})
	}))
}
