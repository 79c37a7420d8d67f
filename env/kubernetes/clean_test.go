//go:build kubernetes

package kubernetes

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// objects returns the names of the pods, policies and ConfigMaps of an owner.
func objects(t *testing.T, fake *kubetest.Cluster, owner string) []string {
	t.Helper()
	opts := metav1.ListOptions{LabelSelector: labelOwner + "=" + owner}
	pods, err := fake.Client.CoreV1().Pods(fake.Namespace).List(t.Context(), opts)
	require.NoError(t, err)
	policies, err := fake.Client.NetworkingV1().NetworkPolicies(fake.Namespace).List(t.Context(), opts)
	require.NoError(t, err)
	maps, err := fake.Client.CoreV1().ConfigMaps(fake.Namespace).List(t.Context(), opts)
	require.NoError(t, err)
	var names []string
	for _, o := range pods.Items {
		names = append(names, "pod "+o.Name)
	}
	for _, o := range policies.Items {
		names = append(names, "policy "+o.Name)
	}
	for _, o := range maps.Items {
		names = append(names, "map "+o.Name)
	}
	return names
}

// TestClose: the end of a pod deletes it, and the end of the cluster everything.
func TestClose(t *testing.T) {
	t.Parallel()
	fake := kubetest.New(t)
	c := openFake(t, fake, nil)
	first, err := c.Start(t.Context(), Config{Image: dockertest.Image(t)})
	require.NoError(t, err)
	second, err := c.Start(t.Context(), Config{Image: dockertest.Image(t)})
	require.NoError(t, err)
	owner := c.current.name
	assert.NoError(t, first.Close(t.Context()))
	want := []string{"pod " + second.Name(), "policy " + owner, "map " + owner}
	assert.Equal(t, want, objects(t, fake, owner), "after the end of a pod")
	if err := c.Close(); err != nil { // with a pod that was not closed
		t.Error(err)
	}
	checkEmpty(t, fake)
	assert.NoError(t, second.Close(t.Context()))
	_, err = c.Start(t.Context(), Config{Image: "mini-base"})
	assert.Error(t, err, "a pod started after Close")
	checkEmpty(t, fake)
}

// TestClean: Sweep removes what belongs to dead processes, and Clean what its options
// say.
func TestClean(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	startPod(t, c, Config{Image: dockertest.Image(t)})
	mine := c.current.name
	dead := openFake(t, fake, nil)
	t.Cleanup(func() { // before the fake ends
		assert.NoError(t, dead.Close())
	})
	lost := startPod(t, dead, Config{Image: dockertest.Image(t)})
	theirs := dead.current.name
	if removed, err := c.Sweep(t.Context()); err != nil || len(removed) > 0 {
		t.Errorf("removed %v of living processes, %v", removed, err)
	}
	age(t, fake, theirs, maxSilence-time.Minute)
	if list, err := c.ListLeftovers(t.Context(), CleanOptions{}); err != nil || len(list) > 0 {
		t.Errorf("%v is not old enough, %v", list, err)
	}
	age(t, fake, theirs, maxSilence+time.Minute)
	list, err := c.ListLeftovers(t.Context(), CleanOptions{})
	if err != nil || len(list) != 1 || list[0].Name != theirs || list[0].Pods != 1 || !strings.Contains(list[0].String(), "with 1 pod, of process ") {
		t.Errorf("leftovers %v, %v", list, err)
	}
	assert.Equal(t, 3, len(objects(t, fake, theirs)), "the list has changed the cluster")
	removed, err := c.Sweep(t.Context())
	if err != nil || !slices.Equal(removed, list) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if got := objects(t, fake, theirs); len(got) > 0 {
		t.Errorf("%q are left of pod %s", got, lost.Name())
	}
	assert.Equal(t, 3, len(objects(t, fake, mine)), "of the living process")
}

// age makes the last heartbeat of an owner older.
func age(t *testing.T, fake *kubetest.Cluster, owner string, by time.Duration) {
	t.Helper()
	maps := fake.Client.CoreV1().ConfigMaps(fake.Namespace)
	m, err := maps.Get(t.Context(), owner, metav1.GetOptions{})
	require.NoError(t, err)
	m.Annotations[annotationBeat] = time.Now().Add(-by).UTC().Format(time.RFC3339)
	_, err = maps.Update(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
}
