//go:build kubernetes

package kubetest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
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
		_, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Create(t.Context(), m, metav1.CreateOptions{})
		require.NoError(t, err)
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
		assert.Equal(t, want, output(t, c, "p", script), "%s", script)
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
			require.NoError(t, c.Client.CoreV1().Pods(c.Namespace).Delete(t.Context(), "p", metav1.DeleteOptions{}))
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

// transports are the ways of client-go to run a command.
var transports = map[string]func(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) remotecommand.Executor{
	"websocket": func(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) remotecommand.Executor {
		e, err := remotecommand.NewWebSocketExecutor(c.REST, http.MethodGet, execURL(t, c, name, o))
		require.NoError(t, err)
		return e
	},
	"spdy": func(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) remotecommand.Executor {
		client, err := kubernetes.NewForConfig(c.REST)
		require.NoError(t, err)
		e, err := remotecommand.NewSPDYExecutor(c.REST, http.MethodPost, client.CoreV1().RESTClient().Post().
			Resource("pods").Namespace(c.Namespace).Name(name).SubResource("exec").VersionedParams(o, scheme.ParameterCodec).URL())
		require.NoError(t, err)
		return e
	},
}

func execURL(t *testing.T, c *kubetest.Cluster, name string, o *v1.PodExecOptions) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.REST)
	require.NoError(t, err)
	return client.CoreV1().RESTClient().Get().Resource("pods").Namespace(c.Namespace).Name(name).
		SubResource("exec").VersionedParams(o, scheme.ParameterCodec).URL().String()
}

// eachTransport runs a test with both.
func eachTransport(t *testing.T, c *kubetest.Cluster, test func(t *testing.T, run func(ctx context.Context, pod string, stdin io.Reader, stdout, stderr io.Writer, command ...string) error)) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			test(t, func(ctx context.Context, pod string, stdin io.Reader, stdout, stderr io.Writer, command ...string) error {
				o := &v1.PodExecOptions{Command: command, Stdin: stdin != nil, Stdout: stdout != nil, Stderr: stderr != nil}
				return transport(t, c, pod, o).StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
			})
		})
	}
}

func TestExec(t *testing.T) {
	c := kubetest.New(t)
	startPod(t, c, newPod(t, "p", sleep))
	content := make([]byte, 5<<20)
	_, _ = rand.Read(content)
	eachTransport(t, c, func(t *testing.T, run func(context.Context, string, io.Reader, io.Writer, io.Writer, ...string) error) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		var stdout, stderr bytes.Buffer
		if err := run(ctx, "p", bytes.NewReader(content), &stdout, &stderr, "cat"); err != nil {
			t.Fatalf("cat: %v: %s", err, &stderr)
		}
		if !bytes.Equal(stdout.Bytes(), content) {
			t.Errorf("cat: %d bytes came back of %d, or others", stdout.Len(), len(content))
		}

		stdout.Reset()
		err := run(ctx, "p", nil, &stdout, &stderr, "bash", "-c", "echo out; echo error >&2; exit 7")
		var exit exec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 7 || stdout.String() != "out\n" || stderr.String() != "error\n" {
			t.Errorf("error %v, stdout %q, stderr %q", err, &stdout, &stderr)
		}

		// The command ends while stdin is open and full.
		stdin, writer := io.Pipe()
		go func() {
			for err := error(nil); err == nil; {
				_, err = writer.Write(content)
			}
		}()
		stdout.Reset()
		if err := run(ctx, "p", stdin, &stdout, nil, "head", "-c", "1000000"); err != nil || stdout.Len() != 1_000_000 {
			t.Errorf("head: error %v, %d bytes", err, stdout.Len())
		}
		_ = stdin.Close() // never fails
	})
	counts := c.RequestCount()
	if counts["get pods/exec"] != 3 || counts["create pods/exec"] != 3 {
		t.Errorf("requests: %v", counts)
	}
}

func TestExecErrors(t *testing.T) {
	c := kubetest.New(t)
	startPod(t, c, newPod(t, "p", sleep))
	startPod(t, c, newPod(t, "ended", sleep))
	c.KillContainer("ended")
	c.SetPending(func(*v1.Pod) (string, string) { return v1.PodReasonUnschedulable, "no nodes" })
	create(t, c, newPod(t, "pending", sleep))
	eachTransport(t, c, func(t *testing.T, run func(context.Context, string, io.Reader, io.Writer, io.Writer, ...string) error) {
		for pod, want := range map[string]string{
			"absent":  `pods "absent" not found`,
			"ended":   `container not found ("main")`,
			"pending": "pod pending does not have a host assigned",
		} {
			assert.ErrorContains(t, run(t.Context(), pod, nil, io.Discard, nil, "true"), want, "%s", pod)
		}
		c.SetDown(true)
		defer c.SetDown(false)
		assert.ErrorContains(t, run(t.Context(), "p", nil, io.Discard, nil, "true"), "the API server is down", "down")
	})
}

// TestCut cuts streams and kills containers while commands run.
func TestCut(t *testing.T) {
	c := kubetest.New(t)
	tests := map[string]func(pod string){
		"cut":    func(string) { c.CutStreams() },
		"kill":   c.KillContainer,
		"delete": func(pod string) { c.Disrupt(pod, "DeletionByTaintManager") },
	}
	for name, cut := range tests {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, c, func(t *testing.T, run func(context.Context, string, io.Reader, io.Writer, io.Writer, ...string) error) {
				pod := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
				startPod(t, c, newPod(t, pod, sleep))
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				stdin, writer := io.Pipe()
				defer writer.Close()
				reader, stdout := io.Pipe()
				ended := make(chan error, 1)
				go func() { ended <- run(ctx, pod, stdin, stdout, nil, "cat") }()
				echo := make([]byte, 5)
				_, err := writer.Write([]byte("hello"))
				require.NoError(t, err)
				if _, err := io.ReadFull(reader, echo); err != nil || string(echo) != "hello" {
					t.Fatalf("echo %q: %v", echo, err)
				}
				cut(pod)
				select {
				case err := <-ended:
					t.Logf("error %v", err) // it may be nil: a lost stream looks like an end
				case <-time.After(timeout):
					t.Fatal("the stream goes on")
				}
				if ctx.Err() != nil {
					t.Error(ctx.Err())
				}
			})
		})
	}
}
