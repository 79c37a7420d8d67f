//go:build kubernetes && kubernetes_live

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// node is the single node of a test cluster, whose daemons run in the PID namespace of
// the process MINI_TEST_KUBERNETES_NODE.
type node struct{ init int }

func testNode(t *testing.T) node {
	t.Helper()
	pid, err := strconv.Atoi(os.Getenv("MINI_TEST_KUBERNETES_NODE"))
	if err != nil {
		t.Skip("MINI_TEST_KUBERNETES_NODE does not name the first process of a node; faults of daemons need one")
	}
	return node{pid}
}

// daemon returns the process of a daemon.
func (n node) daemon(t *testing.T, name string) int {
	t.Helper()
	space := readlink(t, n.init)
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		args, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		first, _, _ := strings.Cut(string(args), "\x00")
		link, _ := os.Readlink(filepath.Join("/proc", e.Name(), "ns/pid"))
		if filepath.Base(first) == name && link == space {
			return pid
		}
	}
	t.Fatalf("no process %s in the node", name)
	return 0
}

func readlink(t *testing.T, pid int) string {
	t.Helper()
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	require.NoError(t, err)
	return link
}

// restart kills a daemon and starts it again after a pause. Its parent, which would stop
// the node at the end of the daemon, is stopped first.
func (n node) restart(t *testing.T, name string, pause time.Duration) {
	t.Helper()
	pid := n.daemon(t, name)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(status[bytes.LastIndexByte(status, ')')+2:]))
	parent, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	require.NoError(t, err)
	if parent > 1 && readlink(t, parent) == readlink(t, n.init) && parent != n.init {
		require.NoError(t, syscall.Kill(parent, syscall.SIGSTOP))
	}
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	time.Sleep(pause)
	list := strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")
	// setsid --fork returns at once. The daemon runs until the node ends.
	cmd := exec.Command("setsid", append([]string{"--fork", "nsenter", "-t", strconv.Itoa(n.init), "-a", exe}, list[1:]...)...)
	cmd.Env = strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00")
	require.NoError(t, cmd.Run())
}

// faults are what may happen during a command or a transfer without an effect on it.
func faults(n node) map[string]func(t *testing.T, p *Pod) {
	return map[string]func(*testing.T, *Pod){
		"apiserver":  func(t *testing.T, _ *Pod) { n.restart(t, "kube-apiserver", time.Second) },
		"kubelet":    func(t *testing.T, _ *Pod) { n.restart(t, "kubelet", time.Second) },
		"containerd": func(t *testing.T, _ *Pod) { n.restart(t, "containerd", time.Second) },
		"relay": func(t *testing.T, p *Pod) {
			n.killInPod(t, p, "relay")
		},
	}
}

// killInPod kills a process of the helper in a pod, from the node.
func (n node) killInPod(t *testing.T, p *Pod, arg string) {
	t.Helper()
	killed := 0
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		args, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if string(args) != helperPath+"\x00"+arg+"\x00" {
			continue
		}
		uts, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if !bytes.Contains(uts, []byte("HOSTNAME="+p.Name()+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(e.Name()); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Errorf("no process %s in pod %s", arg, p.Name())
	}
}

// TestLiveFaults: a command and file transfers survive the loss of the connection, and
// nothing is doubled or lost.
func TestLiveFaults(t *testing.T) {
	n := testNode(t)
	c := live(t, nil)
	for name, fault := range faults(n) {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, c, Config{Image: liveImage()})
			const lines = 2000
			var want bytes.Buffer
			for i := range lines {
				fmt.Fprintf(&want, "line %d\n", i)
			}
			started, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				<-started
				fault(t, p)
			}()
			res, err := p.Execute(t.Context(), env.Command{
				Script:   fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); [ $((i %% 10)) = 0 ] && sleep 0.02; done", lines),
				Timeout:  5 * time.Minute,
				OnOutput: onceOutput(started),
			})
			if err == nil {
				<-done
			}
			if err != nil || res.ExitCode != 0 || !bytes.Equal(res.Output, want.Bytes()) {
				t.Fatalf("exit code %d, %d of %d bytes, %v", res.ExitCode, len(res.Output), want.Len(), err)
			}
			after := p.Reconnections()
			if after == 0 {
				t.Error("the connection was not lost")
			}
			transferWithFault(t, p, fault)
			if res, err := p.Execute(t.Context(), env.Command{Script: "echo fine"}); err != nil || string(res.Output) != "fine\n" {
				t.Errorf("afterwards: %q, %v", res.Output, err)
			}
			t.Logf("%d reconnections, %d of them during transfers", p.Reconnections(), p.Reconnections()-after)
		})
	}
}

// onceOutput closes a channel at the first output of a command.
func onceOutput(started chan struct{}) func([]byte) {
	once := sync.OnceFunc(func() { close(started) })
	return func([]byte) { once() }
}

// halfReader calls onMid when half of its data is read.
type halfReader struct {
	r     io.Reader
	left  int
	onMid func()
}

func (h *halfReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p[:min(len(p), 256<<10)])
	h.left -= n
	if h.left <= 0 && h.onMid != nil {
		h.onMid()
		h.onMid = nil
	}
	return n, err
}

func transferWithFault(t *testing.T, p *Pod, fault func(*testing.T, *Pod)) {
	t.Helper()
	data := make([]byte, 48<<20)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	tarred := packFile(t, data)
	ended := make(chan struct{})
	in := &halfReader{r: bytes.NewReader(tarred), left: len(tarred) / 2, onMid: func() {
		go func() { defer close(ended); fault(t, p) }()
	}}
	if err := p.Put(t.Context(), "/tmp/in", in); err != nil {
		t.Fatalf("put: %v", err)
	}
	<-ended
	ended = make(chan struct{})
	var back bytes.Buffer
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(p.Get(t.Context(), "/tmp/in/file", writer)) }()
	out := &halfReader{r: reader, left: len(tarred) / 2, onMid: func() {
		go func() { defer close(ended); fault(t, p) }()
	}}
	if _, err := io.Copy(&back, out); err != nil {
		t.Fatalf("get: %v", err)
	}
	<-ended
	if !bytes.Equal(unpackFile(t, &back), data) {
		t.Error("the file has other bytes")
	}
}

// TestLiveEnds: what ends a pod has the right outcome, and soon.
func TestLiveEnds(t *testing.T) {
	n := testNode(t)
	c := live(t, nil)
	for name, test := range map[string]struct {
		fault func(t *testing.T, p *Pod)
		want  env.Status
	}{
		"helper killed": {func(t *testing.T, p *Pod) { n.killInPod(t, p, "pod") }, env.ContainerDied},
		"deleted": {func(t *testing.T, p *Pod) {
			assert.NoError(t, c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), p.Name(), metav1.DeleteOptions{}))
		}, env.ContainerDied},
		"evicted": {func(t *testing.T, p *Pod) {
			assert.NoError(t, evict(t, c, p.Name()))
		}, env.SandboxDisrupted},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, c, Config{Image: liveImage()})
			started := make(chan struct{})
			cmd := env.Command{Script: "echo started; sleep 1000", Timeout: time.Hour, OnOutput: onceOutput(started)}
			var at time.Time
			go func() {
				<-started
				at = time.Now()
				test.fault(t, p)
			}()
			_, err := p.Execute(t.Context(), cmd)
			checkStatus(t, err, test.want)
			t.Logf("after %s: %v", time.Since(at).Round(10*time.Millisecond), err)
			if time.Since(at) > time.Minute { // at most 3 s on an idle machine
				t.Error("it took too long")
			}
		})
	}
}

// TestLiveHostile: root in the pod cannot write to the helper's connection; the sandbox
// is given up when its commands keep killing the relay.
func TestLiveHostile(t *testing.T) {
	c := live(t, nil)
	p := startPod(t, c, Config{Image: liveImage()})
	if got := run(t, p, forgery); got != "0\nend\n" {
		t.Fatalf("output %q", got)
	}
	_, err := p.Execute(t.Context(), env.Command{Timeout: time.Minute, Script: relays + "while :; do kill_relays; sleep 0.2; done"})
	checkStatus(t, err, env.ProtocolViolation)
}

// evict evicts a pod as a drain does.
func evict(t *testing.T, c *Cluster, name string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	return c.client.CoreV1().Pods(c.namespace).EvictV1(ctx, eviction(c.namespace, name))
}

func eviction(namespace, name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// dropPackets drops what pods of the node send, until the end of the test.
func (n node) dropPackets(t *testing.T) {
	t.Helper()
	rules := func(commands ...string) {
		for _, command := range commands {
			args := append([]string{"-t", strconv.Itoa(n.init), "-n"}, strings.Fields(command)...)
			if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", command, err, out)
			}
		}
	}
	rules("iptables -I INPUT -i pods -j DROP", "iptables -I FORWARD -i pods -j DROP")
	t.Cleanup(func() { rules("iptables -D INPUT -i pods -j DROP", "iptables -D FORWARD -i pods -j DROP") })
}
