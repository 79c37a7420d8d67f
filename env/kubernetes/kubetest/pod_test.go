//go:build kubernetes

package kubetest_test

import (
	"bytes"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/minibench/mini/env/kubernetes/kubetest"
)

// output runs a script in a pod.
func output(t *testing.T, c *kubetest.Cluster, pod, script string) string {
	t.Helper()
	o := &v1.PodExecOptions{Command: []string{"bash", "-c", script}, Stdout: true, Stderr: true}
	var stdout, stderr bytes.Buffer
	err := transports["websocket"](t, c, pod, o).StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Errorf("%s: %v: %s", script, err, &stderr)
	}
	return strings.TrimSpace(stdout.String())
}

// addVolume adds a volume and mounts it in all containers.
func addVolume(pod *v1.Pod, path string, source v1.VolumeSource) {
	name := strings.Trim(strings.ReplaceAll(path, "/", "-"), "-")
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, v1.VolumeMount{Name: name, MountPath: path})
		}
	}
}

// addConfigMaps creates ConfigMaps and adds a volume with them.
func addConfigMaps(t *testing.T, c *kubetest.Cluster, pod *v1.Pod) {
	t.Helper()
	var sources []v1.VolumeProjection
	for name, m := range map[string]*v1.ConfigMap{
		"text":  {Data: map[string]string{"a": "text"}},
		"bytes": {BinaryData: map[string][]byte{"b": {0, 255}, "not-an-item": {1}}},
	} {
		m.Name = name
		if _, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p := &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: name}}
		if name == "bytes" {
			p.Items = []v1.KeyToPath{{Key: "b", Path: "c"}}
		}
		sources = append(sources, v1.VolumeProjection{ConfigMap: p})
	}
	addVolume(pod, "/both", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}})
}

func ptr[T any](v T) *T { return &v }

func TestPodFields(t *testing.T) {
	c := kubetest.New(t)
	pod := newPod(t, "p", "$PROGRAM")
	ctr := &pod.Spec.Containers[0]
	ctr.Env = []v1.EnvVar{{Name: "PROGRAM", Value: "exec sleep 1000"}}
	ctr.Command, ctr.Args = []string{"bash"}, []string{"-c", "$PROGRAM"}
	ctr.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi"), v1.ResourceCPU: resource.MustParse("100")}
	ctr.SecurityContext = &v1.SecurityContext{
		RunAsUser:                ptr(int64(1000)),
		RunAsGroup:               ptr(int64(1001)),
		AllowPrivilegeEscalation: ptr(false),
		ReadOnlyRootFilesystem:   ptr(true),
		Capabilities:             &v1.Capabilities{Drop: []v1.Capability{"ALL"}, Add: []v1.Capability{"KILL"}},
	}
	addConfigMaps(t, c, pod)
	addVolume(pod, "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: resource.NewQuantity(8<<20, resource.BinarySI)}})
	addVolume(pod, "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	startPod(t, c, pod)
	for script, want := range map[string]string{
		"id -u; id -g":                   "1000\n1001",
		"tr '\\0' ' ' < /proc/1/cmdline": "sleep 1000",
		"hostname":                       "p",
		"ls /sys/class/net":              "lo",
		"echo $KUBERNETES_SERVICE_PORT":  "443",
		"touch /usr/x 2>&1 || true":      "touch: cannot touch '/usr/x': Read-only file system",
		"grep -E 'NoNewPrivs|CapBnd' /proc/1/status | tr -d '\\t'":                                      "CapBnd:0000000000000020\nNoNewPrivs:1",
		"cat /both/a; od -An -tx1 /both/c; ls /both":                                                    "text 00 ff\na\nc",
		"touch /both/x 2>&1 || true":                                                                    "touch: cannot touch '/both/x': Read-only file system",
		"cp /bin/true /memory/t && /memory/t && cp /bin/true /disk/t && /disk/t && echo ran":            "ran",
		"df -B1 --output=size /memory | tail -1":                                                        "8388608",
		"cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || true": "67108864",
	} {
		if got := output(t, c, "p", script); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", script, got, want)
		}
	}
}

func TestInitContainer(t *testing.T) {
	tests := []struct {
		name, script string
		phase        v1.PodPhase
	}{
		{"succeeds", "cp /bin/sleep /memory/s && touch /disk/x", v1.PodRunning},
		{"fails", "exit 4", v1.PodFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := kubetest.New(t)
			pod := newPod(t, "p", "test -e /disk/x && exec /memory/s 1000")
			pod.Spec.InitContainers = newPod(t, "", tt.script).Spec.Containers
			user := &v1.SecurityContext{RunAsUser: ptr(int64(1000))}
			pod.Spec.InitContainers[0].SecurityContext, pod.Spec.Containers[0].SecurityContext = user, user
			addVolume(pod, "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})
			addVolume(pod, "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
			create(t, c, pod)
			p := waitFor(t, c, "p", func(p *v1.Pod) bool { return p.Status.Phase != v1.PodPending })
			if p.Status.Phase != tt.phase || p.Status.InitContainerStatuses[0].State.Terminated == nil {
				t.Errorf("%+v", p.Status)
			}
			if err := c.Client.CoreV1().Pods(c.Namespace).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			noContainers(t, c)
		})
	}
}

// TestNotStarted covers pods whose container cannot be made.
func TestNotStarted(t *testing.T) {
	c := kubetest.New(t)
	volume := newPod(t, "volume", sleep)
	addVolume(volume, "/v", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}})
	configMap := newPod(t, "config-map", sleep)
	addVolume(configMap, "/v", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{
		ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "absent"}},
	}}}})
	for pod, want := range map[*v1.Pod][2]string{
		volume:    {"CreateContainerConfigError", "kubetest supports only"},
		configMap: {"ContainerCreating", `configmaps "absent" not found`},
	} {
		create(t, c, pod)
		p := waitFor(t, c, pod.Name, func(p *v1.Pod) bool {
			return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting.Message != ""
		})
		if w := p.Status.ContainerStatuses[0].State.Waiting; w.Reason != want[0] || !strings.Contains(w.Message, want[1]) {
			t.Errorf("%s: %+v", pod.Name, w)
		}
	}
	command := newPod(t, "command", sleep)
	command.Spec.Containers[0].Command = []string{"/absent"}
	create(t, c, command)
	p := waitFor(t, c, "command", ended)
	if end := p.Status.ContainerStatuses[0].State.Terminated; end.Reason != "StartError" || end.ExitCode != 128 {
		t.Errorf("command: %+v", end)
	}
}
