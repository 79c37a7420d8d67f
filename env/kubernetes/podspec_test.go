//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// specOf returns the pod that a sandbox would get.
func specOf(t *testing.T, s Settings, cfg Config) (*corev1.Pod, error) {
	t.Helper()
	c, err := newCluster(s, fake.NewClientset(), &rest.Config{Host: "http://127.0.0.1:1"}, "bench")
	require.NoError(t, err)
	defer c.Close()
	setDefault(&cfg.Image, "mini-base")
	setDefault(&cfg.Network, NetworkNone)
	return c.newPod(cfg, c.settings.mirrored(cfg.Image), &owner{name: "mini-run", uid: "uid", helper: helperBinary{parts: []string{"mini-helper-0"}}})
}

// TestPodSpec: each setting has its place in the pod. want is a part of the pod as JSON,
// in which lists are complete.
func TestPodSpec(t *testing.T) {
	for name, tt := range map[string]struct {
		settings Settings
		config   Config
		want     string
	}{
		"defaults": {want: `{
			"metadata": {"namespace": "bench", "labels": {"app.kubernetes.io/managed-by": "mini", "mini.owner": "mini-run", "mini.network": "none"},
				"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "mini-run", "uid": "uid"}]},
			"spec": {
				"restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
				"terminationGracePeriodSeconds": 2, "activeDeadlineSeconds": 172800, "nodeSelector": {"kubernetes.io/arch": "amd64"},
				"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
				"containers": [{
					"name": "sandbox", "image": "mini-base", "imagePullPolicy": "IfNotPresent",
					"command": ["sh", "-c", "cat /.mini-parts/[0-9]* >/.mini/h && chmod 755 /.mini/h && exec /.mini/h pod"],
					"resources": {},
					"volumeMounts": [{"name": "mini", "mountPath": "/.mini"}, {"name": "mini-parts", "mountPath": "/.mini-parts", "readOnly": true}],
					"securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": false, "capabilities": {
						"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "SETFCAP", "KILL"]}}
				}]}}`},
		"restricted": {settings: Settings{Security: Restricted}, config: Config{User: "1000:1001", CapAdd: []string{"NET_ADMIN"}, NewPrivileges: true}, want: `{"spec": {
			"containers": [{"securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1001, "allowPrivilegeEscalation": false,
				"readOnlyRootFilesystem": false, "capabilities": {"drop": ["ALL"]}}}]}}`},
		"user namespace": {settings: Settings{Security: UserNamespace}, want: `{"spec": {"hostUsers": false}}`},
		"capabilities": {config: Config{CapDrop: []string{"cap_net_raw"}, CapAdd: []string{"sys_ptrace"}, NewPrivileges: true, User: "root"}, want: `{"spec": {
			"containers": [{"securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": true, "readOnlyRootFilesystem": false,
				"capabilities": {"drop": ["NET_RAW"], "add": ["SYS_PTRACE"]}}}]}}`},
		"resources": {
			settings: Settings{CPURequest: resource.MustParse("500m"), EphemeralStorage: resource.MustParse("10Gi")}, config: Config{MemoryBytes: 1 << 30, CPUs: 1.5},
			want: `{"spec": {"containers": [{"resources": {
				"limits": {"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": "10Gi"},
				"requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"}}}]}}`,
		},
		"a CPU limit below the request": {settings: Settings{CPURequest: resource.MustParse("2")}, config: Config{CPUs: 0.25}, want: `{"spec": {"containers": [{"resources": {
			"limits": {"cpu": "250m"}, "requests": {"cpu": "250m"}}}]}}`},
		"deadline": {settings: Settings{PullTimeout: time.Minute, StartTimeout: time.Minute}, config: Config{TimeLimit: time.Hour}, want: `{"spec": {"activeDeadlineSeconds": 4320}}`},
		"labels": {
			settings: Settings{
				Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b c"}, Queue: "night", DoNotDisrupt: true,
			},
			config: Config{Run: "run 1", Instance: "django__django-1", Network: "bridge"},
			want: `{"metadata": {
				"labels": {"team": "a", "app.kubernetes.io/managed-by": "mini", "mini.owner": "mini-run", "kueue.x-k8s.io/queue-name": "night"},
				"annotations": {"note": "b c", "mini.run": "run 1", "mini.instance": "django__django-1",
					"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}}`,
		},
		"nodes": {
			settings: Settings{
				NodeSelector: map[string]string{"kubernetes.io/arch": "arm64", "pool": "x"}, PriorityClass: "low", ServiceAccount: "runner",
				Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}},
				Affinity:    &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
			},
			config: Config{Runtime: "gvisor"},
			want: `{"spec": {"nodeSelector": {"kubernetes.io/arch": "arm64", "pool": "x"}, "priorityClassName": "low", "serviceAccountName": "runner",
				"automountServiceAccountToken": false, "tolerations": [{"key": "spot", "operator": "Exists"}], "affinity": {"nodeAffinity": {}},
				"runtimeClassName": "gvisor"}}`,
		},
		"images": {
			settings: Settings{ImagePullSecrets: []string{"one", "two"}, ImagePullPolicy: corev1.PullAlways, RegistryMirror: "mirror.example:5000/cache/"},
			config:   Config{Image: "swebench/sweb.eval:latest"},
			want: `{"spec": {"imagePullSecrets": [{"name": "one"}, {"name": "two"}], "containers": [{
				"image": "mirror.example:5000/cache/swebench/sweb.eval:latest", "imagePullPolicy": "Always"}]}}`,
		},
		"memory volumes": {
			settings: Settings{Helper: HelperImage, HelperImage: "registry.example/helper:1"},
			config:   Config{ShmBytes: 64 << 20, ReadOnly: true, Tmpfs: map[string]int64{"/run": 1 << 20}, MemoryBytes: 64 << 20},
			want: `{"spec": {
				"volumes": [
					{"name": "tmpfs-0", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}, {"name": "tmpfs-1", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
					{"name": "tmpfs-2", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}, {"name": "mini", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
				"initContainers": [{"name": "helper", "image": "registry.example/helper:1", "command": ["/h", "install", "/.mini"],
					"resources": {"limits": {"memory": "64Mi"}, "requests": {"memory": "64Mi"}}, "volumeMounts": [{"name": "mini", "mountPath": "/.mini"}]}],
				"containers": [{"command": ["/.mini/h", "pod"], "securityContext": {"readOnlyRootFilesystem": true},
					"volumeMounts": [{"name": "tmpfs-0", "mountPath": "/dev/shm"}, {"name": "tmpfs-1", "mountPath": "/run"}, {"name": "tmpfs-2", "mountPath": "/tmp"},
						{"name": "mini", "mountPath": "/.mini"}]}]}}`,
		},
		"patch": {
			settings: Settings{PodPatch: []byte(`{"metadata": {"labels": {"cost": "7"}}, "spec": {"hostname": "box",
				"containers": [{"name": "sandbox", "env": [{"name": "A", "value": "b"}]}, {"name": "side", "image": "proxy"}]}}`)},
			want: `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "mini", "mini.owner": "mini-run", "mini.network": "none", "cost": "7"}},
				"spec": {"hostname": "box", "containers": [{"name": "sandbox", "image": "mini-base", "env": [{"name": "A", "value": "b"}]}, {"name": "side", "image": "proxy"}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := specOf(t, tt.settings, tt.config)
			require.NoError(t, err)
			text, err := json.Marshal(p)
			require.NoError(t, err)
			var got, want map[string]any
			require.NoError(t, errors.Join(json.Unmarshal(text, &got), json.Unmarshal([]byte(tt.want), &want)))
			for _, d := range differences("", got, want) {
				t.Error(d)
			}
		})
	}
}

// exact are the objects in which no other keys may be.
var exact = []string{".metadata.labels", ".spec.nodeSelector", ".resources", ".resources.limits", ".resources.requests", ".capabilities"}

// differences lists what of want is not in got.
func differences(path string, got, want any) []string {
	var list []string
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			list = append(list, differences(path+"."+key, object[key], want[key])...)
		}
		isExact := slices.ContainsFunc(exact, func(suffix string) bool { return strings.HasSuffix(path, suffix) })
		for key := range object {
			if _, ok := want[key]; isExact && !ok {
				list = append(list, path+"."+key+" should not exist")
			}
		}
		return list
	case []any:
		if array, _ := got.([]any); len(array) == len(want) {
			for i := range want {
				list = append(list, differences(path, array[i], want[i])...)
			}
			return list
		}
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		list = append(list, path+" is "+string(a)+", want "+string(b))
	}
	return list
}

// TestPatchRefused: a patch cannot change what the isolation and the clean-up need.
func TestPatchRefused(t *testing.T) {
	for patch, want := range map[string]string{
		`{"metadata": {"name": "x"}}`:                                                        "metadata.name",
		`{"metadata": {"ownerReferences": null}}`:                                            "metadata.ownerReferences",
		`{"metadata": {"labels": {"mini.network": null}}}`:                                   "the labels of mini",
		`{"metadata": {"labels": {"mini.owner": "x"}}}`:                                      "the labels of mini",
		`{"spec": {"containers": [{"name": "sandbox", "command": ["sh"]}]}}`:                 "the command of the container sandbox",
		`{"spec": {"containers": [{"name": "sandbox", "args": ["x"]}]}}`:                     "the command of the container sandbox",
		`{"spec": {"containers": [{"name": "sandbox", "$patch": "delete"}]}}`:                "the command of the container sandbox",
		`{"spec": {"containers": [{"$patch": "replace"}, {"name": "other", "image": "y"}]}}`: "the command of the container sandbox",
		`{"spec": {"restartPolicy": "Always"}}`:                                              "spec.restartPolicy",
		`{"spec": {"shareProcessNamespace": true}}`:                                          "spec.shareProcessNamespace",
		`{"spec": {"hostPID": true}}`:                                                        "spec.hostPID",
		`{"spec": {"hostNetwork": true}}`:                                                    "spec.hostNetwork",
		`{"spec": {"volumes": 3}}`:                                                           "",
		`spec:`:                                                                              "",
	} {
		_, err := specOf(t, Settings{PodPatch: []byte(patch)}, Config{})
		checkConfigError(t, err, "kubernetes.pod_patch", want)
	}
}

// TestInvalid: wrong settings and configurations are reported together, by key.
func TestInvalid(t *testing.T) {
	for _, tt := range []struct {
		settings Settings
		config   Config
		want     []string
	}{
		{settings: Settings{Queue: "-", Lease: time.Second, Labels: map[string]string{"a b": ""}, Annotations: map[string]string{"a b": ""}}, want: []string{
			"kubernetes.annotations", "kubernetes.labels", "kubernetes.lease", "kubernetes.queue",
		}},
		{config: Config{Dir: "x", User: "bob", Network: "a b", MemoryBytes: 1}, want: []string{"cwd", "image", "memory", "network", "user"}},
		{settings: Settings{Security: Restricted}, config: Config{Image: "i", User: "0:5"}, want: []string{"user"}},
		{settings: Settings{Security: Restricted}, config: Config{Image: "i"}, want: []string{"user"}},
		{settings: Settings{Security: Restricted}, config: Config{Image: "i", User: "5"}},
	} {
		var keys []string
		err := tt.settings.Validate()
		if err == nil {
			err = tt.config.validate(tt.settings.withDefaults())
		}
		for _, e := range env.ConfigErrors(err) {
			keys = append(keys, e.Key)
		}
		if slices.Sort(keys); !slices.Equal(keys, tt.want) && len(tt.want) > 0 || len(tt.want) == 0 && err != nil {
			t.Errorf("%v: errors about %q, want %q", err, keys, tt.want)
		}
	}
}

// openNetwork gives later pods the network of Docker, and adds another pod there, which
// they reach.
func openNetwork(t *testing.T, c *Cluster, fake *kubetest.Cluster) {
	t.Helper()
	fake.Network = "bridge"
	other := startPod(t, c, Config{Image: dockertest.Image(t), Network: "bridge"})
	address := strings.TrimSpace(run(t, other, "hostname -i"))
	changeStatus(t, fake, other.Name(), func(s *corev1.PodStatus) { s.PodIP = address })
	eventually(t, "the address is known", func() bool { return c.otherPod(&Pod{}) == address })
}

func TestNetworkProven(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, nil)
	info := startPod(t, c, Config{Image: dockertest.Image(t)}).Info()
	if !strings.HasPrefix(info.NetworkProof, env.NetworkProven) || info.Network {
		t.Errorf("network %v, %q", info.Network, info.NetworkProof)
	}
	for _, address := range []string{"10.96.0.1:443", "169.254.169.254:80", "1.1.1.1:443"} {
		assert.Contains(t, info.NetworkProof, address, "the proof")
	}
	if info := startPod(t, c, Config{Image: dockertest.Image(t), Network: "bridge"}).Info(); info.NetworkProof != "" || !info.Network {
		t.Errorf("a pod with a network: network %v, %q", info.Network, info.NetworkProof)
	}
}

// TestNetworkUnproven: pods with an open network are refused. The third of them in a row
// stops the run; a proof in between starts the count again.
func TestNetworkUnproven(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	c.probeLimit = time.Second
	openNetwork(t, c, fake)
	cfg := Config{Image: dockertest.Image(t)}
	refuse := func(status env.Status) {
		t.Helper()
		_, err := c.Start(t.Context(), cfg)
		checkStatus(t, err, status, "does not enforce the NetworkPolicy", "network_required")
	}
	refuse(env.SetupFailed)
	fake.Network = "none"
	startPod(t, c, cfg)
	fake.Network = "bridge"
	for range maxUnproven - 1 {
		refuse(env.SetupFailed)
	}
	refuse(env.SandboxRefused)
}

func TestNetworkNotRequired(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, func(s *Settings) { s.NetworkRequired = false })
	openNetwork(t, c, fake)
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	if proof := p.Info().NetworkProof; !strings.HasPrefix(proof, env.NetworkUnproven) {
		t.Errorf("proof %q", proof)
	}
	run(t, p, "true")
}
