//go:build kubernetes

package kubernetes

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
)

// trialCluster returns a Cluster of a fake one.
func trialCluster(t *testing.T) (*Cluster, *kubetest.Cluster) {
	t.Helper()
	server := kubetest.New(t)
	c := openFake(t, server, func(s *Settings) { s.NetworkRequired = false })
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c, server
}

func TestDescribeNamespace(t *testing.T) {
	c, server := trialCluster(t)
	if info, err := c.DescribeNamespace(t.Context()); err != nil || !info.Missing {
		t.Errorf("without the namespace: %+v, %v", info, err)
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: server.Namespace, Labels: map[string]string{podSecurityLabel: "baseline"}}}
	_, err := server.Client.CoreV1().Namespaces().Create(t.Context(), n, metav1.CreateOptions{})
	require.NoError(t, err)
	if info, err := c.DescribeNamespace(t.Context()); err != nil || info != (NamespaceInfo{PodSecurity: "baseline"}) {
		t.Errorf("%+v, %v", info, err)
	}
}

// MissingVerbs asks about each verb with all attributes that an authorizer may compare.
func TestMissingVerbs(t *testing.T) {
	c, server := trialCluster(t)
	client, ok := server.Client.(*fake.Clientset)
	if !ok {
		t.Fatalf("%T", server.Client)
	}
	denied := map[string]bool{"delete pods ": true, "get pods exec": true, "get networkpolicies ": true}
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy() //nolint:errcheck,forcetypeassert // a panic fails the test
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = a.Namespace == server.Namespace && !denied[a.Verb+" "+a.Resource+" "+a.Subresource] &&
			(a.Resource == "networkpolicies") == (a.Group == "networking.k8s.io")
		return true, review, nil
	})
	got := map[string][]string{}
	for _, r := range Rights() {
		missing, err := c.MissingVerbs(t.Context(), r)
		require.NoError(t, err)
		if missing != nil {
			got[r.Name()] = missing
		}
	}
	want := map[string][]string{"pods": {"delete"}, "pods/exec": {"get"}, "networkpolicies": {"get"}}
	assert.Equal(t, want, got, "the result")
}

func list(values ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, v := range values {
		name, quantity, _ := strings.Cut(v, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

func TestBounds(t *testing.T) {
	s := Settings{CPURequest: resource.MustParse("500m"), EphemeralStorage: resource.MustParse("10Gi")}
	needs := s.resources(Config{MemoryBytes: 4 << 30, CPUs: 2})
	quota := func(hard, used []string, scopes ...corev1.ResourceQuotaScope) Bound {
		return quotaBound(corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes},
			Status: corev1.ResourceQuotaStatus{Hard: list(hard...), Used: list(used...)},
		}, needs)
	}
	limits := func(item corev1.LimitRangeItem) Bound {
		return rangeBound(corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}, needs)
	}
	for name, tt := range map[string]struct{ got, want Bound }{
		"room":   {quota([]string{"pods=10", "requests.cpu=4"}, []string{"pods=3", "requests.cpu=1"}), Bound{"quota q", "pods 3 of 10, requests.cpu 1 of 4", 6, ""}},
		"memory": {quota([]string{"memory=9Gi"}, []string{"memory=0"}), Bound{"quota q", "memory 0 of 9Gi", 2, ""}},
		"full":   {quota([]string{"count/pods=3"}, []string{"count/pods=5"}), Bound{"quota q", "count/pods 5 of 3", 0, ""}},
		"excess": {quota([]string{"limits.memory=1Gi"}, nil), Bound{"quota q", "limits.memory 0 of 1Gi", 0, "limits.memory 4Gi"}},
		"other":  {quota([]string{"services=1"}, []string{"services=1"}), Bound{"quota q", "services 1 of 1", -1, ""}},
		"scopes": {quota([]string{"pods=1"}, []string{"pods=1"}, corev1.ResourceQuotaScopeBestEffort), Bound{"quota q", "pods 1 of 1 (for some pods only)", -1, ""}},
		"max":    {limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("memory=2Gi")}), Bound{"limit range r", "memory at most 2Gi", -1, "memory 4Gi"}},
		"min":    {limits(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: list("cpu=1")}), Bound{"limit range r", "cpu at least 1", -1, "cpu 500m"}},
		"within": {limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: list("memory=4Gi", "cpu=2")}), Bound{"limit range r", "cpu at most 2, memory at most 4Gi", -1, ""}},
		"claims": {limits(corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("storage=1")}), Bound{"limit range r", "", -1, ""}},
	} {
		assert.Equal(t, tt.want, tt.got, "%s", name)
	}
}

func TestTrial(t *testing.T) {
	c, server := trialCluster(t)
	trial, err := c.StartTrial(t.Context(), Config{Image: dockertest.Image(t)})
	require.NoError(t, err)
	if trial.Running <= 0 || trial.FirstResult < trial.Running {
		t.Errorf("running after %s, result after %s", trial.Running, trial.FirstResult)
	}
	security, err := trial.Security(t.Context())
	if err != nil || !security.Root || security.NewPrivileges || !security.Seccomp || security.Capabilities != "800000fb" {
		t.Errorf("%+v, %v", security, err)
	}
	if opened, err := trial.Forge(t.Context()); err != nil || len(opened) > 0 {
		t.Errorf("opened %q, %v", opened, err)
	}
	// A process that is not protected is found.
	_, err = trial.run(t.Context(), "cp $(command -v sleep) /tmp/h && { /tmp/h 100 >/dev/null 2>&1 & } && until [ $(cat /proc/$!/comm) = h ]; do sleep 0.01; done")
	require.NoError(t, err)
	opened, err := trial.Forge(t.Context())
	if err != nil || !slices.ContainsFunc(opened, func(s string) bool { return strings.HasSuffix(s, "/fd/1") }) {
		t.Errorf("opened %q, %v", opened, err)
	}
	reached, blocked, err := trial.ProbeNetwork(t.Context())
	if err != nil || len(reached) > 0 || len(blocked) == 0 {
		t.Errorf("reached %q, blocked %q, %v", reached, blocked, err)
	}
	if took, err := trial.Remove(t.Context()); err != nil || took <= 0 {
		t.Errorf("removed after %s, %v", took, err)
	}
	pods, err := server.Client.CoreV1().Pods(server.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("left: %v, %v", pods.Items, err)
	}
}

func TestParseSecurity(t *testing.T) {
	for out, want := range map[string]SecurityInfo{
		"Uid: 0 0 0 0\nCapBnd: 00000000800000fb\nNoNewPrivs: 1\nSeccomp: 2\n0 0 4294967295\n":    {Root: true, Seccomp: true, Capabilities: "800000fb"},
		"Uid: 0 0 0 0\nCapBnd: 0000000000000000\nNoNewPrivs: 0\nSeccomp: 0\n0 65536 65536\n":     {Root: true, UserNamespace: true, NewPrivileges: true},
		"Uid: 1000 0 0 0\nCapBnd: 0000000000000001\nNoNewPrivs: 1\nSeccomp: 2\n0 0 4294967295\n": {Seccomp: true, Capabilities: "1"},
	} {
		if got := parseSecurity(out); got != want {
			t.Errorf("%q: %+v", out, got)
		}
	}
}

// An output without both processes proves nothing.
func TestParseForge(t *testing.T) {
	for out, ok := range map[string]bool{
		"processes 2\n": true, "bash: no .bashrc\nopen /proc/1/fd/1\nprocesses 3\n": true,
		"": false, "processes 1\n": false, "open /proc/1/fd/1\n": false,
	} {
		if _, err := parseForge(out); (err == nil) != ok {
			t.Errorf("%q: %v", out, err)
		}
	}
}

// createOwner creates the owner of a process that was seen some time ago, with a pod.
func createOwner(t *testing.T, server *kubetest.Cluster, name string, seen time.Duration) {
	t.Helper()
	m, err := server.Client.CoreV1().ConfigMaps(server.Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{labelOwner: name},
		Annotations: map[string]string{annotationBeat: time.Now().Add(-seen).UTC().Format(time.RFC3339), annotationProcess: "process 1 on host"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	o := owner{name: name, uid: m.UID}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-pod", Labels: m.Labels, OwnerReferences: o.references()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: dockertest.Image(t), Command: []string{"sleep", "1000"}}}},
	}
	_, err = server.Client.CoreV1().Pods(server.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

func names(leftovers []Leftover) []string {
	var all []string
	for _, l := range leftovers {
		all = append(all, l.Name)
	}
	slices.Sort(all)
	return all
}

func TestCleanOptions(t *testing.T) {
	c, server := trialCluster(t)
	ctx := t.Context()
	createOwner(t, server, "dead", maxSilence+time.Minute)
	createOwner(t, server, "alive", maxSilence-time.Minute)
	helper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "helper", Labels: map[string]string{labelHelper: "x"}}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{labelManaged: managedBy}}}
	for _, m := range []*corev1.ConfigMap{helper, other} {
		_, err := server.Client.CoreV1().ConfigMaps(server.Namespace).Create(ctx, m, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	all := CleanOptions{IncludeHelpers: true, IncludeAlive: true}
	for _, tt := range []struct {
		name          string
		list          func(context.Context, CleanOptions) ([]Leftover, error)
		options       CleanOptions
		want          []string
		pods          string // left afterwards
		wantOwnerPods int
	}{
		{"list", c.ListLeftovers, CleanOptions{}, []string{"dead"}, "alive-pod dead-pod", 1},
		{"list with helpers in use", c.ListLeftovers, CleanOptions{IncludeHelpers: true}, []string{"dead"}, "alive-pod dead-pod", 1},
		{"kept", c.ListKept, CleanOptions{IncludeHelpers: true}, []string{"alive", "helper"}, "alive-pod dead-pod", 1},
		{"list all", c.ListLeftovers, all, []string{"alive", "dead", "helper"}, "alive-pod dead-pod", 2},
		{"clean", c.Clean, CleanOptions{IncludeHelpers: true}, []string{"dead"}, "alive-pod", 1},
		{"clean again", c.Clean, CleanOptions{}, nil, "alive-pod", 0},
		{"clean all", c.Clean, all, []string{"alive", "helper"}, "", 1},
	} {
		got, err := tt.list(ctx, tt.options)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		assert.Equal(t, tt.want, names(got), "%s", tt.name)
		n := 0
		for _, l := range got {
			n += l.Pods
		}
		assert.Equal(t, tt.wantOwnerPods, n, "%s: pods", tt.name)
		pods, err := server.Client.CoreV1().Pods(server.Namespace).List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		var left []string
		for _, p := range pods.Items {
			left = append(left, p.Name)
		}
		slices.Sort(left)
		assert.Equal(t, tt.pods, strings.Join(left, " "), "%s: left", tt.name)
	}
	maps, err := server.Client.CoreV1().ConfigMaps(server.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(maps.Items) != 1 || maps.Items[0].Name != "other" {
		t.Errorf("left: %v, %v", maps.Items, err)
	}
}

func TestWriteRole(t *testing.T) {
	for name, o := range map[string]RoleOptions{
		"placeholder.yaml": {Namespace: "bench"},
		"subjects.yaml": {
			Namespace: "bench", Users: []string{"alice@example.com"}, Groups: []string{"sso:\"ml\""},
			ServiceAccounts: []string{"runner", "ci:runner"},
		},
	} {
		var out bytes.Buffer
		require.NoError(t, WriteRole(&out, o))
		golden.Check(t, filepath.Join("testdata", "rbac", name), out.Bytes())
		checkRole(t, &out, o)
	}
}

// checkRole decodes the output as the API server does.
func checkRole(t *testing.T, out io.Reader, o RoleOptions) {
	t.Helper()
	d := yaml.NewYAMLOrJSONDecoder(out, 1<<10)
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	require.NoError(t, d.Decode(&role))
	require.NoError(t, d.Decode(&binding))
	var want []rbacv1.PolicyRule
	for _, r := range Rights() {
		want = append(want, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Name()}, Verbs: r.Verbs})
	}
	if !reflect.DeepEqual(role.Rules, want) || role.Namespace != o.Namespace {
		t.Errorf("%s: %+v", role.Namespace, role.Rules)
	}
	if binding.RoleRef.Name != role.Name || binding.Namespace != o.Namespace || len(binding.Subjects) == 0 {
		t.Errorf("%+v", binding)
	}
	for i, group := range o.Groups {
		if s := binding.Subjects[len(o.Users)+i]; s.Kind != rbacv1.GroupKind || s.Name != group {
			t.Errorf("%+v", s)
		}
	}
}

func TestWriteRoleWithoutName(t *testing.T) {
	if err := WriteRole(io.Discard, RoleOptions{Namespace: "bench", ServiceAccounts: []string{"ci:"}}); err == nil {
		t.Error("no error for a service account without a name")
	}
}
