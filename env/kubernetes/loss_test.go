//go:build kubernetes

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/files"
	"github.com/minibench/mini/env/kubernetes/kubetest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// whileDown runs f without a connection to the pod, and then waits for one.
func whileDown(t *testing.T, p *Pod, fake *kubetest.Cluster, f func()) {
	t.Helper()
	before := p.Reconnections()
	fake.CutStreams()
	f()
	eventually(t, "the pod is connected again", func() bool { return p.Reconnections() > before })
}

// TestCutCommand: a command does not notice that its connection was lost, and its
// output is complete.
func TestCutCommand(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	for name, cut := range map[string]func(p *Pod){
		"streams": func(p *Pod) {
			for range maxLosses / 2 {
				whileDown(t, p, fake, func() {})
			}
		},
		"API server": func(p *Pod) {
			whileDown(t, p, fake, func() {
				fake.SetDown(true)
				execs := fake.RequestCount()["get pods/exec"]
				eventually(t, "a connection fails", func() bool { return fake.RequestCount()["get pods/exec"] > execs+1 })
				fake.SetDown(false)
			})
		},
	} {
		p := startPod(t, c, Config{Image: dockertest.Image(t)})
		const lines = 3000
		var want bytes.Buffer
		for i := range lines {
			fmt.Fprintln(&want, "line", i)
		}
		var begin sync.Once
		begun, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			<-begun
			cut(p)
		}()
		res, err := p.Execute(t.Context(), env.Command{
			Script:   fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); [ $((i %% 10)) = 0 ] && sleep 0.01; done", lines),
			OnOutput: func([]byte) { begin.Do(func() { close(begun) }) },
			Timeout:  2 * waitLimit,
		})
		if err != nil || res.ExitCode != 0 || !bytes.Equal(res.Output, want.Bytes()) {
			t.Errorf("%s: exit code %d, %d of %d bytes, %v", name, res.ExitCode, len(res.Output), want.Len(), err)
		}
		<-done
		if p.Reconnections() == 0 {
			t.Errorf("%s: the connection was not lost", name)
		}
		assert.Equal(t, "fine\n", run(t, p, "echo fine"), "%s: afterwards", name)
	}
}

// cutter calls cut when each quarter of the bytes has passed.
type cutter struct {
	total, passed, cuts int
	cut                 func()
}

func (c *cutter) pass(n int) {
	c.passed += n
	if c.passed*4 >= (c.cuts+1)*c.total && c.cuts < 3 {
		c.cuts++
		c.cut()
	}
}

type cuttingReader struct {
	from io.Reader
	cutter
}

func (r *cuttingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p[:min(len(p), 64<<10)])
	r.pass(n)
	return n, err
}

type cuttingWriter struct {
	bytes.Buffer
	cutter
}

func (w *cuttingWriter) Write(p []byte) (int, error) {
	w.pass(len(p))
	return w.Buffer.Write(p)
}

// TestCutTransfer: files arrive byte for byte although their connection was lost.
func TestCutTransfer(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	data := make([]byte, 12<<20)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	tree := packFile(t, data)
	in := &cuttingReader{from: bytes.NewReader(tree), cutter: cutter{total: len(tree), cut: fake.CutStreams}}
	require.NoError(t, p.Put(t.Context(), "/tmp/in", in))
	var out cuttingWriter
	out.total, out.cut = len(tree), fake.CutStreams
	require.NoError(t, p.Get(t.Context(), "/tmp/in/file", &out))
	if !bytes.Equal(unpackFile(t, &out.Buffer), data) {
		t.Error("the file has other bytes")
	}
	if in.cuts != 3 || out.cuts != 3 || p.Reconnections() < 2 {
		t.Errorf("%d and %d cuts, %d reconnections", in.cuts, out.cuts, p.Reconnections())
	}
}

// TestEnds: what ends a pod has its own outcome, which all later calls return too.
func TestEnds(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	disk := func(p *Pod) {
		fake.Evict(p.Name(), "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.")
	}
	memory := func(p *Pod) {
		changeStatus(t, fake, p.Name(), func(s *corev1.PodStatus) {
			s.Phase = corev1.PodFailed
			s.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}
		})
	}
	disrupt := func(reason string) func(*Pod) { return func(p *Pod) { fake.Disrupt(p.Name(), reason) } }
	for _, tt := range []struct {
		name, instance string
		end            func(p *Pod)
		want           env.Status
		text           string
	}{
		{"preemption", "", disrupt("PreemptionByScheduler"), env.SandboxDisrupted, "PreemptionByScheduler"},
		{"drain", "", disrupt("EvictionByEvictionAPI"), env.SandboxDisrupted, "EvictionByEvictionAPI"},
		{"taint", "", disrupt("DeletionByTaintManager"), env.SandboxDisrupted, "DeletionByTaintManager"},
		{"node pressure", "", func(p *Pod) {
			fake.Evict(p.Name(), "The node was low on resource: memory.", corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", Message: "The node was low on resource: memory.",
			})
		}, env.SandboxDisrupted, "low on resource"},
		{"node pressure of an old cluster", "", func(p *Pod) { fake.Evict(p.Name(), "The node was low on resource: memory.") }, env.SandboxDisrupted, "low on resource"},
		{"lost node", "", func(p *Pod) {
			changeStatus(t, fake, p.Name(), func(s *corev1.PodStatus) { s.Reason = "NodeLost" })
		}, env.SandboxDisrupted, "is lost"},
		{"disk, first time", "a", disk, env.ContainerDied, "exceeds the total limit"},
		{"disk, second time", "a", disk, env.SandboxLimitExceeded, "exceeds the total limit"},
		{"memory, first time", "b", memory, env.ContainerDied, "ran out of memory"},
		{"memory, second time", "b", memory, env.SandboxLimitExceeded, "ran out of memory"},
		{"killed", "", func(p *Pod) { fake.KillContainer(p.Name()) }, env.ContainerDied, "exit code 137"},
		{"deleted", "", func(p *Pod) {
			assert.NoError(t, fake.Client.CoreV1().Pods(fake.Namespace).Delete(t.Context(), p.Name(), metav1.DeleteOptions{}))
		}, env.ContainerDied, "the pod was deleted"},
		{"deadline", "", func(p *Pod) {
			changeStatus(t, fake, p.Name(), func(s *corev1.PodStatus) { s.Phase, s.Reason = corev1.PodFailed, "DeadlineExceeded" })
		}, env.ContainerDied, "deadline"},
	} {
		p := startPod(t, c, Config{Image: dockertest.Image(t), Instance: tt.instance})
		var begin sync.Once
		var at time.Time
		ended := make(chan struct{})
		_, err := p.Execute(t.Context(), env.Command{Script: "echo started; sleep 1000", Timeout: time.Hour, OnOutput: func([]byte) {
			begin.Do(func() {
				at = time.Now()
				go func() { defer close(ended); tt.end(p) }()
			})
		}})
		<-ended
		checkStatus(t, err, tt.want, tt.text)
		if d := time.Since(at); d > waitLimit {
			t.Errorf("%s: noticed after %s", tt.name, d)
		}
		checkStatus(t, p.Put(t.Context(), "/tmp", bytes.NewReader(packFile(t, nil))), tt.want, tt.text)
	}
}

// TestLease: without a connection the helper ends by itself, and the command fails.
func TestLease(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, func(s *Settings) { s.Lease = 8 * time.Second })
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	errs := make(chan error, 1)
	begun := make(chan struct{}, 100)
	go func() {
		_, err := p.Execute(t.Context(), env.Command{Script: "echo started; sleep 1000", Timeout: time.Hour, OnOutput: func([]byte) { begun <- struct{}{} }})
		errs <- err
	}()
	<-begun
	cut := time.Now()
	fake.SetDown(true)
	fake.CutStreams()
	eventually(t, "the container has ended", func() bool { return fake.Leftovers() == 0 })
	if d := time.Since(cut); d < 4*time.Second {
		t.Errorf("the container ended after %s, the lease is 8s", d)
	}
	fake.SetDown(false)
	// On a slow machine the container may be removed after mini has given up.
	if e, ok := errors.AsType[*env.Error](<-errs); !ok || e.Status != env.ContainerDied && e.Status != env.DaemonUnavailable {
		t.Errorf("error %v, want ContainerDied", e)
	}
}

// TestUnreachable: a command ends some time after the lease if the API server stays
// away.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, func(s *Settings) { s.Lease = 8 * time.Second })
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	begun := make(chan struct{}, 100)
	go func() {
		<-begun
		fake.SetDown(true)
		fake.CutStreams()
	}()
	_, err := p.Execute(t.Context(), env.Command{Script: "echo started; sleep 1000", Timeout: time.Hour, OnOutput: func([]byte) { begun <- struct{}{} }})
	fake.SetDown(false)
	checkStatus(t, err, env.DaemonUnavailable, hintCluster)
}

// relays is a script that defines a function which kills all relays.
const relays = `kill_relays() { for p in /proc/[0-9]*; do
	case "$(tr '\0' ' ' <$p/cmdline 2>/dev/null)" in "/.mini/h relay "*) kill -9 ${p#/proc/};; esac
done; }
`

// TestKilledRelay: a command may kill the relay. One that keeps doing so loses its
// sandbox.
func TestKilledRelay(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, nil)
	c.lossPeriod = time.Hour
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	assert.Equal(t, "still here\n", run(t, p, relays+"kill_relays; echo still here"), "output")
	eventually(t, "the pod is connected again", func() bool { return p.Reconnections() > 0 })
	_, err := p.Execute(t.Context(), env.Command{Script: relays + "while :; do kill_relays; sleep 0.05; done", Timeout: time.Hour})
	checkStatus(t, err, env.ProtocolViolation)
}

// TestForeignRelays: processes in the pod that connect to the helper without the key
// get nothing, and do not disturb, however many they are.
func TestForeignRelays(t *testing.T) {
	t.Parallel()
	c, fake := newFake(t, nil)
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	for name, script := range map[string]string{ // a relay that ends early breaks the pipe of head
		"end of input": "/.mini/h relay </dev/null | wc -c",
		"noise":        "head -c 100000 /dev/urandom 2>/dev/null | /.mini/h relay | wc -c",
		"a greeting":   `(printf 'minilink\001'; head -c 64 /dev/zero; head -c 1000 /dev/zero) 2>/dev/null | /.mini/h relay | wc -c`,
		"resumption":   `(printf 'minilink\002'; head -c 64 /dev/zero; head -c 1000 /dev/zero) 2>/dev/null | /.mini/h relay | head -c 40 >/dev/null; echo 0`,
	} {
		assert.Equal(t, "0", strings.TrimSpace(run(t, p, script)), "%s: the relay received bytes", name)
	}
	// More than the helper accepts at once; those that it accepts hold their places.
	run(t, p, `for i in $(seq 100); do sleep 1000 | /.mini/h relay >/dev/null 2>&1 & done`)
	eventually(t, "all places are taken", func() bool {
		n, err := strconv.Atoi(strings.TrimSpace(run(t, p, `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -cx relay`)))
		return err == nil && n > 1 && n <= 32
	})
	assert.Equal(t, "fine\n", run(t, p, "echo fine"), "output")
	if n := p.Reconnections(); n > 0 {
		t.Errorf("%d connections were lost", n)
	}
	fake.CutStreams() // the next relay gets the place of the last one
	assert.Equal(t, "again\n", run(t, p, "echo again"), "output")
}

// TestForgery: root in the pod cannot read the helper's memory or write to its streams.
func TestForgery(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, nil)
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	assert.Equal(t, "0\nend\n", run(t, p, forgery), "output")
}

// forgery prints what of the helper's processes can be accessed.
const forgery = `id -u
	for p in /proc/[0-9]*; do
		case "$(tr '\0' ' ' <$p/cmdline)" in "/.mini/h "*) ;; *) continue;; esac
		for fd in 0 1 2 3 4 5 6 7 8; do
			printf 'forged frame forged frame' >$p/fd/$fd && echo "wrote to $p/fd/$fd"
		done
		head -c 1 $p/mem $p/environ && echo "read $p"
	done 2>/dev/null
	echo end`

func packFile(t *testing.T, data []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	var tree bytes.Buffer
	require.NoError(t, files.Pack(&tree, path))
	return tree.Bytes()
}

func unpackFile(t *testing.T, tree io.Reader) []byte {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, files.Unpack(tree, dir, files.Limits{}))
	data, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	return data
}

// TestSPDY: where WebSockets do not pass, the older protocol is used.
func TestSPDY(t *testing.T) {
	t.Parallel()
	fake := kubetest.New(t)
	address, err := url.Parse(fake.REST.Host)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // SPDY uses POST
			http.Error(w, "no WebSockets here", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	fake.REST = &rest.Config{Host: server.URL, QPS: -1}
	c := openFake(t, fake, nil)
	closeCluster(t, c, fake)
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	data := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
	require.NoError(t, p.Put(t.Context(), "/tmp", bytes.NewReader(packFile(t, data))))
	var tree bytes.Buffer
	if err := p.Get(t.Context(), "/tmp/file", &tree); err != nil || !bytes.Equal(unpackFile(t, &tree), data) {
		t.Errorf("the file has other bytes, %v", err)
	}
	whileDown(t, p, fake, func() {})
	assert.Equal(t, "fine\n", run(t, p, "echo fine"), "output")
	if n := fake.RequestCount(); n["get pods/exec"] > 0 || n["create pods/exec"] == 0 {
		t.Errorf("requests %v", n)
	}
}

// TestNoConnection: a sandbox whose helper cannot be reached does not start.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer *apierrors.StatusError
		limit  time.Duration
		want   env.Status
		texts  []string
	}{
		"no rights": {
			apierrors.NewForbidden(schema.GroupResource{Resource: "pods/exec"}, "p", errors.New(`User "u" cannot create resource`)),
			time.Hour, env.StartFailed,
			[]string{`User "u" cannot create resource`, hintRights},
		},
		"no answer": {
			apierrors.NewServiceUnavailable("try later"),
			time.Second, env.DaemonUnavailable,
			[]string{"no connection for ", "try later", hintCluster},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake := kubetest.New(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				status := test.answer.ErrStatus
				status.Kind, status.APIVersion = "Status", "v1"
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status.Code))
				assert.NoError(t, json.NewEncoder(w).Encode(status))
			}))
			t.Cleanup(server.Close)
			fake.REST = &rest.Config{Host: server.URL, QPS: -1}
			c := openFake(t, fake, func(s *Settings) { s.StartTimeout = test.limit })
			closeCluster(t, c, fake)
			_, err := c.Start(t.Context(), Config{Image: dockertest.Image(t)})
			checkStatus(t, err, test.want, test.texts...)
			if strings.Contains(err.Error(), "closed pipe") {
				t.Errorf("the reason is hidden: %v", err)
			}
		})
	}
}
