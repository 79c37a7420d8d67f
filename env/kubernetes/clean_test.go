//go:build kubernetes

package kubernetes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
)

// objects returns the names of the pods, policies and ConfigMaps of an owner.
func objects(t *testing.T, fake *kubetest.Cluster, owner string) []string {
	t.Helper()
	opts := metav1.ListOptions{LabelSelector: labelOwner + "=" + owner}
	pods, err := fake.Client.CoreV1().Pods(fake.Namespace).List(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	policies, err := fake.Client.NetworkingV1().NetworkPolicies(fake.Namespace).List(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := fake.Client.CoreV1().ConfigMaps(fake.Namespace).List(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Start(t.Context(), Config{Image: dockertest.Image(t)})
	if err != nil {
		t.Fatal(err)
	}
	owner := c.current.name
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	want := []string{"pod " + second.Name(), "policy " + owner, "map " + owner}
	if got := objects(t, fake, owner); !slices.Equal(got, want) {
		t.Errorf("after the end of a pod there are %q, want %q", got, want)
	}
	if err := c.Close(); err != nil { // with a pod that was not closed
		t.Error(err)
	}
	checkEmpty(t, fake)
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Start(t.Context(), Config{Image: "mini-base"}); err == nil {
		t.Error("a pod started after Close")
	}
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
		if err := dead.Close(); err != nil {
			t.Error(err)
		}
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
	if got := objects(t, fake, theirs); len(got) != 3 {
		t.Errorf("the list has changed the cluster: %q", got)
	}
	removed, err := c.Sweep(t.Context())
	if err != nil || !slices.Equal(removed, list) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if got := objects(t, fake, theirs); len(got) > 0 {
		t.Errorf("%q are left of pod %s", got, lost.Name())
	}
	if got := objects(t, fake, mine); len(got) != 3 {
		t.Errorf("of the living process there are %q", got)
	}
	helpers, err := fake.Client.CoreV1().ConfigMaps(fake.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelHelper})
	if err != nil || len(helpers.Items) < 2 {
		t.Fatalf("%d ConfigMaps with helpers, %v", len(helpers.Items), err)
	}
	removed, err = c.Clean(t.Context(), CleanOptions{IncludeHelpers: true, IncludeAlive: true})
	if err != nil || len(removed) != 1+len(helpers.Items) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if got := objects(t, fake, mine); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
}

// age makes the last heartbeat of an owner older.
func age(t *testing.T, fake *kubetest.Cluster, owner string, by time.Duration) {
	t.Helper()
	maps := fake.Client.CoreV1().ConfigMaps(fake.Namespace)
	m, err := maps.Get(t.Context(), owner, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Annotations[annotationBeat] = time.Now().Add(-by).UTC().Format(time.RFC3339)
	if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestCleanForeign: ConfigMaps of others are not touched.
func TestCleanForeign(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	maps := fake.Client.CoreV1().ConfigMaps(fake.Namespace)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mini-theirs", Labels: map[string]string{labelManaged: managedBy}}}
	if _, err := maps.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	removed, err := c.Clean(t.Context(), CleanOptions{IncludeHelpers: true, IncludeAlive: true})
	if err != nil || len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if err := maps.Delete(context.WithoutCancel(t.Context()), foreign.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
