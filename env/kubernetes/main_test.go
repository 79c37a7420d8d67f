//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// client-go keeps its connections to a real API server in a cache of the process.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		// A SPDY connection reports for a second that it was closed before.
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

// waitLimit limits the wait for what should happen soon.
const waitLimit = 2 * time.Minute

// newFake returns a Cluster that uses a fake one. After the test, it checks that nothing
// is left there but the helper's ConfigMaps.
func newFake(t *testing.T, change func(*Settings)) (*Cluster, *kubetest.Cluster) {
	t.Helper()
	fake := kubetest.New(t)
	c := openFake(t, fake, change)
	closeCluster(t, c, fake)
	return c, fake
}

// closeCluster closes a cluster after the test and checks that nothing is left.
func closeCluster(t *testing.T, c *Cluster, fake *kubetest.Cluster) {
	t.Cleanup(func() { checkEmpty(t, fake) })
	t.Cleanup(func() { // before the check
		assert.NoError(t, c.Close())
	})
}

// openFake returns a Cluster that the caller closes.
func openFake(t *testing.T, fake *kubetest.Cluster, change func(*Settings)) *Cluster {
	t.Helper()
	s := Settings{HelperDir: dockertest.HelperDir(t), NodeSelector: map[string]string{labelArch: runtime.GOARCH}, NetworkRequired: true}
	if change != nil {
		change(&s)
	}
	c, err := newCluster(s, fake.Client, fake.REST, fake.Namespace)
	require.NoError(t, err)
	return c
}

// checkEmpty checks that a fake cluster has no objects but helpers, and no containers.
func checkEmpty(t *testing.T, fake *kubetest.Cluster) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	pods, err := fake.Client.CoreV1().Pods(fake.Namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		t.Errorf("pod %s is left", p.Name)
	}
	policies, err := fake.Client.NetworkingV1().NetworkPolicies(fake.Namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range policies.Items {
		t.Errorf("NetworkPolicy %s is left", p.Name)
	}
	maps, err := fake.Client.CoreV1().ConfigMaps(fake.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "!" + labelHelper})
	require.NoError(t, err)
	for _, m := range maps.Items {
		t.Errorf("ConfigMap %s is left", m.Name)
	}
	eventually(t, "all containers are removed", func() bool { return fake.Leftovers() == 0 })
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s it is not so that %s", waitLimit, what)
		}
	}
}

// startPod starts a pod and closes it after the test.
func startPod(t *testing.T, c *Cluster, cfg Config) *Pod {
	t.Helper()
	p, err := c.Start(t.Context(), cfg)
	require.NoError(t, err)
	closeAfter(t, p)
	return p
}

func closeAfter(t *testing.T, p *Pod) {
	t.Cleanup(func() { assert.NoError(t, p.Close(context.WithoutCancel(t.Context()))) })
}

// run runs a script, which must succeed, and returns its output.
func run(t *testing.T, p *Pod, script string) string {
	t.Helper()
	res, err := p.Execute(t.Context(), env.Command{Script: script, Timeout: waitLimit})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%.80q: exit code %d, output %.500q, %v", script, res.ExitCode, res.Output, err)
	}
	return string(res.Output)
}

// checkStatus checks that err is an *env.Error with a status, and that its text or hint
// contains texts.
func checkStatus(t *testing.T, err error, want env.Status, texts ...string) {
	t.Helper()
	e, ok := errors.AsType[*env.Error](err)
	if !ok || e.Status != want {
		t.Fatalf("error %v, want %s", err, want)
	}
	checkTexts(t, e.Error()+" ("+e.Hint+")", texts)
}

// checkConfigError checks that err is an *env.ConfigError about a setting, and that its text
// contains texts.
func checkConfigError(t *testing.T, err error, key string, texts ...string) {
	t.Helper()
	list := env.ConfigErrors(err)
	if len(list) != 1 || list[0].Key != key {
		t.Fatalf("error %v, want an *env.ConfigError about %s", err, key)
	}
	checkTexts(t, list[0].Text, texts)
}

func checkTexts(t *testing.T, message string, texts []string) {
	t.Helper()
	for _, text := range texts {
		assert.Contains(t, message, text)
	}
}

// changeStatus changes the status of a pod, as the kubelet or a controller does.
func changeStatus(t *testing.T, fake *kubetest.Cluster, name string, change func(*corev1.PodStatus)) {
	t.Helper()
	pods := fake.Client.CoreV1().Pods(fake.Namespace)
	p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	change(&p.Status)
	_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
}
